"""`eagle2-auto`'s decisions: worked out by hand from a table, and against trying every size."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.config import TreeShape
from eagle2.costs import Budget, Costs, best_budget, deepens
from eagle2.policy import make_policy
from eagle2.tree import ROOT, Pool

# Verifying 0, 1, 2, 3, 4 nodes takes 100, 110, 120, 160, 200 ms; the first level 10, one after two nodes 15 ms.
TABLE = Costs(rows=(1, 3, 5), verify_ms=(100.0, 120.0, 200.0), level_ms=(10.0, 20.0, 20.0))


def test_between_measured_counts_the_costs_lie_on_a_straight_line():
    assert [TABLE.verify(nodes) for nodes in range(5)] == [100.0, 110.0, 120.0, 160.0, 200.0]
    assert TABLE.verify(9) == 400.0  # past the last count in proportion: ten rows cost twice five
    assert Costs((4, 8), (50.0, 60.0), (1.0, 1.0)).verify(0) == 50.0  # fewer than were measured cost no less


def test_the_first_level_is_drafted_after_the_root_alone():
    assert [TABLE.draft(levels, 2) for levels in range(4)] == [0.0, 10.0, 25.0, 40.0]


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
    budget = best_budget(values, 1, 2, 4, TABLE)
    assert budget.nodes == nodes
    assert budget.rate == pytest.approx(rate)


def test_no_more_nodes_are_kept_than_the_shape_allows_and_among_equals_the_fewest():
    assert best_budget([0.5, 0.4], 1, 2, 1, TABLE).nodes == 1
    flat = Costs((1, 2), (100.0, 200.0), (100.0, 100.0))  # 1/200 = 1.5/300: one node neither pays nor costs
    assert best_budget([0.5], 1, 2, 4, flat) == Budget(0, 1 / 200)


def test_a_sure_draft_goes_on_and_a_wavering_one_stops():
    # The share is (0.8 + 0.1) / 1 = 0.9. Now: 1.8/120 = .0150 with one node, .0146 with both.
    # One more level, 25 ms: 0.8, 0.72, 0.1, 0.09 are expected, 2.52/145 = .0174 with two nodes.
    assert deepens([0.8, 0.1], [1, 1], 2, 4, TABLE)
    # The share is 0.3. Now: 1.2/120 = .0100. One more level: 0.2, 0.1, 0.06, 0.03, so 1.3/145 = .0090.
    assert not deepens([0.2, 0.1], [1, 1], 2, 4, TABLE)


def test_the_share_is_what_a_level_keeps_of_the_one_above_it():
    # Level 1: 0.9, 0.05 (0.95); level 2: 0.5, 0.05 of which the best two count (0.55): share 0.579.
    # Now, 25 ms: 2.4/145 = .0166 with two nodes. With level 3, 40 ms, 2.4/160 = .0150; a third node, .289, lowers it.
    values, depths = [0.9, 0.05, 0.5, 0.05, 0.01, 0.0], [1, 1, 2, 2, 2, 2]
    assert not deepens(values, depths, 2, 4, TABLE)
    # Where more rows cost nothing all six are kept, 2.51/102 = .0246; with level 3 2.83/103 = .0275.
    free = Costs((1, 64), (100.0, 100.0), (1.0, 1.0))
    assert deepens(values, depths, 2, 16, free)


def test_values_that_have_vanished_draft_no_further():
    assert not deepens([0.0, 0.0, 0.0, 0.0], [1, 1, 2, 2], 2, 4, TABLE)


numbers = st.floats(0.1, 1000.0)


@st.composite
def tables(draw):
    rows = sorted(draw(st.sets(st.integers(1, 20), min_size=1, max_size=5)))
    columns = st.lists(numbers, min_size=len(rows), max_size=len(rows)).map(tuple)
    return Costs(tuple(rows), draw(columns), draw(columns))


@given(st.lists(st.floats(0.0, 1.0), max_size=12), st.integers(1, 4), st.integers(1, 5), st.integers(1, 14), tables())
def test_the_budget_is_the_best_of_all_sizes(values, levels, top_k, most, costs):
    best = sorted(values, reverse=True)
    rates = [
        (1 + sum(best[:nodes])) / (costs.draft(levels, top_k) + costs.verify(nodes))
        for nodes in range(min(most, len(values)) + 1)
    ]
    budget = best_budget(values, levels, top_k, most, costs)
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
