"""Names, a device and a dtype -> an `Engine`. The edge where models come in; the algorithm never imports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging

from eagle2.decoding.budget import Costs
from eagle2.decoding.engine import Engine
from eagle2.drafters.draft_model import IndependentDrafter
from eagle2.drafters.eagle import EagleDrafter
from eagle2.loading import bundled_pair
from eagle2.loading.copies import without_copies
from eagle2.loading.gguf_target import four_bit_target
from eagle2.loading.head_files import load_head
from eagle2.loading.hub import fetch_head, fetched_revision, unreachable
from eagle2.loading.weights import reason
from eagle2.models.cpu_linear import choose_products
from eagle2.models.memory import ROOM, free_bytes, refuse_too_large, weights_bytes
from eagle2.models.target import Target
from eagle2.progress import Watch, bar_telling, unwatched
from eagle2.trace.rounds import Pair

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FOUR_BIT = "4bit"
"""Instead of a dtype: the matrices of a GGUF file as they are, multiplied in bfloat16."""
SPREAD = "spread"
"""The device name that lets accelerate place layers over all GPUs and, if they are not enough, the CPU."""
DEVICES = ("cpu", "cuda", "mps")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""A folder with none of these has no tokenizer."""


def load(
    target: str | Path | None = None,
    head: str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    draft_model: str | Path | None = None,
    watch: Watch = unwatched,
    reading: str | None = None,
) -> Engine:
    """Load a pair. target, head: local folders or hub ids; without a target, the embedded default pair.

    draft_model: a smaller causal LM with the target's tokenizer, for method "sps"; where there is no head, it drafts
    for the other methods too.

    device: "auto" (CUDA, then MPS, else CPU), "cpu", "cuda", "cuda:1", "mps", or "spread" over all GPUs; "auto" spreads
    a model too big for one GPU. dtype: "auto" (half precision on accelerators, float32 on a CPU), or one of float32,
    bfloat16, float16; or "4bit", on a CPU, for the bundled target and Llama models given as a GGUF file. A target with
    neither head nor draft model can only decode plainly or by prompt lookup.
    watch: see `progress`. reading: whether the ids of hidden states in an EAGLE-3 head's config are "states" or the
    "outputs" of layers; None: by what the config calls them. Raises
    ValueError or MemoryError in one sentence.
    """
    place = choose_device(device)
    weights = choose_dtype(dtype, place)
    packed = None
    if dtype == FOUR_BIT:
        packed, (name, source, revision) = packed_file(target)
        head = str(head or bundled_pair.HEAD) if target is None else head
    elif target is None:
        name, source, revision = default_target()
        head = str(head or bundled_pair.HEAD)
    else:
        name, source, revision = str(target), str(target), None
    head = None if head is None else str(head)
    drafter = folder = head_revision = None
    if head is not None:  # before the target, so that a mistyped name costs no waiting
        folder, head_revision = fetch_head(head, watch)
    if packed is not None:
        config, tokenizer = packed_description(source, packed)
        verifier = Target(*four_bit_target(packed, config))
    else:
        verifier, tokenizer = Target(decoding_model(source, place, weights, watch)), load_tokenizer(source)
    if folder is not None:
        module = load_head(folder, verifier.hidden_size, verifier.vocab_size, weights, verifier.layers, reading)
        module = without_copies(module, verifier)
        verifier = verifier.handing_out(module.states)
        drafter = EagleDrafter(verifier, module.to(verifier.device))
        if place.startswith("cpu"):
            drafter.choose_products(watch)
    independent = None
    if draft_model:
        independent = load_draft_model(str(draft_model), verifier, tokenizer, place, weights, watch)
    pair = Pair(
        target=name,
        head=Path(head).name if head == str(bundled_pair.HEAD) else head,
        target_revision=revision or (fetched_revision(source) if packed is None else None),
        head_revision=head_revision,
        device=SPREAD if hasattr(verifier.model, "hf_device_map") else place,
        dtype=dtype if dtype == FOUR_BIT else str(weights).removeprefix("torch."),
        vocabulary=verifier.vocab_size,
        draft_vocabulary=drafter.vocabulary if drafter and drafter.vocabulary < verifier.vocab_size else None,
        draft_model=str(draft_model) if draft_model else None,
        head_positions=module.config.max_positions if folder is not None else None,
    )
    return Engine(verifier, drafter or independent, tokenizer, pair, draft_model=independent)


