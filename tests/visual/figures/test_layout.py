"""The tree's layout: tidy, and no two labels on each other, whatever the tree."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import HOSTILE_IDS, IDS, TOKENS, grown, plain_round, prefill_round
from tiny_round import ROUND
from tiny_round import TOKENS as TINY

from eagle2.trace.rounds import ROOT
from visual.figures.layout import BONUS, ROW, edge, lay_out, spread, tidy, tree_graph
from visual.figures.tree import scene

SHAPES = [(10, 6, 59), (8, 5, 16), (1, 4, 4), (4, 3, 8), (2, 1, 2)]


def boxes(s):
    """Left, right, top and bottom of every labelled point's text and marker."""
    for place, point in enumerate(s.points):
        if s.label[place]:
            x, y, half = s.layout.x[point], s.layout.y[point], s.size[place] / 2
            yield point, x - half, s.layout.ends[point], y - 9, y + 9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SHAPES), st.sampled_from([IDS, HOSTILE_IDS]))
def test_labels_never_collide(seed, shape, ids):
    top_k, depth, max_nodes = shape
    s = scene(grown(seed, top_k, depth, max_nodes, ids=ids), TOKENS)
    placed = list(boxes(s))
    for i, (_, left, right, top, bottom) in enumerate(placed):
        assert left >= 0
        assert right <= s.layout.width
        assert top >= 0
        assert bottom <= s.layout.height
        for _, left2, right2, top2, bottom2 in placed[i + 1 :]:
            assert right < left2 or right2 < left or bottom <= top2 or bottom2 <= top


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_of_kept_nodes_are_at_least_eighteen_pixels_apart(seed):
    layout = scene(grown(seed), TOKENS).layout
    for level in range(layout.levels + 1):
        rows = sorted(layout.y[n] for n in layout.y if layout.level[n] == level)
        assert all(b - a >= 18 for a, b in pairwise(rows))


def test_parents_stand_in_the_middle_of_their_children():
    graph = nx.DiGraph([(ROOT, 0), (ROOT, 1), (0, 2), (0, 3), (1, 4)])
    y = tidy(graph, dict.fromkeys(graph, ROW), cousins=0)
    assert y[0] == (y[2] + y[3]) / 2
    assert y[1] == y[4]
    assert y[ROOT] == (y[0] + y[1]) / 2 == 0
    assert y[4] - y[3] == pytest.approx(ROW)


def test_a_small_subtree_between_two_large_ones_is_centred():
    # Outlines: each large one is 2 rows tall at its second level, the leaf between has none there.
    large = [(-5.0, 5.0), (-30.0, 30.0)]
    leaf = [(-5.0, 5.0)]
    assert spread([large, leaf, large], cousins=0) == [0, 30, 60]


def test_the_order_of_children_is_the_pool_order():
    layout = lay_out(ROUND, dict.fromkeys([ROOT, BONUS, 0, 1, 2, 3, 4], 40.0))
    assert layout.y[0] < layout.y[1]
    assert layout.y[2] < layout.y[3] < layout.y[4]
    assert [layout.level[n] for n in (ROOT, 0, 2, BONUS)] == [0, 1, 2, 3]


def test_the_bonus_hangs_under_the_end_of_the_accepted_path():
    assert list(tree_graph(ROUND).predecessors(BONUS)) == [2]
    assert list(tree_graph(plain_round()).predecessors(BONUS)) == [ROOT]
    assert BONUS not in tree_graph(prefill_round())


def test_edges_start_after_the_label_and_pass_longer_labels_straight():
    s = scene(ROUND, TINY)
    x, y = edge(s.layout, ROOT, 0)
    assert x[0] > s.layout.ends[ROOT]
    assert x[-1] < s.layout.x[0]
    assert (y[0], y[-1]) == (s.layout.y[ROOT], s.layout.y[0])
    assert x == sorted(x)
    bend = s.layout.columns[0]
    assert all(row == y[0] for row, place in zip(y, x, strict=True) if place <= bend)


def test_the_same_layout_serves_all_phases_and_all_nodes_have_a_place_when_asked():
    r = grown(3)
    assert set(scene(r, TOKENS).points) == {ROOT, BONUS, *r.flattened}
    assert set(scene(r, TOKENS, everything=True).points) == {ROOT, BONUS, *range(510)}


def test_pruned_children_share_one_chip_per_kept_parent():
    s = scene(ROUND, TINY)
    assert s.chips == {1: (5,)}
    r = grown(1)
    chips = scene(r, TOKENS).chips
    below_pruned = [i for i in range(510) if r.parent[i] != ROOT and r.slot[r.parent[i]] is None]
    assert sum(len(c) for c in chips.values()) + len(below_pruned) == 510 - 59
