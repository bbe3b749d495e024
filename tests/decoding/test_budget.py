"""`eagle2-auto`'s decisions: worked out by hand from a table, and against trying every size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.decoding.budget import Budget, Costs, best_budget, rows_fed, width
from eagle2.decoding.policy import make_policy
from eagle2.decoding.tree import ROOT, Pool
from eagle2.settings import TreeShape

# Verifying 0, 1, 2, 3, 4 nodes takes 100, 110, 120, 160, 200 ms; the first level 10, one after two nodes 15 ms.
TABLE = Costs(rows=(1, 3, 5), verify_ms=(100.0, 120.0, 200.0), level_ms=(10.0, 20.0, 20.0))


def test_between_measured_counts_the_costs_lie_on_a_straight_line():
    assert [TABLE.verify(nodes) for nodes in range(5)] == [100.0, 110.0, 120.0, 160.0, 200.0]
    assert TABLE.verify(9) == 400.0  # past the last count in proportion: ten rows cost twice five
    assert Costs((4, 8), (50.0, 60.0), (1.0, 1.0)).verify(0) == 50.0  # fewer than were measured cost no less


def test_drafting_costs_what_each_level_s_rows_cost():
    assert [TABLE.draft(fed) for fed in ([], [1], [1, 2], [1, 2, 3])] == [0.0, 10.0, 25.0, 45.0]


def test_the_rows_fed_are_the_root_then_the_expanded_nodes_above_the_newest_level():
    assert rows_fed([1, 1], [False, False]) == [1]
    assert rows_fed([1, 1, 2, 2, 2, 2, 3, 3], [True, True, True, False, False, False, False, False]) == [1, 2, 1]
    assert rows_fed([1, 1, 2, 2], [True, False, True, False]) == [1, 1]  # what the newest level led to is no matter


@pytest.mark.parametrize(
    ("values", "nodes", "rate"),
    [
        # drafted: 10 ms. Of 1/110, 1.5/120, 1.9/130, 2.2/170 and 2.3/210 the third is highest.
        ([0.5, 0.4, 0.3, 0.1], 2, 1.9 / 130),
        ([0.1, 0.5, 0.3, 0.4], 2, 1.9 / 130),  # in pool order the best need not come first
        # 1/110, 1.05/120, 1.08/130: nothing pays, and the root is verified alone
        ([0.05, 0.03], 0, 1 / 110),
        # 1/110, 1.9/120, 2.7/130, 3.5/170, 4.2/210
        ([0.9, 0.8, 0.8, 0.7], 2, 2.7 / 130),
        ([], 0, 1 / 110),
    ],
)
def test_nodes_are_kept_as_long_as_they_raise_the_rate(values, nodes, rate):
    budget = best_budget(values, [1], 4, TABLE)
    assert budget.nodes == nodes
    assert budget.rate == pytest.approx(rate)


def test_no_more_nodes_are_kept_than_the_shape_allows_and_among_equals_the_fewest():
    assert best_budget([0.5, 0.4], [1], 1, TABLE).nodes == 1
    flat = Costs((1, 2), (100.0, 200.0), (100.0, 100.0))  # 1/200 = 1.5/300: one node neither pays nor costs
    assert best_budget([0.5], [1], 4, flat) == Budget(0, 1 / 200)


def test_a_sure_draft_goes_on_and_a_wavering_one_stops():
    # The share is 0.8 + 0.1 of 1. Now: 1.8/120 = .0150 with one node, so that one is fed, .0146 with both.
    # One more level, 20 ms: 0.8, 0.72 and 0.1 are expected, 2.52/140 = .0180 with two nodes.
    assert width([0.8, 0.1], [1, 1], [1], 2, 4, TABLE) == 1
    # The share is 0.4. Now: 1.3/120 = .0108. One more level: 0.3, 0.12, 0.1, so 1.3/130 = .0100.
    assert width([0.3, 0.1], [1, 1], [1], 2, 4, TABLE) == 0


def test_only_nodes_that_would_be_kept_are_fed_and_top_k_of_them_at_most():
    free = Costs((1, 64), (100.0, 100.0), (1.0, 1.0))  # more rows cost nothing: all that is worth anything is kept
    assert width([0.5, 0.3, 0.2], [1, 1, 1], [1], 3, 9, free) == 3
    assert width([0.5, 0.3, 0.2], [1, 1, 1], [1], 2, 9, free) == 2
    assert width([0.5, 0.3, 0.2], [1, 1, 1], [1], 3, 1, free) == 0  # a deeper one is no better
    assert width([0.9, 0.3, 0.8, 0.1], [1, 1, 2, 2], [1, 1], 2, 2, free) == 0  # two: the same a level deeper
    assert width([0.9, 0.3, 0.8, 0.1], [1, 1, 2, 2], [1, 1], 2, 3, free) == 1  # 0.9, 0.8, and 0.3 gives way to 0.8


def test_the_share_is_what_the_newest_level_keeps_of_the_nodes_fed_for_it():
    # Level 1: 0.9 was fed, 0.05 was not; level 2: 0.5 and 0.04, so the share is 0.54/0.9 = 0.6.
    # Now, 20 ms: 2.4/140 = .0171 with two nodes. With level 3, 30 ms, 2.4/150 = .0160; a third node, 0.3, lowers it.
    values, depths = [0.9, 0.05, 0.5, 0.04], [1, 1, 2, 2]
    assert width(values, depths, [1, 1], 2, 4, TABLE) == 0
    # Where a pass costs ten times as much the level is cheap: now 2.4/1220 = .00197, then 2.7/1630 with three nodes
    # and 2.4/1230 with two, so it is verification that stops it; with a flat cost 2.49/1020 against 2.814/1030.
    dear = Costs((1, 3, 5), (1000.0, 1200.0, 2000.0), TABLE.level_ms)
    assert width(values, depths, [1, 1], 2, 4, dear) == 0
    flat = Costs((1, 3, 5), (1000.0, 1000.0, 1000.0), (10.0, 10.0, 10.0))
    assert width(values, depths, [1, 1], 2, 9, flat) == 2


def test_values_that_have_vanished_draft_no_further():
    assert width([0.0, 0.0, 0.0, 0.0], [1, 1, 2, 2], [1, 2], 2, 4, TABLE) == 0


numbers = st.floats(0.1, 1000.0)


@st.composite
def tables(draw):
    rows = sorted(draw(st.sets(st.integers(1, 20), min_size=1, max_size=5)))
    columns = st.lists(numbers, min_size=len(rows), max_size=len(rows)).map(tuple)
    return Costs(tuple(rows), draw(columns), draw(columns))


@given(
    st.lists(st.floats(0.0, 1.0), max_size=12), st.lists(st.integers(1, 5), max_size=4), st.integers(1, 14), tables()
)
def test_the_budget_is_the_best_of_all_sizes(values, fed, most, costs):
    best = sorted(values, reverse=True)
    rates = [
        (1 + sum(best[:nodes])) / (costs.draft(fed) + costs.verify(nodes))
        for nodes in range(min(most, len(values)) + 1)
    ]
    budget = best_budget(values, fed, most, costs)
    assert budget.rate == pytest.approx(max(rates))
    assert rates[budget.nodes] == pytest.approx(max(rates))


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 5), tables())
def test_what_auto_keeps_is_a_tree_of_the_highest_values(seed, top_k, depth, costs):
    policy = make_policy("eagle2-auto", TreeShape(top_k, depth, 20), 50, costs)
    generator = torch.Generator().manual_seed(seed)
    pool, nodes = Pool.empty(), torch.tensor([ROOT])
    while len(nodes) and (not len(pool) or int(pool.depth[-1]) < depth):
        confidence = torch.rand(len(nodes), top_k, generator=generator).div(top_k).sort(descending=True).values
        tokens = torch.arange(top_k).repeat(len(nodes))
        pool = pool.grow(nodes.repeat_interleave(top_k), tokens, confidence.log().flatten())
        nodes = policy.expand(pool)
    kept = policy.keep(pool).tolist()
    assert kept == sorted(set(kept))
    assert len(kept) <= policy.shape.max_nodes
    assert {int(pool.parent[node]) for node in kept} <= {ROOT, *kept}
    left = [float(pool.log_value[node]) for node in range(len(pool)) if node not in kept]
    assert all(float(pool.log_value[node]) >= max(left, default=-1e9) for node in kept)


@pytest.mark.parametrize(
    ("columns", "error", "sentence"),
    [
        (((), (), ()), ValueError, "at least one row count"),
        (((1, 2), (1.0,), (1.0, 1.0)), ValueError, "two durations for each"),
        (((2, 2), (1.0, 1.0), (1.0, 1.0)), ValueError, "a row count of costs is 2; it must be at least 3"),
        (((0,), (1.0,), (1.0,)), ValueError, "must be at least 1"),
        (((1,), (0.0,), (1.0,)), ValueError, "must be above 0"),
        (((1,), (1.0,), (float("nan"),)), ValueError, "must be finite"),
        (((1.5,), (1.0,), (1.0,)), TypeError, "must be an integer"),
    ],
)
def test_impossible_costs_are_refused(columns, error, sentence):
    with pytest.raises(error, match=sentence):
        Costs(*columns)


def test_auto_without_costs_is_refused():
    with pytest.raises(ValueError, match="eagle2-auto decides by what rounds cost"):
        make_policy("eagle2-auto", TreeShape(), 50)
