"""Whatever a drafter says, the text is plain decoding's: NaN, infinities, equal values, ids that do not exist."""

import math
from dataclasses import replace

import pytest
import torch
from fakes import ScriptedDraft, committed, counting, scripted_engine

from eagle2.decoding import tree
from eagle2.drafters.base import grow_tree
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.files import from_json, to_json

PROMPT = [5, 0]
NAN, INFINITE = float("nan"), float("inf")


def rows(kind, count, vocabulary=10):
    """Log-probabilities [count, vocabulary] of one kind of nonsense."""
    values = {
        "all NaN": [NAN] * vocabulary,
        "a NaN among them": [NAN, *[math.log(0.1)] * (vocabulary - 1)],
        "all impossible": [-INFINITE] * vocabulary,
        "all certain": [0.0] * vocabulary,
        "infinitely certain": [INFINITE] * vocabulary,
        "more than certain": [3.0, *[-1.0] * (vocabulary - 1)],
    }
    return torch.tensor([values[kind]] * count)


IDS = {
    "ids beyond the vocabulary": torch.tensor([-7, 3, 10, 99, 10**12]),
    "the same token everywhere": torch.ones(5, dtype=torch.int64),
}


class NonsenseDraft(ScriptedDraft):
    def __init__(self, kind):
        super().__init__(counting(10))
        self.kind = kind

    def grow(self, policy, depth):
        if self.kind == "ids beyond the vocabulary":
            ids = torch.tensor([-7, 3, 10, 99, 10**12])
            return grow_tree(
                policy, depth, rows("all certain", 1, 5), lambda _, n, __: rows("all certain", len(n), 5), ids
            )
        if self.kind == "the same token everywhere":
            ids = torch.full((5,), 1)
            return grow_tree(
                policy, depth, rows("all certain", 1, 5), lambda _, n, __: rows("all certain", len(n), 5), ids
            )
        return grow_tree(policy, depth, rows(self.kind, 1), lambda _, nodes, __: rows(self.kind, len(nodes)))


class NonsenseDrafter:
    def __init__(self, kind, vocabulary):
        self.kind, self.vocabulary = kind, vocabulary

    def begin(self, first):
        return NonsenseDraft(self.kind)


KINDS = {
    "all NaN": 10,
    "a NaN among them": 10,
    "all impossible": 10,
    "all certain": 10,
    "infinitely certain": 10,
    "more than certain": 10,
    "ids beyond the vocabulary": 5,
    "the same token everywhere": 5,
}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "policy", ["chain", "eagle", "eagle2", "eagle2-no-value", "eagle2-no-rerank", "eagle2-no-both"]
)
@pytest.mark.parametrize(("kind", "vocabulary"), KINDS.items())
def test_the_text_is_plain_decodings_and_the_run_can_be_saved(kind, vocabulary, policy, temperature):
    engine = scripted_engine()
    engine.drafter = NonsenseDrafter(kind, vocabulary)
    settings = Settings(policy, TreeShape(3, 3, 7), Sampling(temperature, seed=4), 12)
    made = list(engine.run(PROMPT, settings))
    assert committed(made) == engine.plain(PROMPT, settings.sampling, 12)
    assert all(0 <= c <= 1 for r in made for c in (*r.confidence, *r.value))
    assert from_json(to_json(engine.trace(PROMPT, made, settings))).rounds == tuple(made)


def test_nan_counts_as_confidence_0_and_sorts_last():
    tokens, log_p = tree.top_children(torch.tensor([[NAN, -1.0, NAN, -2.0]]), 3)
    assert tokens.tolist() == [[1, 3, 0]]
    assert log_p.tolist() == [[-1.0, -2.0, -INFINITE]]
    pool = tree.Pool.empty().grow(torch.tensor([-1, -1]), torch.tensor([4, 5]), torch.tensor([NAN, -0.5]))
    assert pool.log_value.tolist() == [-INFINITE, -0.5]


def test_a_kept_node_without_its_parent_is_refused():
    pool = tree.Pool.empty().grow(torch.tensor([-1, -1]), torch.tensor([4, 5]), torch.tensor([-0.1, -0.2]))
    pool = pool.grow(torch.tensor([0]), torch.tensor([6]), torch.tensor([-0.1]))
    with pytest.raises(ValueError, match="node 2 is kept at depth 2, its parent is not"):
        tree.flatten(pool, torch.tensor([1, 2]))


def test_a_head_that_overflows_changes_no_text(tiny_engine):
    weights = tiny_engine.drafter.head.fc.weight
    kept = weights.detach().clone()
    try:
        with torch.no_grad():
            weights.fill_(3e38)
        made = list(tiny_engine.rounds([11] * 9, TreeShape(8, 5, 16), max_new_tokens=20))
    finally:
        with torch.no_grad():
            weights.copy_(kept)
    assert committed(made) == tiny_engine.plain([11] * 9, max_new_tokens=20)
    assert all(0 <= c <= 1 for r in made for c in r.confidence)


class TestIdsOfOthers:
    def test_rounds_to_continue_after_hold_ids_of_this_vocabulary(self):
        engine = scripted_engine()
        first = next(engine.rounds(PROMPT, TreeShape(1, 2, 2), max_new_tokens=9))
        strange = replace(first, committed=(*first.committed[:-1], 10))
        with pytest.raises(ValueError, match="id 3 of round 0 of after is 10; the vocabulary has ids 0 to 9"):
            engine.rounds(PROMPT, TreeShape(1, 2, 2), max_new_tokens=9, after=[strange])

    def test_a_text_to_check_holds_ids_of_this_vocabulary(self):
        with pytest.raises(ValueError, match="id 1 of the text to check is -1; the vocabulary has ids 0 to 9"):
            scripted_engine().check(PROMPT, [1, -1], Sampling())
