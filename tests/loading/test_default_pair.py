"""The embedded pair as a user gets it: SmolLM2-135M-Instruct from its package and the head in assets/."""

import pytest
import torch

from eagle2.analysis import metrics
from eagle2.methods import METHODS
from eagle2.settings import Sampling, TreeShape
from eagle2.trace.rules import faults

pytestmark = pytest.mark.model

PROMPTS = [
    "What is the capital of France?",
    "Write a Python function that adds two numbers.",
    "List three primary colours, then say which one you like — in one sentence.",
]
SAMPLINGS = [Sampling(), Sampling(0.7, top_p=0.9, seed=1), Sampling(1.0, seed=2)]


def encoded(engine, prompt):
    return engine.encode_chat([{"role": "user", "content": prompt}])


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "0.7 top-p 0.9", "1.0"])
def test_tree_decoding_gives_plain_decoding_s_tokens(default_engine, prompt, sampling):
    ids = encoded(default_engine, prompt)
    rounds = list(default_engine.rounds(ids, TreeShape(8, 5, 16), sampling, max_new_tokens=32))
    assert [token for r in rounds for token in r.committed] == default_engine.plain(ids, sampling, max_new_tokens=32)
    assert [fault for r in rounds for fault in faults(r)] == []
    assert all(r.kept == 16 and r.drafted == 264 for r in rounds if r.bonus is not None)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_output_is_that_of_transformers_own_generate(default_engine, prompt):
    ids = encoded(default_engine, prompt)
    with torch.no_grad():
        out = default_engine.target.model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=32, do_sample=False
        )
    rounds = default_engine.rounds(ids, TreeShape(10, 6, 59), max_new_tokens=32)
    assert [token for r in rounds for token in r.committed] == out[0, len(ids) :].tolist()


def test_every_method_gives_the_same_text(default_engine):
    ids = encoded(default_engine, PROMPTS[1])
    texts = {
        method: tuple(t for r in default_engine.rounds(ids, max_new_tokens=20, policy=method) for t in r.committed)
        for method in METHODS
        if method != "sps"  # there is no smaller model with its tokenizer here
    }
    assert len(set(texts.values())) == 1


def test_the_draft_is_worth_having(default_engine):
    """The first head's trees commit well over one token a pass here; a broken feature or position would not."""
    ids = encoded(default_engine, PROMPTS[1])
    rounds = list(default_engine.rounds(ids, TreeShape(10, 6, 59), max_new_tokens=48))
    assert metrics.tau(rounds) > 1.6


def test_a_chat_is_encoded_by_the_model_s_own_template(default_engine):
    ids = encoded(default_engine, "Hi")
    text = default_engine.tokenizer.decode(ids)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert default_engine.target.end_ids == {2}
    assert default_engine.target.context_limit == 8192