def packed_file(target: str | Path | None) -> tuple[Path, tuple[str, str, str | None]]:
    """The GGUF file whose matrices stay packed; the target's name, where its description is, and its revision.

    Raises ValueError where there is none.
    """
    file = bundled_pair.gguf_file() if target is None else Path(target).expanduser()
    if target is None and file is not None:
        revision = f"{bundled_pair.PACKAGE} {bundled_pair.version()}"
        return file, ("SmolLM2-135M-Instruct", str(bundled_pair.described_target(file)), revision)
    if file is None or file.suffix != ".gguf" or not file.is_file():
        raise ValueError(
            f"4bit keeps the matrices of a GGUF file, and {target or 'the bundled target'} is none that is here; give "
            f"the path of a .gguf file, or another dtype ({', '.join(DTYPES)})"
        )
    return file, (file.stem, str(file), None)


def packed_description(source: str, file: Path) -> tuple[PreTrainedConfig, object | None]:
    """Config and tokenizer of a GGUF file, from the folder `source` where it has been described before."""
    if source != str(file):
        return model_config(source), load_tokenizer(source)
    try:
        config, tokenizer, _ = bundled_pair.description(file)
    except Exception as error:  # a foreign file can make transformers raise nearly anything
        raise ValueError(f"the GGUF file {source} cannot be read ({reason(error)})") from error
    return config, tokenizer


def load_draft_model(
    source: str,
    target: Target,
    tokenizer: object | None,
    device: str,
    dtype: torch.dtype,
    watch: Watch = unwatched,
) -> IndependentDrafter:
    """An independent draft model. Raises ValueError unless both speak the same token ids."""
    model = Target(decoding_model(source, device, dtype, watch))
    own = load_tokenizer(source)
    if own is not None and tokenizer is not None:
        same = own.get_vocab() == tokenizer.get_vocab()
    else:
        same = model.vocab_size == target.vocab_size  # all that can be compared
    if not same:
        raise ValueError(
            f"the draft model {source} has another vocabulary than the target ({model.vocab_size} and "
            f"{target.vocab_size} ids); give a causal LM with the target's own tokenizer"
        )
    return IndependentDrafter(model, target)


def default_target() -> tuple[str, str, str | None]:
    """Name, folder or hub id, and revision of the embedded default: the package's weights, else the hub's."""
    gguf = bundled_pair.gguf_file()
    if gguf is not None:
        return (
            "SmolLM2-135M-Instruct",
            str(bundled_pair.converted_target(gguf)),
            f"{bundled_pair.PACKAGE} {bundled_pair.version()}",
        )
    try:
        AutoConfig.from_pretrained(bundled_pair.HUB_ID)
    except Exception as error:  # the errors of the hub's client, and those of whatever it fetches with
        raise ValueError(
            f"the default model is not here: neither is the package {bundled_pair.PACKAGE} installed nor can "
            f"{bundled_pair.HUB_ID} be fetched from the hub; run '{bundled_pair.INSTALL}'"
        ) from error
    return bundled_pair.HUB_ID, bundled_pair.HUB_ID, None


