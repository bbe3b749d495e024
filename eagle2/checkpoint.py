"""A head's folder or hub id -> `EagleHead`, strictly: every tensor is used, none is missing, all shapes fit the target.

The public layout is config.json beside model.safetensors (or pytorch_model.bin, read weights-only), whole or sharded.
What a head has is decided by its tensors; the config only gives sizes.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Collection
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from eagle2 import vocabulary
from eagle2.head import EagleHead, HeadConfig

HEAD_FILES = ("config.json", "*.safetensors", "*.bin", "*.index.json")
COMPUTED = ("rotary_emb.inv_freq",)
"""Ends of the names of tensors that old checkpoints hold although they follow from the config."""
EAGLE_3 = "the head in {} is an EAGLE-3 head; this engine reads EAGLE-1 and EAGLE-2 heads"


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
    except Exception as error:  # the errors of the hub's client, and those of whatever it fetches with
        raise ValueError(unreachable(name, error)) from error
    return snapshot, snapshot.name


def unreachable(name: str, error: Exception) -> str:
    """The sentence for a name that is no folder and could not be had from the hub."""
    return (
        f"{name!r} is no folder here and could not be fetched from the hub ({reason(error)}); "
        "check the name or the connection"
    )


def reason(error: Exception) -> str:
    """A library's message as a part of our sentence: its first one, and its kind where that alone says little."""
    said = re.split(r"\.\s|\n", str(error).strip())[0].rstrip(".:; ")[:200]
    return said if said and isinstance(error, OSError | ValueError) else f"{type(error).__name__}: {said}".rstrip(": ")


def load_head(folder: Path, hidden_size: int, vocab_size: int, dtype: torch.dtype = torch.float32) -> EagleHead:
    """Read an EAGLE-1/2 head for a target with these sizes. Raises ValueError naming what does not fit."""
    raw = read_config(folder)
    tensors = {name: t for name, t in read_tensors(folder).items() if not name.endswith(COMPUTED)}
    refuse_other_kinds(folder, tensors)
    config = head_config(folder, raw, tensors)
    if tensors["fc.weight"].shape[-1:] == (3 * hidden_size,):
        raise ValueError(EAGLE_3.format(folder))
    if config.hidden_size != hidden_size:
        raise ValueError(
            f"the head in {folder} has hidden size {config.hidden_size}, the target {hidden_size}: they are no pair"
        )
    if config.own_embeddings and config.vocab_size != vocab_size:
        raise ValueError(
            f"the head in {folder} brings embeddings of {config.vocab_size} tokens, the target has {vocab_size}: "
            "they are no pair"
        )
    t2d = tensors.pop("t2d", None)  # says nothing that d2t does not
    if wrong := vocabulary.fault(tensors.get("d2t"), t2d, raw.get("draft_vocab_size"), vocab_size):
        raise ValueError(f"the draft vocabulary of the head in {folder} is not usable: {wrong}")
    try:
        with torch.random.fork_rng(devices=[]):  # first weights are drawn only to be overwritten
            head = EagleHead(config)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / 'config.json'} sets a rope that is not understood: {config.rope} ({reason(error)})"
        ) from error
    refuse_misfits(folder, tensors, {name: t.shape for name, t in head.state_dict().items()})
    head.load_state_dict(tensors)
    for parameter in head.parameters():  # not head.to(dtype): rotary frequencies must stay float32 to tell positions
        parameter.data = parameter.data.to(dtype)
    return head.eval()


def read_config(folder: Path) -> dict:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no config.json, so it is no head's folder")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no valid JSON ({reason(error)})") from error
    if not isinstance(raw, dict):
        raise ValueError(f"{path} holds no JSON object, so it is no head's config")
    return raw


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder by name, from one file or the shards an index lists; safetensors are preferred."""
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{whole}.index.json"
        if index.is_file():
            homes = _read_index(index)
            refuse_other_kinds(folder, homes)  # by their names alone: a whole model's shards may not fit into memory
            shards = [_read_file(folder / shard) for shard in sorted(set(homes.values()))]
            return {name: tensor for shard in shards for name, tensor in shard.items()}
        if (folder / whole).is_file():
            return _read_file(folder / whole)
    raise ValueError(f"{folder} holds neither model.safetensors nor pytorch_model.bin, whole or sharded")


def _read_index(path: Path) -> dict[str, str]:
    """Tensor names and the files beside the index that hold them."""
    try:
        homes = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        sound = bool(homes) and all(Path(shard).name == shard for shard in homes.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError(f'{path} is no index of shards: its "weight_map" must map tensors to files of its own folder')
    return homes


def _read_file(path: Path) -> dict[str, Tensor]:
    """One file's tensors. A .bin is a pickle: it is read weights-only, so that no code in it ever runs."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} is refused: it is damaged, or holds other things than tensors, which could run code"
        ) from error
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)})") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(f"{path} does not map names to tensors, as a head's weights do")
    return tensors


