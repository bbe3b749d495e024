"""Fixtures that many tests share: the tiny pair of the golden recordings, and the embedded default pair."""

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)  # tiny tensors only wait for a second thread; the default pair sets its own

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def tiny_engine():
    """A random three-layer Llama (hidden 64, vocabulary 256) with a head trained a little for it."""
    from eagle2.loading.load import load

    return load(str(FIXTURES / "tiny-pair" / "target"), str(FIXTURES / "tiny-pair" / "head"), "cpu", "float32")


@pytest.fixture(scope="session")
def default_engine():
    """SmolLM2-135M-Instruct and its head, as a user gets them without any option but the device."""
    from eagle2.loading.load import load

    torch.set_num_threads(os.cpu_count() or 1)
    yield load(device="cpu", dtype="float32")
    torch.set_num_threads(1)