def choose_device(device: str) -> str:
    """A device that exists here. Raises ValueError otherwise."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if device == SPREAD:
        return device
    unusable = f"device {device!r} is not usable here; choose auto, cpu, cuda, cuda:N, mps or {SPREAD}"
    try:
        place = torch.device(device)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ValueError(unusable) from error
    if place.type not in DEVICES:
        raise ValueError(unusable)
    return str(place)


def choose_dtype(dtype: str, device: str) -> torch.dtype:
    """Half precision on accelerators and float32 on a CPU, unless asked for otherwise. Raises ValueError."""
    if dtype not in ("auto", FOUR_BIT, *DTYPES):
        raise ValueError(f"dtype {dtype!r} is unknown; choose auto, {', '.join((*DTYPES, FOUR_BIT))}")
    if dtype == FOUR_BIT:
        if not device.startswith("cpu"):
            raise ValueError(f"4bit weights are multiplied on a CPU only, not on {device}; choose another dtype")
        return torch.bfloat16
    if dtype != "auto":
        return DTYPES[dtype]
    if device.startswith("mps"):
        return torch.bfloat16
    if device.startswith("cpu") or not torch.cuda.is_available():
        return torch.float32
    # Older GPUs only emulate bfloat16, slowly.
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def decoding_model(source: str, device: str, dtype: torch.dtype, watch: Watch = unwatched) -> PreTrainedModel:
    """`load_model`, multiplying few rows in the order that is faster here; to measure that takes seconds on a CPU."""
    model = load_model(source, device, dtype, watch)
    if device.startswith("cpu"):
        choose_products(model, watch)
    return model


def load_model(source: str, device: str, dtype: torch.dtype, watch: Watch = unwatched) -> PreTrainedModel:
    """A stock causal LM with every weight found. Raises ValueError where it cannot be had or is incomplete.

    Code that a model brings along is never run.
    """
    config, folder = model_config(source), Path(source).expanduser()
    try:
        source = str(folder) if folder.is_dir() else source
        if device.startswith("cpu") and not hasattr(config, "quantization_config"):  # whose size is another
            refuse_too_large(source, weights_bytes(config, dtype), free_bytes(device), device)
        spread = device == SPREAD or (device.startswith("cuda") and not fits(config, device, dtype))
        with weights_watched(watch):
            model, info = AutoModelForCausalLM.from_pretrained(
                source,
                config=config,
                dtype=dtype,
                device_map="auto" if spread else None,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are named below
                trust_remote_code=False,
                tqdm_class=bar_telling(watch, "download"),
            )
        model = model if spread else model.to(device)
    except MemoryError:
        raise
    except torch.OutOfMemoryError as error:
        raise MemoryError(f"{source} does not fit into the memory of {device}; try another, or {SPREAD}") from error
    except Exception as error:  # a foreign folder can make transformers raise nearly anything
        raise ValueError(unloadable(source, error)) from error
    if "fc.weight" in info["unexpected_keys"]:
        raise ValueError(f"{source} holds an EAGLE head, no target; give it as the head of the model it belongs to")
    for name, found, wanted in sorted(info["mismatched_keys"]):
        raise ValueError(
            f"{source} contradicts itself: {name} is {tuple(found)}, its config.json asks for {tuple(wanted)}"
        )
    if missing := sorted(info["missing_keys"]):
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ValueError(f"{source} lacks {len(missing)} of its model's tensors ({some}), so it is incomplete")
    return model


def model_config(source: str) -> PreTrainedConfig:
    """The config of a model's folder or repository. Raises ValueError where it cannot be had."""
    folder = Path(source).expanduser()
    if folder.is_file():
        raise ValueError(f"{source} is a file; give the folder that holds config.json and the model's weights")
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ValueError(f"{source} holds no config.json, so it is no model's folder")
    try:
        return AutoConfig.from_pretrained(str(folder) if folder.is_dir() else source, trust_remote_code=False)
    except Exception as error:  # a foreign folder can make transformers raise nearly anything
        raise ValueError(unloadable(source, error)) from error


def unloadable(source: str, error: Exception) -> str:
    """The sentence for a model that transformers could not load."""
    if Path(source).expanduser().is_dir():
        return f"the model in {source} cannot be loaded ({reason(error)})"
    return unreachable(source, error)


@contextmanager
def weights_watched(watch: Watch) -> Iterator[None]:
    """Within it, transformers tells `watch` of the tensors it has loaded."""
    before = logging.set_tqdm_hook(lambda _, arguments, options: bar_telling(watch, "weights")(*arguments, **options))
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def fits(config: object, device: str, dtype: torch.dtype) -> bool:
    """Whether the weights leave a tenth of the device's free memory to caches and activations."""
    return weights_bytes(config, dtype) < ROOM * free_bytes(device)


def load_tokenizer(source: str) -> object | None:
    """The tokenizer beside the weights; None where there is none, and the pair then speaks ids only."""
    folder = Path(source).expanduser()
    local = folder.is_dir()
    if local and not any((folder / name).is_file() for name in TOKENIZER_FILES):
        return None
    try:
        return AutoTokenizer.from_pretrained(str(folder) if local else source, trust_remote_code=False)
    except Exception as error:  # a foreign file can make the tokenizers raise nearly anything
        if not local and isinstance(error, OSError | ValueError):
            return None  # the model came from the same place a moment ago: there is no tokenizer beside it
        raise ValueError(f"the tokenizer in {source} cannot be read ({reason(error)})") from error


def move(engine: Engine, device: str, costs: Costs | None = None) -> Engine:
    """The same pair on another device, weights and dtype unchanged, with no runs going on there yet.

    costs: what rounds cost there, where that is known; else it is measured when it is needed.
    """
    target = Target(engine.target.model.to(device)).handing_out(engine.target.states)
    independent = drafter = None
    if engine.draft_model is not None:
        independent = IndependentDrafter(Target(engine.draft_model.model.model.to(device)), target)
    if engine.drafter is engine.draft_model:
        drafter = independent
    elif engine.drafter is not None:
        drafter = EagleDrafter(target, engine.drafter.head.to(device))
    pair = replace(engine.pair, device=device)
    return Engine(target, drafter, engine.tokenizer, pair, draft_model=independent, costs=costs)
