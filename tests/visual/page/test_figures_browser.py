"""The tab of figures in a real browser: over the run that is shown, the conversation, all recordings, and files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from eagle2.examples import recordings
from eagle2.trace import files as trace_files

pytestmark = pytest.mark.browser

TRACES = Path(__file__).resolve().parents[3] / "assets" / "traces"
CHARTS = (
    "reliability",
    "acceptance-by-position",
    "accepted-against-predicted",
    "tau-by-max-nodes",
    "values-by-fate",
)
ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 40})


def noted(page, words: str) -> None:
    script = "words => document.querySelector('#figures-note').innerText.includes(words)"
    page.page.wait_for_function(script, arg=words, timeout=60000)


def drawn(page, chart: str) -> dict:
    """A figure's traces by their meta, as the browser holds them."""
    selector = f"#figure-{chart} .eagle-chart"
    page.page.wait_for_selector(f"{selector} .main-svg", timeout=60000)
    return page.page.evaluate(
        "s => Object.fromEntries(document.querySelector(s).data.map(t => [t.meta, { x: t.x, y: t.y, n: t.text }]))",
        selector,
    )


def scope(page, name: str) -> None:
    page.page.locator("#figures-scope").get_by_text(name, exact=True).click()


def test_all_figures_are_drawn_over_the_run_that_is_shown(visitor):
    page = visitor()
    page.tab("Figures")
    noted(page, f"Rounds: {page.state()['count']} · runs: 1")
    for chart in CHARTS:
        assert drawn(page, chart)
        box = page.page.locator(f"#figure-{chart} .main-svg").first.bounding_box()
        assert box["width"] > 300
        assert box["height"] == 320
    assert not page.errors


def test_the_figures_fill_as_one_generates(visitor):
    page = visitor(ASK, drawn=False)
    page.done()
    rounds = page.state()["count"]
    page.tab("Figures")
    noted(page, f"Rounds: {rounds} · runs: 1")
    page.send("three four")
    page.page.wait_for_function("() => document.querySelectorAll('.ec-answer').length === 2")
    page.done()
    noted(page, f"Rounds: {page.state()['count']} · runs: 1")  # without a click: the clock saw the new rounds
    both = rounds + page.state()["count"]
    scope(page, "this conversation")
    noted(page, f"Rounds: {both} · runs: 2")
    assert len(drawn(page, "accepted-against-predicted")["rounds"]["x"]) == both
    assert not page.errors


def test_recorded_runs_and_files_are_taken_together(visitor):
    page = visitor()
    page.tab("Figures")
    scope(page, "all recorded runs")
    runs = [trace_files.load(TRACES / f"{wanted.name}.json.gz").rounds for wanted in recordings.RECORDINGS]
    drafted = sum(bool(r.token) for rounds in runs for r in rounds)
    noted(page, f"Rounds: {drafted} · runs: {len(runs)}")
    assert drawn(page, "acceptance-by-position")["runs"]["x"]
    page.page.get_by_text("Files: several saved runs together").click()
    files = [str(TRACES / f"{name}.json.gz") for name in ("figure-7", "figure-4")]
    page.page.set_input_files("#figures-files input[type=file]", files)
    noted(page, "Rounds: 2 · runs: 2")
    assert sum(int(n) for n in drawn(page, "reliability")["counts"]["n"]) == 2 + 2 + 2 + 2 + 2  # two under each node
    assert not page.errors


def test_a_file_that_is_no_run_is_told_in_a_sentence(visitor, tmp_path):
    page = visitor()
    page.tab("Figures")
    page.page.get_by_text("Files: several saved runs together").click()
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}", encoding="utf-8")
    page.page.set_input_files("#figures-files input[type=file]", [str(wrong)])
    noted(page, "this JSON file is no trace")
    assert not page.errors
