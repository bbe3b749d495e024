"""The numbers behind the figures, on rounds worked out by hand. See `fixtures_edges` for their picture."""

from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_edges import FIRST, SECOND

from eagle2.analysis import statistics
from eagle2.analysis.statistics import Bin, Budget, Length, Position
from eagle2.analysis.target_choices import choices, descend
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Round

TRACES = Path(__file__).resolve().parents[2] / "assets" / "traces"
UNRECORDED = Round(1, 6, 8, (3, 4), 9, (5, 6, 9), None, drafted=10, kept=5)


def test_outcomes_are_the_drafted_children_of_visited_nodes():
    # visited in FIRST: the root (drew 4), node 0 (drew 6) and node 2 (no children); in SECOND: the root (drew 9)
    assert statistics.outcomes([FIRST, SECOND]) == [(0.6, True), (0.3, False), (0.5, True), (0.4, False), (0.25, False)]


def test_a_pruned_child_that_the_target_drew_counts_as_drawn():
    missed = replace(FIRST, accepted=(), bonus=5, committed=(3, 5), fate=("rejected", "pruned", "rejected", "rejected"))
    assert statistics.outcomes([missed]) == [(0.6, False), (0.3, True)]


def test_reliability_counts_and_means_per_bin():
    assert statistics.reliability([FIRST, SECOND], edges=(0, 0.4, 0.6, 1)) == [
        Bin(0, 0.4, 2, 0, pytest.approx(0.275)),  # .3 and .25
        Bin(0.4, 0.6, 2, 1, pytest.approx(0.45)),  # .5, drawn, and .4
        Bin(0.6, 1, 1, 1, 0.6),
    ]


def test_a_confidence_of_1_is_in_the_last_bin_and_empty_bins_have_no_share():
    certain = replace(SECOND, confidence=(1.0,))
    bins = statistics.reliability([certain])
    assert [b.count for b in bins] == [0] * 9 + [1]
    assert bins[0].share is None
    assert bins[0].confidence is None
    assert bins[9].share == 0


@pytest.mark.parametrize("edges", [(0, 0.5), (0.1, 1), (0, 0.5, 0.5, 1)])
def test_bins_must_cover_all_confidences_once(edges):
    with pytest.raises(ValueError, match="must ascend from 0 to 1"):
        statistics.reliability([FIRST], edges)


def test_the_calibration_error_weighs_bins_by_their_counts():
    bins = [Bin(0, 0.5, 3, 1, 0.3), Bin(0.5, 0.75, 0, 0, None), Bin(0.75, 1, 1, 1, 0.8)]
    assert statistics.calibration_error(bins) == pytest.approx((3 * abs(0.3 - 1 / 3) + 0.2) / 4)
    assert statistics.calibration_error([]) is None


def test_wilsons_interval():
    assert statistics.interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert statistics.interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert statistics.interval(10, 10)[1] == 1


def test_positions_are_child_ranks_and_their_counts():
    assert statistics.child_ranks(FIRST) == [(0,), (1,), (0, 0), (0, 1)]
    found = statistics.positions([FIRST, SECOND], width=2, depth=2)
    assert found == [
        Position((0,), 2, 2, 1),
        Position((1,), 1, 1, 0),
        Position((0, 0), 1, 1, 1),
        Position((0, 1), 1, 1, 0),
    ]
    assert [p.share for p in found] == [0.5, 0, 1, 0]
    assert statistics.positions([FIRST, SECOND], width=1, depth=1) == found[:1]


def test_a_position_is_right_where_a_later_round_says_so():
    # FIRST's target draws 5, which was pruned; node 1 is given a child, 2, and the round behind draws 2 (or 7)
    pruned = replace(
        FIRST,
        drafted=5,
        accepted=(),
        bonus=5,
        committed=(3, 5),
        token=(4, 5, 6, 7, 2),
        parent=(-1, -1, 0, 0, 1),
        depth=(1, 1, 2, 2, 2),
    )
    behind = replace(SECOND, prefix_length=3, root=5, bonus=2, committed=(2,))
    last = statistics.positions([pruned, behind])[-1]
    assert last == Position((1, 0), 1, 1, 1)
    assert statistics.positions([pruned, replace(behind, bonus=7, committed=(7,))])[-1] == Position((1, 0), 1, 1, 0)


