"""A head's folder or hub id -> `EagleHead`, strictly: every tensor is used, none is missing, all shapes fit the target.

The public layout is config.json beside model.safetensors (or pytorch_model.bin, read weights-only), whole or sharded.
What a head has is decided by its tensors; the config only gives sizes.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors.torch import load_file
from torch import Tensor

from eagle2.head import EagleHead, HeadConfig

HEAD_FILES = ("config.json", "*.safetensors", "*.bin", "*.index.json")
COMPUTED = ("rotary_emb.inv_freq",)
"""Ends of tensor names that old checkpoints saved although they follow from the config."""


def fetch_head(name: str) -> tuple[Path, str | None]:
    """The folder of a head and its revision: `name` itself if it is a folder, else fetched from the hub.

    Raises ValueError in one sentence where neither works.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder, None
    if folder.exists():
        raise ValueError(f"{name} is a file; give the folder that holds config.json and the head's weights")
    try:
        snapshot = Path(snapshot_download(name, allow_patterns=list(HEAD_FILES)))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(unreachable(name, error)) from error
    return snapshot, snapshot.name


def unreachable(name: str, error: Exception) -> str:
    """The sentence for a name that is no folder and could not be had from the hub."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"{name!r} is no folder here and could not be fetched from the hub ({reason}); check the name or the connection"
    )


def load_head(folder: Path, hidden_size: int, vocab_size: int, dtype: torch.dtype = torch.float32) -> EagleHead:
    """Read an EAGLE-1/2 head for a target with these sizes. Raises ValueError naming what does not fit."""
    raw = read_config(folder)
    tensors = {name: t for name, t in read_tensors(folder).items() if not name.endswith(COMPUTED)}
    refuse_other_kinds(folder, tensors)
    config = head_config(raw, tensors)
    if config.hidden_size != hidden_size:
        raise ValueError(
            f"the head in {folder} has hidden size {config.hidden_size}, the target {hidden_size}: they are no pair"
        )
    if config.own_embeddings and config.vocab_size != vocab_size:
        raise ValueError(
            f"the head in {folder} brings embeddings of {config.vocab_size} tokens, the target has {vocab_size}: "
            "they are no pair"
        )
    with torch.device("meta"):
        expected = {name: t.shape for name, t in EagleHead(config).state_dict().items()}
    refuse_misfits(folder, {name: t.shape for name, t in tensors.items()}, expected)
    head = EagleHead(config)
    head.load_state_dict(tensors)
    return head.to(dtype).eval()


def read_config(folder: Path) -> dict:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no config.json, so it is no head's folder")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no valid JSON ({error})") from error
    missing = [key for key in ("hidden_size", "intermediate_size", "num_attention_heads") if key not in raw]
    if missing:
        raise ValueError(f"{path} does not say {', '.join(missing)}; an EAGLE head's config.json must")
    return raw


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder by name, from one file or the shards an index lists; safetensors are preferred."""
    for whole, index, read in (
        ("model.safetensors", "model.safetensors.index.json", load_file),
        ("pytorch_model.bin", "pytorch_model.bin.index.json", _load_bin),
    ):
        if (folder / index).is_file():
            shards = sorted(set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values()))
            return {name: tensor for shard in shards for name, tensor in read(folder / shard).items()}
        if (folder / whole).is_file():
            return read(folder / whole)
    raise ValueError(f"{folder} holds neither model.safetensors nor pytorch_model.bin, whole or sharded")


def _load_bin(path: Path) -> dict[str, Tensor]:
    return torch.load(path, map_location="cpu", weights_only=True)


def refuse_other_kinds(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Raise ValueError where the tensors are those of something else than an EAGLE-1/2 head."""
    if "d2t" in tensors or any(name.startswith("midlayer.") for name in tensors):
        raise ValueError(f"the head in {folder} is an EAGLE-3 head; this engine reads EAGLE-1 and EAGLE-2 heads")
    if "fc.weight" not in tensors:
        whole = any(name.startswith(("model.", "lm_head.", "transformer.")) for name in tensors)
        what = "a whole language model" if whole else f"none (its tensors: {', '.join(sorted(tensors)[:3])}, ...)"
        raise ValueError(f"{folder} was given as a head but holds {what}; an EAGLE head has a tensor fc.weight")


def head_config(raw: dict, tensors: dict[str, Tensor]) -> HeadConfig:
    """Sizes from the config, the rest from the tensors' names. Rope settings are found in their old and new places."""
    hidden, heads = raw["hidden_size"], raw["num_attention_heads"]
    rope = {"rope_type": "default", "rope_theta": raw.get("rope_theta", 10000.0)}
    scaling = dict(raw.get("rope_parameters") or raw.get("rope_scaling") or {})
    if "type" in scaling:
        scaling["rope_type"] = scaling.pop("type")
    own = tensors.get("embed_tokens.weight")
    return HeadConfig(
        hidden_size=hidden,
        intermediate_size=raw["intermediate_size"],
        heads=heads,
        kv_heads=raw.get("num_key_value_heads") or heads,
        head_dim=raw.get("head_dim") or hidden // heads,
        vocab_size=raw.get("vocab_size", 0) if own is None else own.shape[0],
        rms_norm_eps=raw.get("rms_norm_eps", 1e-6),
        rope={**rope, **scaling},
        max_positions=raw.get("max_position_embeddings", 2048),
        fc_bias="fc.bias" in tensors,
        qkv_bias="layers.0.self_attn.q_proj.bias" in tensors,
        own_embeddings=own is not None,
    )


def refuse_misfits(folder: Path, found: dict[str, torch.Size], expected: dict[str, torch.Size]) -> None:
    """Raise ValueError naming missing and left-over tensors and wrong shapes."""
    faults = [f"missing {name}" for name in sorted(expected.keys() - found.keys())]
    faults += [f"left over {name}" for name in sorted(found.keys() - expected.keys())]
    faults += [
        f"{name} is {tuple(found[name])} instead of {tuple(shape)}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    if faults:
        raise ValueError(f"the head in {folder} does not load: {'; '.join(faults)}")
