"""Figures over whole sessions: what they hold, against rounds worked out by hand."""

import subprocess
import sys
from pathlib import Path

import plotly.graph_objects as go
import pytest
from synthetic import plain_round, prefill_round, run
from tiny_round import ROUND

from eagle2.analysis import statistics
from visual import figures
from visual.figures.over_rounds import position_name
from visual.words.say import say

TRACES = Path(__file__).resolve().parents[3] / "assets" / "traces"
ALL = (
    figures.reliability,
    figures.acceptance_by_position,
    figures.accepted_against_predicted,
    figures.tau_by_max_nodes,
    figures.values_by_fate,
)


def trace(figure, meta):
    return next(t for t in figure.data if t.meta == meta)


def test_reliability_draws_shares_with_counts_against_the_diagonal():
    # visited: the root (drew 'm, .6; not 'd, .3), 'm (drew ·glad, .6; not ·sorry, .2)
    bars = trace(figures.reliability([ROUND]), "bins")
    assert list(bars.x) == [0.25, 0.35, 0.65]
    assert list(bars.y) == [0, 0, 1]
    assert list(trace(figures.reliability([ROUND]), "counts").text) == ["1", "1", "2"]
    assert list(bars.customdata) == ["0 of 1", "0 of 1", "2 of 2"]
    line = trace(figures.reliability([ROUND]), "diagonal")
    assert list(line.x) == list(line.y) == [0, 1]


def test_whiskers_are_wilsons_interval():
    bars = trace(figures.reliability([ROUND]), "bins")
    low, _ = statistics.interval(2, 2)
    assert bars.error_y.arrayminus[2] == pytest.approx(1 - low, abs=1e-4)
    assert bars.error_y.array[2] == 0


def test_positions_are_named_as_one_counts_and_ordered_by_depth():
    assert position_name((0, 1)) == "1.2"
    bars = trace(figures.acceptance_by_position([ROUND]), say("summary.positions"))
    assert list(bars.x) == ["1", "2", "1.1", "1.2", "2.1", "2.2"]
    assert list(bars.y) == [1, 0, 1, 0, 0, 0]
    assert list(bars.customdata) == ["1 of 1", "0 of 1", "1 of 1", "0 of 1", "0 of 1", "0 of 1"]


def test_each_run_has_dots_of_its_own_where_there_are_several():
    one = run(6, top_k=3, depth=3, max_nodes=8).rounds
    assert [t.meta for t in figures.acceptance_by_position(one).data] == [say("summary.positions")]
    several = [*one, *run(7, seed=50, top_k=3, depth=3, max_nodes=8).rounds]
    dots = trace(figures.acceptance_by_position(several), "runs")
    assert list(dots.x).count("1") == 2


def test_tokens_stand_against_the_prediction():
    figure = figures.accepted_against_predicted([ROUND])
    rounds, means = trace(figure, "rounds"), trace(figure, "means")
    assert list(rounds.x) == [pytest.approx(1 + 0.6 + 0.3 + 0.36 + 0.12 + 0.15)]
    assert list(rounds.y) == [3]
    assert list(means.customdata) == [1]


def test_tau_by_max_nodes_is_a_line_over_what_could_be_kept():
    # by value: 'm .6, ·glad .36, 'd .3, ... and the target chose 'm and ·glad
    figure = figures.tau_by_max_nodes([ROUND])
    assert list(trace(figure, "would").x) == [1, 2, 3, 4, 5, 6]
    assert list(trace(figure, "would").y) == [2, 3, 3, 3, 3, 3]
    assert list(trace(figure, "foreseen").y[:3]) == pytest.approx([1.6, 1.96, 2.26])
    assert next(s for s in figure.layout.shapes if s.name == "kept").x0 == 5
    assert "5" in next(a.text for a in figure.layout.annotations if a.name == "kept")


def test_values_are_spread_over_half_decades_by_fate():
    figure = figures.values_by_fate([ROUND])
    accepted, pruned = trace(figure, "accepted"), trace(figure, "pruned")
    assert sum(accepted.customdata) == 2
    assert list(accepted.customdata)[-1] == 2  # .6 and .36 lie between 10 to the -1/2 and 1
    assert sum(accepted.y) == pytest.approx(1)
    assert list(pruned.customdata)[8] == 1  # .03: -1.52, between -2 and -1.5
    assert "(2)" in accepted.name


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize(
    "rounds",
    [[], [plain_round()], [prefill_round()], [ROUND], list(run(6).rounds)],
    ids=["none", "plain", "prefill", "tiny", "run"],
)
def test_every_figure_is_drawn_from_any_rounds(draw, rounds, look):
    assert isinstance(draw(rounds, look), go.Figure)


def test_three_lines_in_a_notebook_draw_a_figure_without_torch():
    lines = (
        "from eagle2.trace import files; from visual import figures",
        f"trace = files.load({str(TRACES / 'pancakes.json.gz')!r})",
        "figure = figures.reliability(trace.rounds)",
    )
    check = "import sys; assert 'torch' not in sys.modules; assert figure.data"
    subprocess.run([sys.executable, "-c", "\n".join((*lines, check))], check=True, cwd=TRACES.parents[1])