def test_what_hangs_under_the_last_known_choice_is_counted_nowhere():
    # the run ends with a walk that drew 5, a node that was pruned: what the target would say after it is not known,
    # so neither its child (rank 1.0) nor its grandchild counts; those under node 0 are known to be wrong
    deep = replace(
        FIRST,
        accepted=(),
        bonus=5,
        committed=(3, 5),
        finish="length",
        token=(4, 5, 6, 2, 1),
        parent=(-1, -1, 0, 1, 3),
        depth=(1, 1, 2, 2, 3),
    )
    assert statistics.positions([deep]) == [Position((0,), 1, 1, 0), Position((1,), 1, 1, 1), Position((0, 0), 1, 0, 0)]


def test_lengths_are_prediction_and_outcome_of_each_recorded_round():
    found = statistics.lengths([FIRST, SECOND, UNRECORDED])
    assert found == [Length(pytest.approx(1 + 0.6 + 0.3 + 0.24), 3), Length(1.25, 1)]


def test_budgets_say_what_every_max_nodes_would_have_brought():
    # By value FIRST's nodes are 0 (.6), 1 (.3), 2 (.3, deeper), 3 (.24); the target chose 0 and 2, and not SECOND's
    assert statistics.budgets([FIRST, SECOND]) == [
        Budget(0, 1, 1),
        Budget(1, 1.5, pytest.approx(1 + (0.6 + 0.25) / 2)),
        Budget(2, 1.5, pytest.approx(1 + (0.9 + 0.25) / 2)),
        Budget(3, 2, pytest.approx(1 + (1.2 + 0.25) / 2)),
        Budget(4, 2, pytest.approx(1 + (1.44 + 0.25) / 2)),
    ]


def test_a_last_round_whose_pool_agrees_with_all_that_is_known_is_left_out_of_budgets():
    open_ended = replace(FIRST, accepted=(), bonus=4, committed=(3, 4), finish="length")  # node 0 has children
    assert statistics.budgets([open_ended]) == []
    assert [b.tokens for b in statistics.budgets([SECOND, open_ended])] == [1, 1]


@pytest.mark.parametrize("name", ["pancakes", "counting", "story-at-temperature-1"])
def test_at_the_recorded_max_nodes_a_budget_is_the_recorded_mean(name):
    trace = trace_files.load(TRACES / f"{name}.json.gz")
    rounds = trace.rounds
    settled = [r for i, r in enumerate(rounds) if descend(r, choices(rounds, i)).settled]
    assert len(settled) >= len(rounds) - 2
    budgets = statistics.budgets(rounds)
    recorded = budgets[trace.effective.max_nodes]
    assert recorded.tokens == pytest.approx(sum(len(r.accepted) + 1 for r in settled) / len(settled))
    assert recorded.predicted == pytest.approx(sum(r.predicted for r in settled) / len(settled))
    assert [b.tokens for b in budgets] == sorted(b.tokens for b in budgets)


def test_values_by_fate_count_cut_nodes_as_accepted():
    cut = replace(FIRST, fate=("accepted", "pruned", "cut", "rejected"))
    assert statistics.values_by_fate([cut, SECOND]) == {
        "accepted": [0.6, 0.3],
        "rejected": [0.24, 0.25],
        "pruned": [0.3],
    }


def test_no_rounds_give_no_numbers_and_no_faults():
    assert statistics.outcomes([]) == []
    assert statistics.positions([]) == []
    assert statistics.lengths([]) == []
    assert statistics.budgets([]) == []
    assert sum(b.count for b in statistics.reliability([UNRECORDED])) == 0
    assert statistics.budgets([UNRECORDED]) == []
