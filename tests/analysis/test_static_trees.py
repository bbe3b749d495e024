"""The target's way through recorded pools, what a static tree accepts of it, and trees fitted to many ways."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from fixtures_edges import FIRST, SECOND
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.analysis.recut import cut_static, outcome, places
from eagle2.analysis.static_trees import Mean, Way, accepted, fitted, mean, way
from eagle2.analysis.target_choices import choices
from eagle2.methods import EAGLE_PATHS
from eagle2.trace import files as trace_files
from eagle2.tree_paths import checked

TRACES = sorted((Path(__file__).resolve().parents[2] / "assets" / "traces").glob("*.json.gz"))

# FIRST's pool: 0 [0], 1 [1], and under 0: 2 [0, 0], 3 [0, 1]. The target chose 4 (node 0), 6 (node 2), then 8.
RUN = [FIRST, SECOND]


def test_places_are_child_ranks_and_a_static_runs_own_paths():
    assert places(FIRST) == ((0,), (1,), (0, 0), (0, 1))
    assert places(FIRST, [(0, 3), (0,), (0, 1), (2,)]) == ((0,), (2,), (0, 1), (0, 3))
    with pytest.raises(ValueError, match="no recorded nodes"):
        places(replace(FIRST, token=()))


def test_a_way_is_the_targets_choices_by_rank():
    assert way(RUN, 0) == Way(
        (0, 0)
    )  # what the target wants after both levels is known, but no third level was drafted
    assert way(RUN, 1) == Way((), frozenset({0}))  # it refused the one node there was
    assert way([FIRST], 0, [(0,), (1,), (0, 2), (0, 3)]) == Way((0, 2))
    other = replace(FIRST, token=(4, 5, 2, 7), accepted=(0,), bonus=6)
    assert way([other], 0) == Way((0,), frozenset({0, 1}))


def test_a_tree_accepts_as_much_of_a_way_as_it_holds():
    assert accepted({(0,), (1,)}, Way((0, 0))) == (1, True)
    assert accepted({(1,)}, Way((0, 0))) == (0, True)
    assert accepted({(0,), (0, 0)}, Way((0, 0))) == (2, True)
    assert accepted({(0,), (0, 0), (0, 0, 0)}, Way((0, 0))) == (2, False)  # nothing was drafted there
    assert accepted({(0,), (0, 1)}, Way((0,), frozenset({0, 1}))) == (1, True)  # the target refused it
    assert accepted({(0,), (0, 2)}, Way((0,), frozenset({0, 1}))) == (1, False)  # rank 2 was not drafted


def test_the_mean_counts_the_bonus_and_says_whether_it_is_settled():
    ways = [Way((0, 0), frozenset({0, 1})), Way((1,), frozenset({0, 1})), Way((), frozenset({0, 1}))]
    assert mean({(0,), (0, 0)}, ways) == Mean(1 + 2 / 3, True)
    assert mean({(0,), (2,)}, ways) == Mean(1 + 1 / 3, False)
    assert mean({(0,)}, []) is None


def test_a_fitted_tree_takes_the_places_that_most_ways_go_through():
    ways = [Way((0, 0, 1)), Way((0, 1)), Way((0, 0)), Way((2,)), Way(())]
    assert fitted(ways, 1) == ((0,),)
    assert fitted(ways, 2) == ((0,), (0, 0))
    assert fitted(ways, 3) == ((0,), (2,), (0, 0))  # [2], [0, 1] and [0, 0, 1] once each: the shallowest first
    assert fitted(ways, 99) == ((0,), (2,), (0, 0), (0, 1), (0, 0, 1))
    assert fitted([Way(())], 5) == ()


short_ways = st.lists(st.lists(st.integers(0, 2), max_size=3).map(lambda ranks: Way(tuple(ranks))), max_size=6)


@given(short_ways, st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_no_tree_of_the_same_size_accepts_more(ways, nodes):
    best = fitted(ways, nodes)
    assert not best or checked(best) == best
    seen = {w.ranks[:n] for w in ways for n in range(1, len(w.ranks) + 1)}
    trees = (set(c) for n in range(nodes + 1) for c in combinations(sorted(seen), n))
    most = max(sum(accepted(t, w)[0] for w in ways) for t in trees if all(p[:-1] in t or len(p) == 1 for p in t))
    assert sum(accepted(set(best), w)[0] for w in ways) == most


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_ways_say_of_recorded_rounds_what_cutting_them_says(path):
    rounds = trace_files.load(path).rounds
    for tree in (EAGLE_PATHS, ((0,), (0, 0), (0, 0, 0), (0, 0, 0, 0)), ((0,), (1,), (2,), (9,), (1, 0), (1, 3))):
        for index, r in enumerate(rounds):
            if r.token:
                found = outcome(r, cut_static(r, tree), choices(rounds, index))
                length, settled = accepted(set(tree), way(rounds, index))
                assert length == len(found.accepted)
                assert not settled or found.settled
