import pytest
import torch
from tiny_chats import tiny_llama
from transformers import LlamaForCausalLM


@pytest.fixture(scope="module")
def one_thread():
    """Products this small are faster on one thread, many times so on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return tiny_llama()
