"""Recorded rounds grown again with the models that made them."""

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest
from fakes import ScriptedDrafter, ScriptedTarget, hashed
from fixtures_edges import TRACE

from eagle2.analysis.recut import cut_again
from eagle2.analysis.regrow import check_pair, regrow
from eagle2.decoding.budget import Costs
from eagle2.decoding.engine import Engine
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.rounds import Pair, Round

TABLE = Costs((1, 3, 5), (100.0, 105.0, 110.0), (1.0, 1.0, 1.0))


def tokens(r: Round, nodes) -> list[tuple[int, ...]]:
    """Nodes as the token paths that lead to them, which name the same node in every tree."""
    return [tuple(r.token[n] for n in r.path(node)) for node in nodes]


def assert_same(again: Round, r: Round) -> None:
    """The same but for times."""
    for field in fields(Round):
        if not field.name.endswith("_ms"):
            assert getattr(again, field.name) == getattr(r, field.name), field.name


def test_regrowing_at_the_same_settings_gives_the_round_as_recorded(tiny_engine):
    shape = TreeShape(4, 3, 8)
    asked_for = Settings("eagle2", shape, max_new_tokens=24)
    ids = [5, 6, 7, 8]
    trace = tiny_engine.trace(ids, list(tiny_engine.rounds(ids, shape, None, 24)), asked_for)
    for index, r in enumerate(trace.rounds):
        again = regrow(tiny_engine, trace, index, asked_for)
        for field in fields(Round):
            if field.name in ("confidence", "value"):
                assert getattr(again, field.name) == pytest.approx(getattr(r, field.name), abs=1e-5)
            elif field.name not in ("target_probability", "checks") and not field.name.endswith("_ms"):
                assert getattr(again, field.name) == getattr(r, field.name), field.name
        assert [(c.node, c.drawn, c.child) for c in again.checks] == [(c.node, c.drawn, c.child) for c in r.checks]


OTHERS = (Settings("eagle2", TreeShape(2, 5, 6)), Settings("eagle"), Settings("static", paths=((0,), (1,))))


@pytest.mark.parametrize("wanted", OTHERS, ids=lambda wanted: wanted.policy)
def test_regrowing_at_other_settings_draws_the_same_tokens_from_the_same_prefix(tiny_engine, wanted):
    ids, was = [5, 6, 7, 8], Settings("eagle2", TreeShape(4, 3, 8), max_new_tokens=24)
    trace = tiny_engine.trace(ids, list(tiny_engine.rounds(ids, was.shape, None, 24)), was)
    again = regrow(tiny_engine, trace, 2, wanted)
    start = sum(len(r.committed) for r in trace.rounds[:2])
    assert again.committed == trace.new_ids[start : start + len(again.committed)]
    assert again.root == trace.rounds[2].root
    same = cut_again(trace, 2, wanted)
    if same.exact:
        assert tokens(again, again.flattened) == tokens(trace.rounds[2], same.kept)


def scripted(costs=None):
    drafter = ScriptedDrafter(hashed(7, 4), 7)
    return Engine(ScriptedTarget(hashed(7, 3), 7), drafter, draft_model=drafter, costs=costs)


def recorded(engine, asked):
    s = asked
    rounds = engine.rounds([5, 0], s.shape, s.sampling, s.max_new_tokens, s.policy, drafter=s.drafter)
    return engine.trace([5, 0], list(rounds), asked)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_measured_budget_is_grown_again_by_the_recorded_costs_whatever_this_machine_s_are(temperature):
    asked = Settings("eagle2-auto", TreeShape(3, 4, 9), Sampling(temperature, seed=2), 30)
    trace = recorded(scripted(TABLE), asked)
    other = scripted(Costs((1, 2), (1.0, 1000.0), (1.0, 1.0)))  # where nothing would pay
    assert {r.kept for r in trace.rounds} != {0}
    for index, r in enumerate(trace.rounds):
        assert_same(regrow(other, trace, index, asked), r)


def test_a_sampled_chain_is_grown_again_from_its_own_random_streams():
    asked = Settings("sps", TreeShape(1, 3, 3), Sampling(1.0, seed=2), 30)
    engine = scripted()
    trace = recorded(engine, asked)
    assert {r.rule for r in trace.rounds} == {"rejection"}
    for index, r in enumerate(trace.rounds):
        assert_same(regrow(engine, trace, index, asked), r)
    with pytest.raises(ValueError, match="grow it again with its own method, sps, not eagle2"):
        regrow(engine, trace, 1, Settings("eagle2", sampling=asked.sampling))


def test_a_walked_round_is_grown_again_as_a_walk_even_by_the_method_that_would_sample():
    """So that the target's choices stay the recorded ones."""
    engine = scripted()
    trace = recorded(engine, Settings("eagle2", TreeShape(3, 3, 9), Sampling(1.0, seed=2), 30))
    again = regrow(engine, trace, 1, Settings("sps", TreeShape(1, 3, 3)))
    assert again.rule == "walk"
    assert again.committed == trace.new_ids[len(trace.rounds[0].committed) :][: len(again.committed)]


def test_regrowing_needs_the_models_that_made_the_run(tiny_engine):
    with pytest.raises(ValueError, match="load the same models"):
        regrow(tiny_engine, TRACE, 0, Settings())


@pytest.mark.parametrize(
    ("field", "theirs", "named"),
    [("target_revision", "abc", "target revision is abc"), ("vocabulary", 77, "vocabulary is 77")],
)
def test_the_same_models_at_another_version_are_not_the_same(field, theirs, named):
    known = SimpleNamespace(pair=Pair("target", "head", target_revision="def", vocabulary=256))
    check_pair(known, Pair("target", "head"))  # an older file does not say
    check_pair(known, known.pair)
    with pytest.raises(ValueError, match=named):
        check_pair(known, replace(known.pair, **{field: theirs}))
