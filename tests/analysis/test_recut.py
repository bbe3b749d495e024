"""Recorded rounds cut again: by hand, against the tensors of `tree.py` and `policy.py`, and against recorded runs."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from fakes import ScriptedDraft, hashed
from fixtures_edges import FIRST, SECOND, TRACE
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.analysis.recut import Cut, as_round, cut, cut_again, cut_auto, cut_static, outcome
from eagle2.analysis.target_choices import choices
from eagle2.decoding import record as recorder
from eagle2.decoding.budget import Costs
from eagle2.decoding.policy import make_policy
from eagle2.decoding.tree import flatten
from eagle2.methods import EAGLE_PATHS
from eagle2.settings import Settings, TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import ROOT, Round

TRACES = sorted((Path(__file__).resolve().parents[2] / "assets" / "traces").glob("*.json.gz"))
VOCABULARY = 7
TABLES = (
    Costs((1, 3, 5), (100.0, 120.0, 200.0), (10.0, 20.0, 20.0)),
    Costs((1, 2, 8), (100.0, 101.0, 110.0), (1.0, 1.0, 2.0)),
    Costs((1, 64), (50.0, 60.0), (5.0, 5.5)),
    Costs((1, 2), (1.0, 1000.0), (1.0, 1.0)),
)
POLICIES = ("eagle2", "eagle2-no-value", "eagle2-no-rerank", "eagle2-no-both", "chain")


def drafted_round(policy: str, shape: TreeShape, salt: int, costs: Costs | None = None) -> Round:
    """A round drafted by the tensor code over an arbitrary distribution of seven tokens; nothing of it is accepted."""
    made = make_policy(policy, shape, VOCABULARY, costs)
    pool = ScriptedDraft(hashed(VOCABULARY, salt)).grow(made, made.shape.depth)
    flat = flatten(pool, made.keep(pool))
    columns = recorder.node_columns(pool, flat, torch.zeros(len(flat.parent), VOCABULARY), {})
    return Round(1, 5, 0, (), 99, (99,), None, drafted=len(pool), kept=len(flat.index), **columns)


def tokens(r: Round, nodes) -> list[tuple[int, ...]]:
    """Nodes as the token paths that lead to them, which name the same node in every tree."""
    return [tuple(r.token[n] for n in r.path(node)) for node in nodes]


def asked(policy: str) -> dict[str, bool]:
    return {
        "by_value": policy not in ("eagle2-no-value", "eagle2-no-both"),
        "rerank": policy not in ("eagle2-no-rerank", "eagle2-no-both"),
    }


# FIRST's pool: 0 (.6), 1 (.3), and under 0: 2 (.3), 3 (.24); top_k 2, depth 2.


def test_a_smaller_max_nodes_keeps_the_best_by_value():
    assert cut(FIRST, TreeShape(2, 1, 1)) == Cut((0, 1), (), (0,), ())
    made = cut(FIRST, TreeShape(2, 2, 3))
    assert made.kept == (0, 1, 2)
    assert made.drafted == (0, 1, 2, 3)


def test_what_was_never_drafted_is_missing_not_guessed():
    # top_k 2 would have fed both 0 and 1; the recording holds children of 0 only
    assert cut(FIRST, TreeShape(2, 2, 3)).missing == (1,)
    assert not cut(FIRST, TreeShape(2, 2, 3)).exact
    assert cut(FIRST, TreeShape(1, 2, 2)) == Cut((0, 2), (0,), (0, 2), ())
    assert cut(FIRST, TreeShape(3, 1, 2)).missing == (ROOT,)
    assert cut(FIRST, TreeShape(1, 3, 3)).missing == (2,)


def test_a_static_tree_is_as_much_of_its_paths_as_was_drafted():
    assert cut_static(FIRST, [(0,), (1,), (0, 0), (0, 1)]) == Cut((0, 1, 2, 3), (0,), (0, 1, 2, 3), ())
    assert cut_static(FIRST, [(0,), (1,), (1, 0)]) == Cut((0, 1), (1,), (0, 1), (1,))
    assert cut_static(FIRST, [(0,), (2,)]).missing == (ROOT,)
    with pytest.raises(ValueError, match=r"path \[1, 0\] has no parent"):
        cut_static(FIRST, [(0,), (1, 0)])


def test_an_outcome_follows_the_targets_choices_as_far_as_the_cut_keeps_them():
    # the target chose 4 (node 0), 6 (node 2), then 8
    whole = outcome(FIRST, cut(FIRST, TreeShape(2, 2, 4)), (4, 6, 8))
    assert whole.accepted == (0, 2)
    assert (whole.tokens, whole.verified, whole.settled) == (3, 5, True)
    assert whole.predicted == pytest.approx(1 + 0.6 + 0.3 + 0.3 + 0.24)
    small = outcome(FIRST, cut(FIRST, TreeShape(2, 2, 1)), (4, 6, 8))
    assert (small.accepted, small.tokens, small.verified, small.settled) == ((0,), 2, 2, True)


def test_an_outcome_is_not_settled_where_the_known_choices_end_inside_the_cut():
    assert not outcome(FIRST, cut(FIRST, TreeShape(2, 2, 4)), (4,)).settled
    assert outcome(FIRST, cut(FIRST, TreeShape(2, 2, 1)), (4,)).settled  # node 0 is a leaf there
    assert outcome(FIRST, cut(FIRST, TreeShape(2, 2, 4)), (5,)).settled  # so is node 1


def test_the_cut_as_a_round_has_its_own_slots_fates_and_checks():
    r = as_round([FIRST, SECOND], 0, cut(FIRST, TreeShape(2, 2, 1)))
    assert r.slot == (1, None, None, None)
    assert r.fate == ("accepted", "pruned", "pruned", "pruned")
    assert (r.accepted, r.bonus, r.committed) == ((0,), 6, (3, 4, 6))
    assert [(c.node, c.drawn, c.child) for c in r.checks] == [(ROOT, 4, 0), (0, 6, None)]
    assert r.target_probability == (0.7, None, None, None)
    all_of_it = as_round([FIRST, SECOND], 0, cut(FIRST, TreeShape(2, 2, 4)))
    assert all_of_it.target_probability == (0.7, None, 0.8, 0.1)  # the target never saw node 1
    assert all_of_it.committed == FIRST.committed


def test_nodes_that_were_not_recorded_cannot_be_cut():
    with pytest.raises(ValueError, match="round 3 has no recorded nodes"):
        cut(replace(FIRST, index=2, token=()), TreeShape())


@given(
    policy=st.sampled_from(POLICIES),
    top_k=st.integers(1, 4),
    depth=st.integers(1, 4),
    max_nodes=st.integers(1, 30),
    salt=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=60)
def test_at_its_own_settings_a_round_is_cut_exactly_as_recorded(policy, top_k, depth, max_nodes, salt):
    shape = make_policy(policy, TreeShape(top_k, depth, max_nodes), VOCABULARY).shape
    r = drafted_round(policy, shape, salt)
    again = cut(r, shape, **asked(policy))
    assert again == Cut(tuple(range(r.drafted)), tuple(i for i, e in enumerate(r.expanded) if e), r.flattened, ())


@given(
    top_k=st.integers(1, 4),
    depth=st.integers(1, 5),
    max_nodes=st.integers(1, 30),
    salt=st.integers(0, 10_000),
    table=st.sampled_from(TABLES),
)
@settings(deadline=None, max_examples=120)
def test_a_round_of_a_measured_budget_is_cut_exactly_as_recorded_from_its_costs(top_k, depth, max_nodes, salt, table):
    shape = TreeShape(top_k, depth, max_nodes)
    r = drafted_round("eagle2-auto", shape, salt, table)
    wanted = Cut(tuple(range(r.drafted)), tuple(i for i, e in enumerate(r.expanded) if e), r.flattened, ())
    assert cut_auto(r, shape, table) == wanted
    trace = replace(
        TRACE,
        settings=Settings("eagle2-auto", shape),
        effective=make_policy("eagle2-auto", shape, VOCABULARY, table).shape,
        rounds=(replace(r, index=0),),
        costs=table,
    )
    assert cut_again(trace, 0, trace.settings) == wanted


@given(
    shapes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 30)), min_size=2, max_size=2),
    salt=st.integers(0, 10_000),
    tables=st.lists(st.sampled_from(TABLES), min_size=2, max_size=2),
)
@settings(deadline=None, max_examples=120)
def test_an_exact_cut_by_costs_is_the_tree_that_they_grow(shapes, salt, tables):
    was, other = (TreeShape(*shape) for shape in shapes)
    for policy in ("eagle2", "eagle2-auto"):
        r = drafted_round(policy, was, salt, tables[0])
        truth = drafted_round("eagle2-auto", other, salt, tables[1])
        made = cut_auto(r, other, tables[1])
        if made.exact:
            assert tokens(r, made.drafted) == tokens(truth, range(truth.drafted))
            assert tokens(r, made.kept) == tokens(truth, truth.flattened)
        assert {r.parent[node] for node in made.kept} <= {ROOT, *made.kept}


@given(
    recorded=st.sampled_from(POLICIES),
    wanted=st.sampled_from(POLICIES),
    shapes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 30)), min_size=2, max_size=2),
    salt=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=120)
def test_an_exact_cut_is_the_tree_that_the_other_settings_grow(recorded, wanted, shapes, salt):
    was = make_policy(recorded, TreeShape(*shapes[0]), VOCABULARY).shape
    other = make_policy(wanted, TreeShape(*shapes[1]), VOCABULARY).shape
    r = drafted_round(recorded, was, salt)
    truth = drafted_round(wanted, other, salt)
    made = cut(r, other, **asked(wanted))
    if made.exact:
        assert tokens(r, made.drafted) == tokens(truth, range(truth.drafted))
        assert tokens(r, made.kept) == tokens(truth, truth.flattened)
    same_pool = asked(recorded)["by_value"] == asked(wanted)["by_value"] and was.top_k == other.top_k
    assert made.exact or not (same_pool and other.depth <= was.depth)
    assert {r.parent[node] for node in made.kept} <= {ROOT, *made.kept}


@given(salt=st.integers(0, 10_000), paths=st.lists(st.sampled_from(EAGLE_PATHS), min_size=1, max_size=12, unique=True))
@settings(deadline=None, max_examples=60)
def test_an_exact_static_cut_is_the_static_tree(salt, paths):
    whole = sorted({path[:n] for path in paths for n in range(1, len(path) + 1)}, key=lambda p: (len(p), p))
    r = drafted_round("eagle2", TreeShape(4, 5, 10), salt)
    static = make_policy(whole, TreeShape(), VOCABULARY)
    pool = ScriptedDraft(hashed(VOCABULARY, salt)).grow(static, static.shape.depth)
    made = cut_static(r, whole)
    if made.exact:
        assert [r.token[node] for node in made.kept] == pool.token.tolist()
    assert len(made.kept) == len(whole) or not made.exact


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_recorded_runs_are_reproduced_at_their_own_settings(path):
    trace = trace_files.load(path)
    for index, r in enumerate(trace.rounds):
        made = cut_again(trace, index, trace.settings)
        assert made.exact
        assert made.kept == r.flattened
        found = outcome(r, made, choices(trace.rounds, index))
        assert found.accepted == r.accepted
        assert found.settled
        assert found.predicted == pytest.approx(r.predicted)
        again = as_round(trace.rounds, index, made)
        for field in fields(Round):
            if not field.name.endswith("_ms") and field.name not in ("finish", "committed", "fate"):
                assert getattr(again, field.name) == getattr(r, field.name), field.name


def test_a_round_is_cut_by_the_settings_of_another_method():
    trace = trace_files.load(next(path for path in TRACES if path.name.startswith("pancakes")))
    unranked = cut_again(trace, 0, Settings("eagle2-no-rerank", TreeShape(10, 6, 59)))
    assert unranked.exact
    assert len(unranked.kept) == 60
    chain = cut_again(trace, 0, Settings("chain", TreeShape(10, 6, 59)))
    assert len(chain.kept) <= 6
    static = cut_again(trace, 0, Settings("eagle"))
    assert len(static.kept) + len(static.missing) > 0
    assert all(node in static.expanded or node == ROOT for node in static.missing)


def test_a_round_near_the_end_of_the_context_is_cut_no_deeper_than_it_could_be():
    trace = replace(TRACE, effective=TreeShape(2, 5, 9))  # five levels asked for, two recorded
    assert cut_again(trace, 0, Settings("eagle2", TreeShape(1, 5, 9))) == Cut((0, 2), (0,), (0, 2), ())


def test_what_a_recording_cannot_tell_is_refused_in_a_sentence():
    skipping = replace(TRACE, settings=Settings("static", paths=((0,), (2,))))
    with pytest.raises(ValueError, match="skips child ranks"):
        cut_again(skipping, 0, Settings())
    with pytest.raises(ValueError, match="policy 'plain' cannot be cut again"):
        cut_again(TRACE, 0, Settings("plain"))
    with pytest.raises(ValueError, match="recorded no costs for eagle2-auto"):
        cut_again(TRACE, 0, Settings("eagle2-auto"))
    lookup = replace(TRACE, settings=Settings("eagle2", drafter="ngram"))
    for trace, wanted in ((lookup, Settings()), (TRACE, Settings("eagle2", drafter="draft-model"))):
        with pytest.raises(ValueError, match="a pool holds one drafter's likeliest guesses"):
            cut_again(trace, 0, wanted)
    sampled = replace(TRACE, settings=Settings("sps"))
    with pytest.raises(ValueError, match="policy 'sps' cannot be cut again"):
        cut_again(sampled, 0, Settings())


def test_a_budget_clipped_by_the_context_is_told_from_one_that_stopped_itself():
    """With levels that cost nothing the recorded tree would have gone on; deeper ones were never possible there."""
    free = Costs((1, 64), (100.0, 100.0), (1.0, 1.0))
    deep, clipped = (drafted_round("eagle2-auto", TreeShape(2, depth, 20), 3, free) for depth in (3, 2))
    trace = replace(
        TRACE, settings=Settings("eagle2-auto", TreeShape(2, 3, 20)), effective=TreeShape(2, 3, 10), costs=free
    )
    assert max(deep.depth) == 3
    made = cut_again(replace(trace, rounds=(replace(clipped, index=0),)), 0, trace.settings)
    assert (made.exact, made.kept) == (True, clipped.flattened)
    dear = Costs((1, 64), (100.0, 100.0), (1.0, 1000.0))  # a level of several rows never pays
    stopped = drafted_round("eagle2-auto", TreeShape(2, 3, 20), 3, dear)
    assert max(stopped.depth) < 3
    trace = replace(trace, rounds=(replace(stopped, index=0),), costs=dear)
    assert cut_again(trace, 0, trace.settings).exact
    assert not cut_again(trace, 0, Settings("eagle2", TreeShape(2, 3, 20))).exact  # deeper nodes were possible
