"""Classic speculative sampling: a sampled chain, min(1, p/q), the residual; the output has the target's distribution.

It is worked out exactly, by enumerating every draft, every acceptance and every draw over a vocabulary of three.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import tiny
import torch
from fakes import ScriptedDrafter, ScriptedTarget, hashed, likelihood

from eagle2.decoding.engine import Engine
from eagle2.decoding.sampling import ACCEPTANCE, DRAFT, RESIDUAL, stream
from eagle2.decoding.verify import accept_or_replace, acceptance, residual
from eagle2.drafters.draft_model import IndependentDrafter
from eagle2.models.target import Target
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rules import contradictions, faults

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
PROMPT = [3, 14, 15, 9, 2, 6]
SAMPLED = Sampling(1.0, seed=5)


def test_the_chance_and_what_is_left_by_hand():
    assert [acceptance(P, Q, token) for token in range(3)] == pytest.approx([1, 0.6, 2 / 3])
    assert residual(P, Q).tolist() == [1, 0, 0]  # (.3, 0, 0), renormalised
    assert residual(Q, P) == pytest.approx([0, 2 / 3, 1 / 3])  # (0, .2, .1)
    # What is emitted: .2 x 1 + .5 x .4 x 1 + .3 x 1/3 x 1 = .5;  .5 x .6 = .3;  .3 x 2/3 = .2.
    refused = sum(Q[token] * (1 - acceptance(P, Q, token)) for token in range(3))
    emitted = [Q[token] * acceptance(P, Q, token) + refused * residual(P, Q)[token] for token in range(3)]
    assert emitted == pytest.approx(P)


def test_a_draft_model_may_know_fewer_tokens():
    assert residual(P, np.array([0.6, 0.4])).tolist() == [0, 0, 1]
    assert residual(P, np.array([0.4, 0.6])) == pytest.approx([1 / 3, 0, 2 / 3])


def test_of_equal_distributions_nothing_is_left_and_nothing_is_refused():
    assert [acceptance(P, P, token) for token in range(3)] == [1, 1, 1]
    assert residual(P, P).tolist() == P.tolist()


def verified(numbers, tokens=(1, 2), draws=()):
    """A chain of two under P, each drawn from Q, with these uniform numbers."""
    left = list(draws)
    asked = []

    def draw_at(slot, distribution):
        asked.append((slot, distribution.tolist()))
        return left.pop(0)

    result = accept_or_replace(tokens, [Q] * len(tokens), lambda slot: P, lambda slot: numbers[slot], draw_at)
    return result, asked


def test_the_chain_is_followed_to_the_first_refusal():
    result, asked = verified([0.59, 0.67], draws=[0])  # 1 is accepted under .6, 2 refused from 2/3 on
    assert (result.slots, result.tokens, asked) == ((1,), (1, 0), [(1, [1, 0, 0])])
    assert [draw.chance for draw in result.draws] == pytest.approx([0.6, 2 / 3])
    assert [draw.probability for draw in result.draws] == pytest.approx([0.3, 0.5])
    result, asked = verified([0.6], draws=[0])
    assert (result.slots, result.tokens) == ((), (0,))


def test_behind_an_accepted_chain_the_target_draws_from_its_whole_distribution():
    result, asked = verified([0.0, 0.0], draws=[2])
    assert (result.slots, result.tokens, asked) == ((1, 2), (1, 2, 2), [(2, P.tolist())])
    assert result.draws[-1].chance is None
    result, asked = verified([], tokens=(), draws=[1])
    assert (result.tokens, asked) == ((1,), [(0, P.tolist())])


class UndecidedError(Exception):
    def __init__(self, branches):
        self.branches = branches


def outcomes(tokens, distributions, distribution_at):
    """Every way a chain can be verified, with its exact probability."""
    pending = [((), 1.0)]
    while pending:
        decided, probability = pending.pop()
        left = list(decided)

        def number_at(slot, left=left):
            if left:
                return left.pop(0)
            chance = acceptance(distribution_at(slot), distributions[slot], tokens[slot])
            # Numbers under the chance accept, those from it on do not; that many there are of each.
            raise UndecidedError([(0.0, chance), (chance, 1 - chance)])

        def draw_at(slot, distribution, left=left):
            if left:
                return left.pop(0)
            raise UndecidedError(list(enumerate(distribution.tolist())))

        try:
            yield accept_or_replace(tokens, distributions, distribution_at, number_at, draw_at), probability
        except UndecidedError as question:
            pending += [((*decided, choice), probability * p) for choice, p in question.branches if p > 0]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("draft_salt", [5, 77], ids=["draft = target", "draft of another distribution"])
def test_the_joint_distribution_of_three_tokens_is_exactly_the_target_s(depth, draft_salt):
    target, draft = hashed(3, 5), hashed(3, draft_salt)
    distribution = Counter()
    pending = [((0,), 1.0)]
    while pending:
        tokens, probability = pending.pop()
        if len(tokens) > 3:
            distribution[tokens[1:4]] += probability
            continue
        for chain in itertools.product(range(3), repeat=depth):
            distributions = [np.array(draft((*tokens, *chain[:level]))) for level in range(depth)]
            drafted = math.prod(float(q[token]) for q, token in zip(distributions, chain, strict=True))

            def distribution_at(slot, tokens=tokens, chain=chain):
                return np.array(target((*tokens, *chain[:slot])))

            for result, p in outcomes(chain, distributions, distribution_at):
                pending.append(((*tokens, *result.tokens), probability * drafted * p))
    assert sum(distribution.values()) == pytest.approx(1, rel=1e-12)
    for triple in itertools.product(range(3), repeat=3):
        assert distribution[triple] == pytest.approx(likelihood(target, triple), rel=1e-12), triple


def test_streams_of_one_position_differ_by_purpose_and_from_the_plain_draw_s():
    numbers = [stream(1, 5, *purpose).random() for purpose in ((), (DRAFT,), (ACCEPTANCE,), (RESIDUAL,))]
    assert len(set(numbers)) == 4
    assert numbers == [stream(1, 5, *purpose).random() for purpose in ((), (DRAFT,), (ACCEPTANCE,), (RESIDUAL,))]


def scripted(target, draft, vocabulary):
    drafter = ScriptedDrafter(draft, vocabulary)
    return Engine(ScriptedTarget(target, vocabulary), drafter, draft_model=drafter)


def committed(rounds):
    return [token for r in rounds for token in r.committed]


def test_a_draft_that_swears_by_one_token_does_not_bend_the_distribution():
    """Target (.51, .49), draft (.9, .1): the second token appears 49 % of the time, also where it was accepted."""
    one = scripted(lambda tokens: [0.51, 0.49], lambda tokens: [0.9, 0.1], 2)
    rounds = list(one.rounds([0], TreeShape(1, 3, 3), Sampling(1.0), 1500, "sps", record=False))
    assert abs(sum(committed(rounds)) / 1500 - 0.49) < 5 * (0.51 * 0.49 / 1500) ** 0.5
    # The chance that a drafted token is accepted is sum min(p, q) = .61; a walk would follow it to (.51, .49)'s draw.
    tested = sum(len(r.accepted) + (len(r.accepted) < 3) for r in rounds)
    assert abs(sum(len(r.accepted) for r in rounds) / tested - 0.61) < 5 * (0.61 * 0.39 / tested) ** 0.5


def test_every_round_tells_its_rule_and_its_chances_and_the_file_keeps_them():
    one = scripted(hashed(10, 4), hashed(10, 3), 10)
    asked = Settings("sps", TreeShape(1, 4, 3), Sampling(0.8, top_p=0.9, seed=3), 60)
    rounds = list(one.rounds([5, 0], asked.shape, asked.sampling, 60, "sps"))
    assert {r.rule for r in rounds} == {"rejection"}
    assert [fault for r in rounds for fault in faults(r)] == []
    assert all((r.drafted, r.kept) == (4, 3) for r in rounds)
    for r in rounds:
        tested = len(r.accepted) + (len(r.accepted) < r.kept)
        chances = [check.chance for check in r.checks]
        assert all(0 <= chance <= 1 for chance in chances[:tested])
        assert chances[tested:] == [None] * (len(r.checks) - tested)
    trace = one.trace([5, 0], rounds, asked)
    assert trace_files.from_json(trace_files.to_json(trace)) == trace
    greedy = one.trace([5, 0], rounds, Settings("sps", asked.shape, Sampling(), 60))
    assert any("verified by rejection sampling" in told for told in contradictions(greedy))


def test_it_is_reproducible_can_be_gone_on_with_and_stops_as_all_methods_do():
    one = scripted(hashed(10, 4), hashed(10, 3), 10)
    asked = {"shape": TreeShape(1, 4, 4), "sampling": SAMPLED, "max_new_tokens": 40, "policy": "sps"}
    rounds = list(one.rounds([5, 0], **asked))
    assert committed(one.rounds([5, 0], **asked)) == committed(rounds)
    behind = list(one.rounds([5, 0], after=rounds[:2], **asked))
    assert [r.committed for r in behind] == [r.committed for r in rounds[2:]]
    assert (len(committed(rounds)), rounds[-1].finish) == (40, "length")


def test_at_temperature_0_it_is_a_walk_and_so_it_is_by_request():
    one = scripted(hashed(10, 4), hashed(10, 3), 10)
    greedy = list(one.rounds([5, 0], TreeShape(1, 3, 3), None, 20, "sps"))
    walked = list(one.rounds([5, 0], TreeShape(1, 3, 3), SAMPLED, 20, "sps", rule="walk"))
    assert {r.rule for r in (*greedy, *walked)} == {"walk"}
    assert committed(greedy) == one.plain([5, 0], None, 20)
    assert committed(walked) == one.plain([5, 0], SAMPLED, 20)


@pytest.mark.parametrize(("policy", "sampling"), [("eagle2", SAMPLED), ("sps", Sampling()), ("chain", SAMPLED)])
def test_a_rule_that_the_draft_does_not_allow_is_refused(policy, sampling):
    one = scripted(hashed(10, 4), hashed(10, 3), 10)
    with pytest.raises(ValueError, match="rejection sampling needs a draft that was sampled"):
        one.rounds([5, 0], sampling=sampling, policy=policy, rule="rejection")
    with pytest.raises(ValueError, match="rule 'greedy' is unknown; choose one of walk, rejection"):
        one.rounds([5, 0], sampling=sampling, policy=policy, rule="greedy")


def model(**changes):
    config = tiny.FAMILIES["llama"]
    return Target(tiny.random_model(type(config)(**{**config.to_dict(), **changes})))


def test_the_target_as_its_own_draft_is_always_accepted():
    """A wrong position, mask or cache would give the chain other distributions than the target's own."""
    target = model()
    drafter = IndependentDrafter(target, target)
    rounds = Engine(target, drafter, draft_model=drafter).rounds(PROMPT, TreeShape(1, 4, 4), SAMPLED, 41, "sps")
    assert [len(r.accepted) for r in rounds] == [4] * 8


