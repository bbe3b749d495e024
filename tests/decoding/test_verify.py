"""The walk: which path is accepted, what the bonus is, and the output's distribution, by enumeration."""

import itertools
import math
from collections import Counter

import pytest
import torch
from fakes import ScriptedDrafter, ScriptedTarget, hashed, likelihood

from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.decoding.sampling import Draw
from eagle2.decoding.tree import flatten
from eagle2.decoding.verify import walk
from eagle2.settings import Sampling, TreeShape


def drawing(**tokens):
    """Draws by slot; a slot that is not named must not be asked."""
    return lambda slot: Draw(tokens[f"at{slot}"], 0.5)


# Slots: 0 root; 1 and 2 under it (tokens 7, 8); 3 and 4 under 1 (7, 9); 5 under 2 (7).
TOKENS, PARENTS = [7, 8, 7, 9, 7], [0, 0, 0, 1, 1, 2]


def test_the_walk_follows_children_that_hold_what_is_drawn():
    result = walk(TOKENS, PARENTS, drawing(at0=7, at1=9, at4=5))
    assert result.slots == (1, 4)
    assert result.tokens == (7, 9, 5)


def test_a_token_held_only_by_a_cousin_is_the_bonus():
    result = walk(TOKENS, PARENTS, drawing(at0=8, at2=9))
    assert result.slots == (2,)
    assert result.tokens == (8, 9)


def test_nothing_accepted_still_gives_the_bonus():
    result = walk(TOKENS, PARENTS, drawing(at0=1))
    assert result.slots == ()
    assert result.tokens == (1,)


def test_without_nodes_the_root_gives_the_bonus():
    assert walk([], [0], drawing(at0=3)).tokens == (3,)


class UndecidedError(Exception):
    def __init__(self, slot):
        self.slot = slot


def outcomes(flat, distribution_at):
    """Every way the walk can go, with its exact probability. distribution_at(slot): the target's distribution there."""
    undecided = [()]
    while undecided:
        drawn = undecided.pop()
        left = list(drawn)

        def draw_at(slot, left=left):
            if not left:
                raise UndecidedError(slot)
            return left.pop(0)

        try:
            yield (
                walk(flat.token.tolist(), flat.parent.tolist(), draw_at),
                math.prod(draw.probability for draw in drawn),
            )
        except UndecidedError as question:
            undecided += [(*drawn, Draw(token, p)) for token, p in enumerate(distribution_at(question.slot))]


def joint_distribution(target, draft, shape, length):
    """The exact distribution of the first `length` tokens that draft-and-verify rounds emit after the root, token 0."""
    distribution = Counter()
    policy = make_policy("eagle2", shape, 3)
    pending = [((0,), 1.0)]
    while pending:
        tokens, probability = pending.pop()
        if len(tokens) > length:
            distribution[tokens[1 : length + 1]] += probability
            continue
        state = ScriptedDrafter(draft, 3).begin(0)
        state.extend(torch.tensor(tokens), torch.zeros(len(tokens), 1))
        pool = state.grow(policy, shape.depth)
        flat = flatten(pool, policy.keep(pool))
        paths = [tuple(flat.token[i - 1] for i in row.nonzero().flatten().tolist() if i) for row in flat.visible]
        paths = [tuple(map(int, path)) for path in paths]
        for result, p in outcomes(flat, lambda slot, paths=paths, tokens=tokens: target((*tokens, *paths[slot]))):
            pending.append(((*tokens, *result.tokens), probability * p))
    return distribution


@pytest.mark.parametrize("top_k", [1, 2, 3])
@pytest.mark.parametrize("draft_salt", [5, 77], ids=["draft = target", "draft of another distribution"])
def test_the_joint_distribution_of_three_tokens_is_exactly_the_target_s(top_k, draft_salt):
    target = hashed(3, 5)
    distribution = joint_distribution(target, hashed(3, draft_salt), TreeShape(top_k, 2, 4), 3)
    for triple in itertools.product(range(3), repeat=3):
        assert distribution[triple] == pytest.approx(likelihood(target, triple), rel=1e-12), triple


def test_a_draft_that_swears_by_one_token_does_not_bend_the_distribution():
    """Target (.51, .49): the second token appears 49 % of the time, whatever the draft is sure of."""
    engine = Engine(ScriptedTarget(lambda tokens: [0.51, 0.49], 2), ScriptedDrafter(lambda tokens: [0.999, 0.001], 2))
    rounds = engine.rounds([0], TreeShape(1, 3, 3), Sampling(1.0), max_new_tokens=1500, record=False)
    second = sum(token for r in rounds for token in r.committed)
    assert abs(second / 1500 - 0.49) < 5 * (0.51 * 0.49 / 1500) ** 0.5


def test_the_probability_of_every_path_is_reached():
    """For a fixed tree the expected number of accepted nodes is the sum of their path probabilities."""
    target = ScriptedTarget(hashed(4, 9), 4)
    engine = Engine(target, ScriptedDrafter(hashed(4, 9), 4))
    accepted, expected, rounds = 0, 0.0, 0
    for r in engine.rounds([1], TreeShape(2, 3, 6), Sampling(1.0), max_new_tokens=900):
        reach = {-1: 1.0}
        for node in r.nodes:
            if node.slot is not None:
                reach[node.index] = reach[node.parent] * node.target_probability
        expected += sum(reach.values()) - 1
        accepted += len(r.accepted)
        rounds += 1
    assert rounds > 200
    assert accepted / rounds == pytest.approx(expected / rounds, abs=0.2)


def test_draws_are_asked_for_on_the_path_only():
    asked = []

    def draw_at(slot):
        asked.append(slot)
        return Draw({0: 8, 2: 7, 5: 7}[slot], 1.0)

    walk(TOKENS, PARENTS, draw_at)
    assert asked == [0, 2, 5]
