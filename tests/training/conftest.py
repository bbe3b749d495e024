import numpy as np
import pytest
import torch
from tiny_chats import ANSWER, tiny_llama
from transformers import LlamaForCausalLM

from eagle2.settings import Sampling
from eagle2.training import features
from eagle2.training.corpus import Corpus
from eagle2.training.data import Chats


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


@pytest.fixture(scope="module")
def target(tiny_engine):
    return tiny_engine.target


@pytest.fixture(scope="module")
def chats(tiny_engine):
    """Fifty texts of the tiny target's own, of 20 to 29 tokens, each after a prompt of six; four are held out."""
    texts, temperatures = [], []
    for seed in range(50):
        prompt = [1, 2, 3, *torch.randint(256, (3,), generator=torch.Generator().manual_seed(200 + seed)).tolist()]
        temperatures.append(0.7 * (seed % 2))
        sampling = Sampling(temperatures[-1], seed=seed)
        texts.append(prompt + tiny_engine.plain(prompt, sampling, max_new_tokens=14 + seed % 10))
    return Chats(
        np.concatenate([np.array(text, np.uint16) for text in texts]),
        np.array([len(text) for text in texts], np.int32),
        np.full(50, ANSWER, np.int32),
        np.array(temperatures, np.float32),
    )


@pytest.fixture(scope="module")
def corpus(target, chats, tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "features.f16"
    return Corpus(chats, features.compute(target.model, list(chats), path))
