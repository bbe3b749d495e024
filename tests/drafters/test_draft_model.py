"""An independent draft model: its trees, its cache of committed tokens, and output that equals plain decoding's."""

import pytest
import tiny
import torch

from eagle2.analysis import metrics
from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.drafters.draft_model import IndependentDrafter
from eagle2.methods import METHODS
from eagle2.models.target import Target
from eagle2.settings import Sampling, TreeShape
from eagle2.trace.rules import faults

PROMPT = [3, 14, 15, 9, 2, 6]


def model(family="llama", **changes):
    config = tiny.FAMILIES[family]
    return Target(tiny.random_model(type(config)(**{**config.to_dict(), **changes})))


def engine(target=None, draft=None):
    target = target or model()
    drafter = IndependentDrafter(draft or model(num_hidden_layers=1), target)
    return Engine(target, drafter, draft_model=drafter)


def committed(rounds):
    return [token for r in rounds for token in r.committed]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", [m for m in METHODS if m != "plain"])
def test_every_policy_takes_it_and_the_text_is_plain_decoding_s(method, temperature):
    one, sampling = engine(), Sampling(temperature, seed=5)
    rounds = list(one.rounds(PROMPT, TreeShape(3, 3, 7), sampling, max_new_tokens=40, policy=method, rule="walk"))
    assert committed(rounds) == one.plain(PROMPT, sampling, max_new_tokens=40)
    assert [fault for r in rounds for fault in faults(r)] == []


@pytest.mark.parametrize("family", ["llama", "qwen3 with a window", "mistral", "gemma2"])
def test_the_target_as_its_own_draft_is_always_right(family):
    """Also past a sliding window: a wrong mask or position would make it disagree with itself."""
    target = model(family)
    rounds = list(engine(target, target).rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=41, policy="sps"))
    assert [len(r.accepted) for r in rounds] == [4] * 8
    assert metrics.tau(rounds) == 5


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2 with a window"])
def test_each_node_s_confidence_is_the_model_s_own_after_its_path(family):
    draft_model = model(family)
    drafter = IndependentDrafter(draft_model, draft_model)
    draft = drafter.begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:]), torch.zeros(len(PROMPT) - 1, 1))
    pool = draft.grow(make_policy("eagle2", TreeShape(3, 3, 7), tiny.VOCAB), 3)
    for node in range(len(pool)):
        path, up = [], node
        while up >= 0:
            path.insert(0, int(pool.token[up]))
            up = int(pool.parent[up])
        with torch.no_grad():
            stock = draft_model.model(input_ids=torch.tensor([[*PROMPT, *path[:-1]]])).logits[0, -1].log_softmax(-1)
        assert float(pool.log_confidence[node]) == pytest.approx(float(stock[path[-1]]), abs=1e-4)


def test_after_a_round_its_cache_equals_a_fresh_pass_over_the_committed_tokens():
    draft_model = model()
    drafter = IndependentDrafter(draft_model, draft_model)
    draft = drafter.begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:4]), torch.zeros(3, 1))
    policy = make_policy("eagle2", TreeShape(3, 3, 7), tiny.VOCAB)
    draft.grow(policy, 3)
    draft.extend(torch.tensor(PROMPT[4:]), torch.zeros(2, 1))
    draft.grow(policy, 3)
    fresh = draft_model.begin()
    draft_model.extend(fresh, PROMPT)
    assert draft._cache.length == fresh.length == len(PROMPT)
    assert len(draft._cache.waiting) == 0
    for layer, anew in zip(draft._cache.layers.layers, fresh.layers.layers, strict=True):
        torch.testing.assert_close(layer.rows.keys, anew.rows.keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(layer.rows.values, anew.rows.values, atol=1e-5, rtol=1e-5)


def test_past_its_own_context_it_drafts_nothing_and_the_run_goes_on():
    one = engine(draft=model(max_position_embeddings=16))
    rounds = list(one.rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=30, policy="sps"))
    assert committed(rounds) == one.plain(PROMPT, max_new_tokens=30)
    assert rounds[0].kept == 4
    assert rounds[-1].kept == 0


@pytest.mark.parametrize("vocabulary", [50, 80])
def test_differently_padded_vocabularies_meet_in_the_ids_that_both_know(vocabulary):
    one = engine(draft=model(vocab_size=vocabulary, pad_token_id=0))
    assert one.draft_model.vocabulary == min(vocabulary, tiny.VOCAB)
    rounds = list(one.rounds(PROMPT, TreeShape(4, 3, 9), Sampling(1.5, seed=2), 40, policy="sps", rule="walk"))
    assert committed(rounds) == one.plain(PROMPT, Sampling(1.5, seed=2), 40)


def test_without_one_sps_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"policy 'sps' needs a draft model.*give an independent draft model"):
        Engine(model()).rounds(PROMPT, policy="sps")
