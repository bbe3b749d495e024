"""The paper's figures 4 and 7: every number of the shipped files, worked out by hand."""

from pathlib import Path

import pytest

from eagle2.analysis import metrics
from eagle2.analysis.recut import cut_again, outcome
from eagle2.analysis.statistics import positions
from eagle2.analysis.target_choices import by_value
from eagle2.examples import paper_figures
from eagle2.settings import TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import ROOT
from eagle2.trace.rules import contradictions

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "traces"
NAMES = ("figure-7", "figure-4", "figure-4-equals-eagle", "figure-4-equals-eagle2")


def read(name):
    return trace_files.load(FOLDER / f"{name}.json.gz")


def words(trace, nodes):
    r = trace.rounds[0]
    return [trace.tokens[r.token[node]].decode().strip() for node in nodes]


def test_the_files_are_the_examples():
    assert tuple(paper_figures.examples()) == NAMES
    assert set(NAMES) < {path.name.removesuffix(".json.gz") for path in FOLDER.iterdir()}
    for name in NAMES:
        assert read(name) == paper_figures.examples()[name]
        assert list(contradictions(read(name))) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_the_product_of_the_confidences_above_it(name):
    r = read(name).rounds[0]
    for node in range(r.drafted):
        product = 1.0
        for step in r.path(node):
            product *= r.confidence[step]
        assert r.value[node] == pytest.approx(product, abs=1e-12)


def test_figure_7_expands_the_two_best_of_each_level():
    trace = read("figure-7")
    r = trace.rounds[0]
    assert trace.tokens[r.root] == b"It"
    assert words(trace, range(10)) == ["is", "has", "a", "the", "to", "a", "good", "nice", "be", "do"]
    assert r.parent == (ROOT, ROOT, 0, 0, 1, 1, 2, 2, 4, 4)
    assert r.depth == (1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
    assert r.confidence == (0.6, 0.2, 0.8, 0.1, 0.7, 0.1, 0.7, 0.1, 0.7, 0.2)
    assert r.value == (0.6, 0.2, 0.48, 0.06, 0.14, 0.02, 0.336, 0.048, 0.098, 0.028)
    assert words(trace, [node for node, fed in enumerate(r.expanded) if fed]) == ["is", "has", "a", "to"]
    assert trace.settings.shape == TreeShape(top_k=2, depth=3, max_nodes=7)


def test_figure_7_keeps_seven_beside_the_root_and_flattens_them_in_level_order():
    trace = read("figure-7")
    r = trace.rounds[0]
    best = by_value(r)[:7]
    assert words(trace, best) == ["is", "a", "good", "has", "to", "be", "the"]
    assert [r.value[node] for node in best] == [0.6, 0.48, 0.336, 0.2, 0.14, 0.098, 0.06]
    assert words(trace, r.flattened) == ["is", "has", "a", "the", "to", "good", "be"]
    assert r.flattened == tuple(sorted(best))
    assert r.slot == (1, 2, 3, 4, 5, None, 6, None, 7, None)
    assert r.predicted == pytest.approx(2.914)


def test_figure_7_s_mask_is_the_papers():
    from visual.figures.mask import parents_by_slot, visible

    r = read("figure-7").rounds[0]
    assert parents_by_slot(r) == [-1, 0, 0, 1, 1, 2, 3, 5]
    assert visible(parents_by_slot(r)) == [
        [0],  # It
        [0, 1],  # is
        [0, 2],  # has
        [0, 1, 3],  # is a
        [0, 1, 4],  # is the
        [0, 2, 5],  # has to
        [0, 1, 3, 6],  # is a good
        [0, 2, 5, 7],  # has to be
    ]


def test_figure_7_s_target_accepts_is_a_good():
    trace = read("figure-7")
    r = trace.rounds[0]
    assert words(trace, r.accepted) == ["is", "a", "good"]
    assert trace.tokens[r.bonus] == b" idea"
    assert metrics.tau(trace.rounds) == 4
    assert [(c.top_probabilities[0], c.probability) for c in r.checks] == [(0.7, 1), (0.6, 1), (0.5, 1), (0.4, 1)]
    assert r.target_probability == (0.7, 0.1, 0.6, 0.2, 0.5, None, 0.5, None, 0.6, None)


def test_figure_4_before_the_equals_sign_eagle2_adds_two_candidates():
    trace = read("figure-4")
    r = trace.rounds[0]
    assert b"".join(trace.tokens[token] for token in (*trace.prompt_ids[1:], r.root)) == b"10+2"
    assert words(trace, r.flattened) == ["=", "+"]
    assert r.value == (0.5, 0.3, 0.25, 0.1, 0.12, 0.09)
    assert r.predicted == pytest.approx(1.8)
    assert [p.ranks for p in positions(trace.rounds)][:2] == [(0,), (1,)]


def test_figure_4_after_it_eagle_still_adds_1_and_3_and_eagle2_only_1_then_2():
    eagle, eagle2 = read("figure-4-equals-eagle"), read("figure-4-equals-eagle2")
    for trace in (eagle, eagle2):
        assert b"".join(trace.tokens[t] for t in (*trace.prompt_ids[1:], trace.rounds[0].root)) == b"10+2="
        assert trace.rounds[0].kept == 2
    assert words(eagle, eagle.rounds[0].flattened) == ["1", "3"]
    assert eagle.rounds[0].value == (0.9, 0.05)
    assert words(eagle2, eagle2.rounds[0].flattened) == ["1", "2"]
    assert eagle2.rounds[0].parent[2] == 0
    assert eagle2.rounds[0].value == (0.9, 0.05, 0.81, 0.045, 0.02, 0.01)


def test_figure_4_with_as_many_nodes_eagle2_foresees_and_gets_one_token_more():
    eagle, eagle2 = read("figure-4-equals-eagle").rounds, read("figure-4-equals-eagle2").rounds
    assert (eagle[0].predicted, eagle2[0].predicted) == pytest.approx((1.95, 2.71))
    assert (metrics.tau(eagle), metrics.tau(eagle2)) == (2, 3)
    # the same two trees, cut from one pool
    trace = read("figure-4-equals-eagle2")
    static = cut_again(trace, 0, read("figure-4-equals-eagle").settings)
    assert (static.kept, static.exact) == ((0, 1), True)
    assert outcome(trace.rounds[0], static, (trace.rounds[0].token[0], trace.rounds[0].token[2])).tokens == 2
