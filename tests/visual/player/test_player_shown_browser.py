"""The player in a real browser, whatever it shows and wherever: hidden, narrow, dark, empty, from a file.

Run with `pytest -m browser`.
"""

from __future__ import annotations

from urllib.parse import urlparse

import pytest
from browser import Page
from player_page import HOSTILE, RUNS
from synthetic import TOKENS

from visual.figures.token_labels import token_label
from visual.player import export

pytestmark = pytest.mark.browser

LOOK = """[p.root.dataset.look, getComputedStyle(p.root).color,
  p.parts.tree.data.find(trace => trace.meta === 'labels').textfont.size,
  p.parts.values.layout.template.layout.font.color]"""
SIZES = """[p.parts.values.layout.width, p.parts.values.clientWidth, p.parts.mask.layout.height,
  p.parts.mask.clientHeight, p.parts.tree.layout.width, p.parts.treePanel.clientWidth]"""


def test_python_can_show_a_round_and_hears_which_is_shown(reader):
    page = reader()
    page.page.click("#jump")
    page.until("d => d.round === 2 && d.phase === 'verify'")
    page.page.wait_for_function(
        "() => JSON.parse(document.querySelector('#seen textarea, #seen input').value || '{}').round === 2"
    )
    page.page.evaluate(
        "() => document.dispatchEvent(new CustomEvent('eagle:goto', {detail: {round: 3, phase: 'rerank'}}))"
    )
    page.until("d => d.round === 3 && d.phase === 'rerank'")


def test_a_player_in_a_hidden_tab_has_the_right_size_when_shown(reader):
    page = reader()
    page.page.get_by_role("tab", name="second").click()
    page.page.wait_for_selector("#hidden .ep-tree .main-svg", state="visible")
    page.page.locator("#hidden .ep-values").scroll_into_view_if_needed()
    page.page.wait_for_timeout(600)
    hidden = Page(page.page, "#hidden")
    sizes = hidden.ask(SIZES)
    assert sizes[0] == sizes[1] > 200
    assert sizes[2] == sizes[3] > 200
    assert sizes[4] >= sizes[5] - 1 > 300


def test_hostile_tokens_are_shown_as_they_are_and_nothing_runs(reader):
    page = reader("hostile")
    page.page.evaluate("() => { window.alert = () => { window.ran = true; }; }")
    for index, r in enumerate(HOSTILE.rounds):
        page.ask("p.receive({ op: 'goto', run: 'hostile', show: { round: a } })", index)
        for point in range(0, len(r.token), 7):
            page.ask("p.choose(a)", point)
        drawn = page.ask("[...p.root.querySelectorAll('.ep-tree .textpoint text')].map(t => t.textContent)")
        for node in r.flattened:
            name = token_label(r.token[node], TOKENS)
            assert any(text.strip("\u2068").startswith(name) for text in drawn), name
    assert page.page.evaluate("() => window.ran") is None
    assert page.page.locator("#player script").count() == 0
    assert not page.errors


def test_nothing_is_asked_of_the_network(reader):
    page = reader()
    page.press("End")
    hosts = {urlparse(url).hostname for url in page.requests if url.startswith("http")}
    assert hosts <= {"127.0.0.1", "localhost"}
    assert any("/scripts/plotly." in url for url in page.requests)


@pytest.mark.parametrize("name", ["one", "plain"])
def test_short_and_plain_runs_work(reader, name):
    page = reader(name)
    for _ in range(8):
        page.press("ArrowRight")
        assert page.text("narration").endswith(".")
    assert page.state()["round"] == len(RUNS[name].rounds) - 1
    assert not page.errors


def test_an_empty_player_says_what_will_appear(reader):
    page = reader("none", drawn=False)
    assert "draft tree appears here" in page.text("empty")


def test_dark_and_lecture_are_switched_in_the_browser(reader):
    page = reader()
    page.page.click("#player [data-action=theme]")
    page.page.wait_for_function("() => document.querySelector('#player .eagle-player').dataset.look === 'dark'")
    name, colour, size, font = page.ask(LOOK)
    assert (name, colour, font) == ("dark", "rgb(232, 237, 244)", "#e8edf4")
    assert size >= 14
    page.page.click("#player [data-action=lecture]")
    page.page.wait_for_timeout(300)
    assert page.ask(LOOK)[2] >= 18


def test_figures_are_saved_as_pictures(reader):
    page = reader()
    page.press("End")
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        page.page.click("#player .ep-menu summary")
        with page.page.expect_download() as saved:
            page.page.click(f"#player [data-export=tree-{kind}]")
        assert saved.value.suggested_filename == f"round-5-tree.{kind}"
        with open(saved.value.path(), "rb") as file:
            assert file.read(200).lstrip().startswith(start)


def test_a_narrow_window_is_usable(reader):
    page = reader(width=375, height=800)
    assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 375
    page.page.locator("#player [data-action=last]").scroll_into_view_if_needed()
    page.page.click("#player [data-action=last]")
    assert page.state()["round"] == 4


def test_an_exported_run_plays_from_a_file(browser, tmp_path):
    path = tmp_path / "run.html"
    path.write_text(export.html(HOSTILE), encoding="utf-8")
    context = browser.new_context(offline=True)
    page = Page(context.new_page(), "#player")
    page.page.goto(path.as_uri())
    page.page.wait_for_selector(".ep-tree .main-svg")
    page.page.wait_for_function(
        "() => document.querySelector('#player').eaglePlayer.phase.name !== 'expand-1'", timeout=8000
    )
    page.press("End")
    text = page.page.locator(".ep-transcript").inner_text()
    assert text
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests)
    assert not page.errors
    context.close()
