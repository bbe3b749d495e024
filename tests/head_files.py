"""Heads as files, in every public layout, made of the tiny pair's head."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from eagle2.loading.head_files import load_head
from eagle2.models.kv_cache import KeyValueRows

TINY = Path(__file__).parent / "fixtures" / "tiny-pair" / "head"
HIDDEN, VOCABULARY = 64, 256
CONFIG = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
TENSORS = load_file(TINY / "model.safetensors")
Q, K, V = (f"layers.0.self_attn.{name}_proj" for name in "qkv")


def write_config(folder: Path, **changed) -> None:
    """A config.json beside the weights; a member set to ... is left out."""
    config = {key: value for key, value in (CONFIG | changed).items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def load(folder: Path, hidden: int = HIDDEN, vocabulary: int = VOCABULARY, dtype: torch.dtype = torch.float32):
    return load_head(folder, hidden, vocabulary, dtype)


@torch.inference_mode()
def outputs(head, start: int = 0) -> torch.Tensor:
    """The features [4, hidden] a head predicts for four fixed pairs from position `start` on."""
    pairs = torch.randn(2, 4, HIDDEN, generator=torch.Generator().manual_seed(0))
    pairs = pairs.to(head.fc.weight.dtype)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return head(pairs[0], pairs[1], torch.arange(start, start + 4), KeyValueRows(), causal)


def refusal(folder: Path, **sizes) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the callers compare the sentence)
        load(folder, **sizes)
    message = str(caught.value)
    assert "\n" not in message
    return message


def halves() -> tuple[dict, dict]:
    names = sorted(TENSORS)
    return {name: TENSORS[name] for name in names[::2]}, {name: TENSORS[name] for name in names[1::2]}


def write_index(folder: Path, whole: str, shards: dict[str, dict]) -> None:
    homes = {name: shard for shard, tensors in shards.items() for name in tensors}
    (folder / f"{whole}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}), encoding="utf-8")


def write_safetensors(folder: Path) -> None:
    save_file(TENSORS, folder / "model.safetensors")


def write_sharded_safetensors(folder: Path) -> None:
    shards = dict(zip(("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"), halves(), strict=True))
    for name, tensors in shards.items():
        save_file(tensors, folder / name)
    write_index(folder, "model.safetensors", shards)


def write_bin(folder: Path) -> None:
    torch.save(TENSORS, folder / "pytorch_model.bin")


def write_old_bin(folder: Path) -> None:
    torch.save(TENSORS, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def write_sharded_bin(folder: Path) -> None:
    shards = dict(zip(("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"), halves(), strict=True))
    for name, tensors in shards.items():
        torch.save(tensors, folder / name)
    write_index(folder, "pytorch_model.bin", shards)
