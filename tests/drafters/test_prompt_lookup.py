"""Prompt lookup by hand: which earlier place is continued, and how far."""

import pytest
import torch
from fakes import ScriptedTarget, counting

from eagle2.analysis import metrics
from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.drafters.prompt_lookup import LONGEST, NgramDrafter
from eagle2.settings import Sampling, TreeShape


def draft(*tokens):
    made = NgramDrafter().begin(tokens[0])
    made.extend(torch.tensor(tokens[1:], dtype=torch.int64), torch.zeros(len(tokens) - 1, 1))
    return made


@pytest.mark.parametrize(
    ("text", "continuation"),
    [
        ([7], []),
        ([1, 2, 3], []),  # the last token is new
        ([5, 6, 5], [6, 5]),  # up to the text's end, which the match itself lies in
        ([5, 5], [5]),
        ([1, 2, 9, 1, 3, 1], [3, 1]),  # the latest occurrence of 1, not the first
        ([1, 2, 3, 8, 9, 2, 3, 7, 1, 2, 3], [8, 9, 2, 3, 7, 1, 2, 3]),  # 1 2 3 is longer than the later 2 3
        ([4, 1, 2, 6, 4, 1, 2, 7, 4, 1, 2], [7, 4, 1, 2]),  # the latest among equally long ones
    ],
)
def test_the_longest_n_gram_is_continued_as_it_was_last(text, continuation):
    assert draft(*text).continuation() == continuation


def test_no_more_than_the_longest_context_is_compared():
    ending = list(range(10, 10 + LONGEST))
    text = [1, *ending, 50, 2, *ending, 60, 1, *ending]  # all of 1 10 11 ... stood at the beginning
    assert draft(*text).continuation()[0] == 60


def test_tokens_may_arrive_in_any_portions():
    text = [4, 1, 2, 6, 4, 1, 2, 7, 4, 1]
    pieces = NgramDrafter().begin(4)
    for token in text[1:]:
        pieces.extend(torch.tensor([token]), torch.zeros(1, 1))
    assert pieces.continuation() == draft(*text).continuation() == [2, 7, 4, 1]


def test_the_draft_is_a_chain_of_certain_nodes_no_deeper_than_asked():
    pool = draft(1, 2, 3, 4, 1).grow(make_policy("ngram", TreeShape(8, 3, 9), 100), 3)
    assert pool.token.tolist() == [2, 3, 4]
    assert pool.parent.tolist() == [-1, 0, 1]
    assert pool.depth.tolist() == [1, 2, 3]
    assert pool.log_confidence.tolist() == pool.log_value.tolist() == [0, 0, 0]
    assert pool.expanded.tolist() == [True, True, False]


@pytest.mark.parametrize("policy", ["ngram", "chain", "eagle", "eagle2", "eagle2-no-value", "eagle2-no-rerank"])
@pytest.mark.parametrize("text", [(1, 2, 3, 4, 1), (1, 2, 3)], ids=["a match", "no match"])
def test_any_policy_can_cut_it(policy, text):
    made = make_policy(policy, TreeShape(2, 3, 2), 100)
    pool = draft(*text).grow(made, 3)
    kept = made.keep(pool)
    assert kept.tolist() == list(range(min(len(pool), made.shape.max_nodes)))


def test_with_nothing_to_look_up_the_root_alone_is_verified():
    """The target counts 1 2 3 4 0 1 2 ...: only from the second time around is there something to find."""
    one = Engine(ScriptedTarget(counting(5), 5))
    rounds = list(one.rounds([3, 0], TreeShape(1, 4, 4), max_new_tokens=15, policy="ngram"))
    # The 3 of the prompt was followed by 0 1 2 3, all of which is wrong after the second 3.
    assert [r.committed for r in rounds] == [(1, 2), (3,), (4,), (0,), (1, 2, 3, 4, 0), (1, 2, 3, 4, 0)]
    assert [(r.kept, len(r.accepted)) for r in rounds] == [(0, 0), (0, 0), (4, 0), (0, 0), (4, 4), (4, 4)]
    assert [t for r in rounds for t in r.committed] == one.plain([3, 0], max_new_tokens=15)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_it_needs_no_draft_model_and_changes_nothing(tiny_engine, temperature):
    one = Engine(tiny_engine.target)
    prompt, sampling = [1, 2, 3, 1, 2, 3, 1, 2], Sampling(temperature, seed=3)
    rounds = list(one.rounds(prompt, sampling=sampling, max_new_tokens=40, policy="ngram"))
    assert [t for r in rounds for t in r.committed] == one.plain(prompt, sampling, max_new_tokens=40)
    assert all(value == 1 for r in rounds for value in r.value)
    assert metrics.tau(rounds) >= 1
