"""A load that tells how far it is, and that can be given up at any step."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest
import torch

import eagle2
from eagle2.loading import hub
from eagle2.loading import load as loading
from eagle2.models import cpu_linear
from eagle2.models.memory import release
from eagle2.progress import Cancelled, bar_telling

PAIR = Path(__file__).parent / "fixtures" / "tiny-pair"
TARGET, HEAD = str(PAIR / "target"), str(PAIR / "head")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_a_bar_tells_bytes_written_and_nothing_of_files_or_the_wire():
    told = []
    bar = bar_telling(lambda *step: told.append(step), "download")
    written = bar(total=100, unit="B", desc="Reconstructing")
    written.update(30)
    written.total = 200
    written.update(10)
    bar(total=7, unit="B", desc="Downloading bytes").update(7)
    bar(total=3, desc="Fetching 3 files").update(1)
    assert told == [("download", 30, 100), ("download", 40, 200)]


def test_a_bar_counts_what_it_runs_through():
    told = []
    assert list(bar_telling(lambda *step: told.append(step), "weights")("ab")) == ["a", "b"]
    assert told == [("weights", 1, 2), ("weights", 2, 2)]


def test_a_load_tells_of_weights_tensor_by_tensor_then_of_products():
    told = []
    engine = eagle2.load(TARGET, HEAD, "cpu", watch=lambda *step: told.append(step))
    tensors = len(engine.target.model.state_dict())
    assert [step for step in told if step[0] == "weights"] == [("weights", n + 1, tensors) for n in range(tensors)]
    linear = sum(isinstance(module, torch.nn.Linear) for module in engine.target.model.modules())
    assert told[tensors : tensors + linear] == [("products", n + 1, linear) for n in range(linear)]


@pytest.mark.parametrize("at", ["weights", "products"])
def test_a_load_can_be_given_up_and_leaves_nothing_behind(at, monkeypatch):
    made = []

    def choose(model, watch):
        made.append(weakref.ref(model))
        cpu_linear.choose_products(model, watch)

    monkeypatch.setattr(loading, "choose_products", choose)

    def watch(step: str, done: int, of: int) -> None:
        if step == at and done == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        eagle2.load(TARGET, HEAD, "cpu", watch=watch)
    release()
    assert [model() for model in made] == [None] * (at == "products")
    assert eagle2.load(TARGET, HEAD, "cpu").pair.head == HEAD, "the next load is not watched by the last one"


def test_a_head_s_download_is_watched(monkeypatch, tmp_path):
    told = []

    def download(name, allow_patterns, tqdm_class):
        tqdm_class(total=10, unit="B", desc="Reconstructing").update(4)
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", download)
    assert hub.fetch_head("somebody/head", lambda *step: told.append(step))[0] == tmp_path
    assert told == [("download", 4, 10)]


def test_giving_up_a_download_is_no_fault_of_the_hub(monkeypatch):
    def download(name, allow_patterns, tqdm_class):
        tqdm_class(total=10, unit="B").update(4)

    def watch(*_):
        raise Cancelled

    monkeypatch.setattr(hub, "snapshot_download", download)
    with pytest.raises(Cancelled):
        hub.fetch_head("somebody/head", watch)
