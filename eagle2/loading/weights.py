"""A head's folder read safely: its config.json and its tensors, whole or sharded, safetensors or weights-only pickles.

Knows nothing of what the tensors mean; `checkpoint` does.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Collection
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

NO_WEIGHTS = "{folder} holds neither model.safetensors nor pytorch_model.bin, whole or sharded"


def reason(error: Exception) -> str:
    """A library's message as a part of our sentence: its first one, and its kind where that alone says little."""
    said = re.split(r"\.\s|\n", str(error).strip())[0].rstrip(".:; ")[:200]
    return said if said and isinstance(error, OSError | ValueError) else f"{type(error).__name__}: {said}".rstrip(": ")


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


def read_tensors(folder: Path, check_names: Callable[[Collection[str]], None]) -> dict[str, Tensor]:
    """All tensors of a folder by name, from one file or the shards an index lists; safetensors are preferred.

    check_names: called with an index's names before any shard is read; a whole model's may not fit into memory.
    """
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{whole}.index.json"
        if index.is_file():
            homes = _read_index(index)
            check_names(homes)
            shards = [_read_file(folder / shard) for shard in sorted(set(homes.values()))]
            return {name: tensor for shard in shards for name, tensor in shard.items()}
        if (folder / whole).is_file():
            return _read_file(folder / whole)
    raise ValueError(NO_WEIGHTS.format(folder=folder))


def count_parameters(folder: Path) -> int:
    """How many numbers a folder's tensors hold; weights are not read for that."""
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{whole}.index.json"
        names = sorted(set(_read_index(index).values())) if index.is_file() else [whole]
        if index.is_file() or (folder / whole).is_file():
            return sum(_count_file(folder / name) for name in names)
    raise ValueError(NO_WEIGHTS.format(folder=folder))


def _count_file(path: Path) -> int:
    if path.suffix != ".safetensors":
        return sum(tensor.numel() for tensor in _read_file(path, "meta").values())
    try:
        with safe_open(path, "pt") as file:
            return sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (no dict)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)})") from error


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


def _read_file(path: Path, device: str = "cpu") -> dict[str, Tensor]:
    """One file's tensors. A .bin is a pickle: it is read weights-only, so that no code in it ever runs."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        tensors = torch.load(path, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} is refused: it is damaged, or holds other things than tensors, which could run code"
        ) from error
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)})") from error
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(f"{path} does not map names to tensors, as a head's weights do")
    return tensors
