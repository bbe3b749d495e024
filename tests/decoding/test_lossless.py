"""The losslessness check: what counts as a difference, and what is only rounding."""

import math

import pytest
import torch
from fakes import ScriptedTarget, counting, hashed

from eagle2.decoding.lossless import AT_AN_EDGE, check, shortfall
from eagle2.decoding.plain import Output, decode
from eagle2.settings import Sampling


def logits(probabilities):
    return torch.tensor(probabilities, dtype=torch.float64).log().float()


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, top_p=0.9, seed=3), Sampling(1.5, top_k=3, seed=4)])
def test_plain_decoding_s_own_text_agrees_everywhere(sampling):
    target = ScriptedTarget(hashed(10, 4), 10)
    ids = decode(target, [1, 2], sampling, Output(40, ()))
    verdict = check(target, [1, 2], ids, sampling)
    assert verdict.lossless
    assert (verdict.positions, verdict.differing, verdict.near_ties) == (40, (), ())


def test_a_changed_token_is_named_and_does_not_disturb_the_positions_after_it():
    target = ScriptedTarget(counting(10), 10)
    verdict = check(target, [5, 0], [1, 2, 7, 8, 9], Sampling())
    assert verdict.differing == (2,)
    assert not verdict.lossless


def test_a_greedy_choice_within_rounding_of_the_best_is_a_near_tie():
    row = torch.tensor([1.0, 1.00005, 0.9])
    assert shortfall(row, 1, Sampling(), 0, 1e-4) == 0
    assert shortfall(row, 0, Sampling(), 0, 1e-4) == pytest.approx(5e-5, rel=0.01)
    assert shortfall(row, 2, Sampling(), 0, 1e-4) == pytest.approx(0.10005, rel=0.01)
    target = ScriptedTarget(lambda tokens: [0.40001, 0.4, 0.19999], 3)
    verdict = check(target, [0], [1], Sampling())
    assert (verdict.lossless, verdict.near_ties) == (True, (0,))
    assert verdict.gaps[0] == pytest.approx(math.log(0.40001 / 0.4), rel=0.1)


def test_a_token_outside_the_distribution_cannot_have_been_drawn():
    row = logits([0.6, 0.3, 0.1])
    assert shortfall(row, 2, Sampling(1.0, top_k=2), 0, 1e-4) == math.inf
    assert shortfall(row, 1, Sampling(1.0, top_p=0.5), 0, 1e-4) == math.inf


def test_rounding_decides_who_is_in_at_the_edge_of_top_k_and_of_top_p():
    """With two tokens all but equal at the edge, either may be the one left in: a draw of the other is a near-tie."""
    row = logits([0.4, 0.300001, 0.299999])
    positions = range(200)
    gaps = [min(shortfall(row, token, Sampling(1.0, top_k=2), p, 1e-4) for token in (2,)) for p in positions]
    assert AT_AN_EDGE in gaps
    row = logits([0.5, 0.25, 0.25])
    gaps = [shortfall(row, 1, Sampling(1.0, top_p=0.5), p, 1e-4) for p in positions]
    assert AT_AN_EDGE in gaps
    assert math.inf not in gaps