def test_a_sampled_chain_leaves_nothing_behind_in_the_draft_model_s_cache():
    draft_model = model()
    draft = IndependentDrafter(draft_model, draft_model).begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:]), torch.zeros(len(PROMPT) - 1, 1))
    pool, distributions = draft.sample(3, Sampling(1.3, top_k=5, seed=1))
    assert (len(pool), len(distributions), draft._cache.length) == (3, 3, len(PROMPT))
    assert all(int((q > 0).sum()) == 5 and q.sum() == pytest.approx(1) for q in distributions)
    again, _ = draft.sample(3, Sampling(1.3, top_k=5, seed=1))
    assert again.token.tolist() == pool.token.tolist()


@pytest.mark.parametrize("changes", [{"vocab_size": 50}, {"vocab_size": 80}, {"max_position_embeddings": 16}])
def test_draft_models_of_other_sizes_will_do(changes):
    target = model()
    drafter = IndependentDrafter(model(num_hidden_layers=1, pad_token_id=0, **changes), target)
    rounds = list(Engine(target, drafter, draft_model=drafter).rounds(PROMPT, TreeShape(1, 3, 3), SAMPLED, 40, "sps"))
    assert len(committed(rounds)) == 40
    assert max(committed(rounds)) < tiny.VOCAB
    assert [fault for r in rounds for fault in faults(r)] == []
    assert rounds[-1].kept == (0 if "max_position_embeddings" in changes else 3)
