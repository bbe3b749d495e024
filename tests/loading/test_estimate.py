"""What pairs will take, before anything large is fetched or loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from head_files import TENSORS, write_bin, write_safetensors, write_sharded_bin, write_sharded_safetensors

import eagle2
from eagle2.loading.estimate import Estimate, asks_hub, estimate
from eagle2.loading.known_pairs import KNOWN_PAIRS, memory_needed
from eagle2.loading.weights import count_parameters
from eagle2.models import memory

PAIR = Path(__file__).parents[1] / "fixtures" / "tiny-pair"
TARGET, HEAD = str(PAIR / "target"), str(PAIR / "head")
LAYOUTS = (write_safetensors, write_sharded_safetensors, write_bin, write_sharded_bin)


@pytest.mark.parametrize("write", LAYOUTS)
def test_a_head_s_numbers_are_counted_in_every_layout(write, tmp_path):
    write(tmp_path)
    assert count_parameters(tmp_path) == sum(tensor.numel() for tensor in TENSORS.values())


def test_a_head_s_folder_without_weights_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds neither"):
        count_parameters(tmp_path)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_a_pair_of_folders_takes_its_weights_and_a_tenth_more(dtype, size, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**6)
    engine = eagle2.load(TARGET, HEAD, "cpu")
    models = (engine.target.model, engine.drafter.head)
    parameters = sum(p.numel() for model in models for p in model.parameters())
    found = estimate(TARGET, HEAD, "cpu", dtype)
    assert found == Estimate(round(1.1 * size * parameters), 10**6, "cpu", dtype)
    assert found.fits
    assert not Estimate(10**6 + 1, 10**6, "cpu", dtype).fits
    assert Estimate(10**9, None, "mps", dtype).fits


def test_a_known_pair_needs_no_hub():
    pair = KNOWN_PAIRS[0]
    assert not asks_hub(pair.target, pair.head)
    assert estimate(pair.target, pair.head, "cpu").needed == memory_needed(pair, "float32")


def test_the_default_pair_is_about_as_large_as_it_is():
    assert estimate(None, None, "cpu").needed == pytest.approx(1.1 * 4 * (134_515_008 + 4_211_840), rel=0.01)


def test_who_asks_the_hub():
    assert not asks_hub(None, None)
    assert not asks_hub(TARGET, "somebody/head")
    assert asks_hub("somebody/model", HEAD)
    assert asks_hub(KNOWN_PAIRS[0].target, None)


def test_a_head_that_only_the_hub_has_is_said_to_be_missing():
    found = estimate(TARGET, "somebody/head", "cpu")
    assert not found.whole
    assert found.needed == estimate(TARGET, None, "cpu").needed


def test_a_quantised_target_is_said_to_be_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10)
    config = json.loads((PAIR / "target" / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert estimate(str(tmp_path), None, "cpu") == Estimate(0, 10, "cpu", "float32", False)


@pytest.mark.parametrize(("name", "told"), [("", r"holds no config\.json"), ("config.json", "is a file; give the")])
def test_what_is_no_model_is_said_at_once(tmp_path, name, told):
    if name:
        (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        estimate(str(tmp_path / name), None, "cpu")


def test_the_room_of_gpus_is_that_of_all_of_them(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: {"cuda:0": (3, 9), "cuda:1": (4, 9)}[device])
    assert memory.room("cuda") == memory.room("spread") == 7
    assert memory.room("mps") is None