def refuse_other_kinds(folder: Path, names: Collection[str]) -> None:
    """Raise ValueError where the tensors' names are those of something else than an EAGLE-1/2 head."""
    if any(name.startswith("midlayer.") for name in names):
        raise ValueError(EAGLE_3.format(folder))
    if "fc.weight" not in names:
        whole = any(name.startswith(("model.", "lm_head.", "transformer.")) for name in names)
        what = "a whole language model" if whole else f"none (its tensors: {', '.join(sorted(names)[:3])}, ...)"
        raise ValueError(f"{folder} was given as a head but holds {what}; an EAGLE head has a tensor fc.weight")


def head_config(folder: Path, raw: dict, tensors: dict[str, Tensor]) -> HeadConfig:
    """Sizes from the config, the rest from the tensors' names. Rope settings are found in their old and new places."""
    path = folder / "config.json"

    def size(key: str, default: int | None = None) -> int:
        value = default if raw.get(key) is None else raw[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{path} has {key} = {value!r}; an EAGLE head's must be an integer of at least 1")
        return value

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    kv_heads, head_dim = size("num_key_value_heads", heads), size("head_dim", max(1, hidden // heads))
    if heads % kv_heads or head_dim % 2:
        raise ValueError(
            f"{path} has {heads} heads of width {head_dim} over {kv_heads} key-value heads; "
            "the first must be a multiple of the last, and the width even"
        )
    if raw.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ValueError(f"{path} has hidden_act = {raw['hidden_act']!r}; an EAGLE head's is silu")
    own = tensors.get("embed_tokens.weight")
    return HeadConfig(
        hidden_size=hidden,
        intermediate_size=size("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=size("vocab_size", 1) if own is None else own.shape[0],
        rms_norm_eps=raw.get("rms_norm_eps") or 1e-6,
        rope=_rope(path, raw),
        max_positions=size("max_position_embeddings", 2048),
        fc_bias="fc.bias" in tensors,
        qkv_bias="layers.0.self_attn.q_proj.bias" in tensors,
        own_embeddings=own is not None,
        draft_vocab_size=tensors["d2t"].numel() if "d2t" in tensors else None,
    )


def _rope(path: Path, raw: dict) -> dict:
    """The new place holds all of it; the old ones are rope_theta and rope_scaling, whose rope_type was once "type"."""
    scaling = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise ValueError(f"{path} sets a rope that is not understood: {scaling!r} is no object")
    rope = {"rope_type": "default", "rope_theta": raw.get("rope_theta") or 10000.0, **scaling}
    if "type" in rope:
        rope["rope_type"] = rope.pop("type")
    return rope


def refuse_misfits(folder: Path, found: dict[str, Tensor], expected: dict[str, torch.Size]) -> None:
    """Raise ValueError naming missing and left-over tensors, wrong shapes, and integers where weights should be."""
    faults = [f"missing {name}" for name in sorted(expected.keys() - found.keys())]
    faults += [f"left over {name}" for name in sorted(found.keys() - expected.keys())]
    faults += [
        f"{name} is {tuple(found[name].shape)} instead of {tuple(shape)}"
        for name, shape in expected.items()
        if name in found and found[name].shape != shape
    ]
    faults += [
        f"{name} is {str(tensor.dtype).removeprefix('torch.')}, not floating point"
        for name, tensor in found.items()
        if name in expected and name != "d2t" and not tensor.is_floating_point()
    ]
    if faults:
        raise ValueError(f"the head in {folder} does not load: {'; '.join(faults)}")
