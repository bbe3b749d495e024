"""What weights take and what a device has, before anything is loaded."""

import pytest
import torch
from tiny import FAMILIES, random_model

import eagle2
from eagle2.loading import load as loading
from eagle2.models.memory import GIB, free_main_memory, refuse_too_large, weights_bytes


def test_weights_are_added_up_without_being_made():
    config = FAMILIES["llama"]
    parameters = sum(p.numel() for p in random_model(config).parameters())
    assert weights_bytes(config, torch.float32) == 4 * parameters
    assert weights_bytes(config, torch.bfloat16) == 2 * parameters


class TestFreeMainMemory:
    @pytest.fixture
    def machine(self, tmp_path):
        (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemFree:  1 kB\nMemAvailable:  2048 kB\n")
        return tmp_path

    def test_it_is_the_machines(self, machine):
        assert free_main_memory(machine / "meminfo", machine) == 2 * 2**20

    def test_a_container_may_have_less(self, machine):
        (machine / "memory.max").write_text("1000000\n")
        (machine / "memory.current").write_text("400000\n")
        assert free_main_memory(machine / "meminfo", machine) == 600_000
        (machine / "memory.max").write_text("max\n")
        assert free_main_memory(machine / "meminfo", machine) == 2 * 2**20

    def test_elsewhere_it_is_not_known(self, tmp_path):
        assert free_main_memory(tmp_path / "none", tmp_path) is None


def test_what_will_not_fit_is_refused_with_sizes():
    with pytest.raises(MemoryError) as caught:
        refuse_too_large("a/model", 8 * GIB, 4 * GIB, "cpu")
    assert str(caught.value) == (
        "a/model needs about 8.0 GiB for its weights, and cpu has 4.0 GiB free; "
        "choose a smaller model, half precision (dtype bfloat16), or another device"
    )
    refuse_too_large("a/model", 8 * GIB, 9 * GIB, "cpu")
    refuse_too_large("a/model", 8 * GIB, None, "mps")


def test_a_model_too_large_is_refused_before_it_is_loaded(tmp_path, monkeypatch):
    random_model(FAMILIES["llama"]).save_pretrained(tmp_path)
    monkeypatch.setattr(loading, "free_bytes", lambda device: 1000)
    with pytest.raises(MemoryError, match=r"needs about 0\.0 GiB for its weights, and cpu has 0\.0 GiB free"):
        eagle2.load(tmp_path, device="cpu")
