"""The page in a real browser: light and dark, lecture, narrow windows, tabs drawn later, keys; and without a model."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

pytestmark = pytest.mark.browser

from browser import App  # noqa: E402
from synthetic import run  # noqa: E402

from eagle2.trace import files as trace_files  # noqa: E402

COLOURS = """() => ['.ec-log', '.gradio-container'].map(name => getComputedStyle(document.querySelector(name)))
  .map((style, i) => i ? style.backgroundColor : style.color)"""
SIZES = """() => [...document.querySelectorAll('#chart-tokens .eagle-chart, #chart-time .eagle-chart')]
  .map(div => [div.clientWidth, div.layout && div.layout.width])"""
TYPE = """() => ['.ec-log', '.ec-user', '.es-chip', '.ec-legend', '.ep-narration', '.ep-outcome', '#status p',
  '#meaning p', '.ep-facts dd'].filter(name => document.querySelector(name))
  .map(name => [name, parseFloat(getComputedStyle(document.querySelector(name)).fontSize)])
  .filter(([name, size]) => size < 18)"""
STATUS = "() => document.querySelector('#status').innerText.trim()"
LUMINANCE = """colour => { const [r, g, b] = colour.match(/\\d+(\\.\\d+)?/g).slice(0, 3).map(Number);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; }"""


def test_it_opens_in_the_colours_of_the_system(visitor):
    for scheme, darker in (("light", 0), ("dark", 1)):
        page = visitor(color_scheme=scheme)
        page.page.wait_for_function(
            f"() => document.querySelector('#player .eagle-player').dataset.look === '{scheme}'"
        )
        ink, ground = (page.page.evaluate(f"([c]) => ({LUMINANCE})(c)", [c]) for c in page.page.evaluate(COLOURS))
        assert (ink > ground) == bool(darker)


def test_the_theme_switch_turns_everything_and_back(visitor):
    page = visitor(color_scheme="light")
    before = page.page.evaluate(COLOURS)
    page.page.click("#player [data-action=theme]")
    page.page.wait_for_function(f"before => String(({COLOURS})()) !== before", arg=",".join(before))
    page.page.wait_for_function("() => document.body.classList.contains('dark')")
    page.page.click("#player [data-action=theme]")
    page.page.wait_for_function(f"before => String(({COLOURS})()) === before", arg=",".join(before))


def test_lecture_makes_the_type_large(visitor):
    page = visitor()
    page.page.click("#player [data-action=lecture]")
    page.page.wait_for_function("() => document.documentElement.dataset.lecture === 'on'")
    page.page.wait_for_function(f"() => ({TYPE})().length === 0")
    page.page.wait_for_function(
        "() => document.querySelector('#player .eagle-player').eaglePlayer.parts.tree.data"
        ".find(trace => trace.meta === 'labels').textfont.size >= 18"
    )


def test_figures_drawn_later_in_a_hidden_tab_have_the_right_size(visitor):
    page = visitor()
    page.tab("Metrics")
    page.page.wait_for_selector("#chart-time .main-svg", state="visible")
    page.page.wait_for_function(
        f"() => ({SIZES})().every(([space, drawn]) => drawn > 300 && Math.abs(space - drawn) <= 1)"
    )
    page.tab("Rounds")
    page.page.set_viewport_size({"width": 1000, "height": 900})
    page.tab("Metrics")
    page.page.wait_for_function(
        f"() => ({SIZES})().every(([space, drawn]) => drawn < 900 && Math.abs(space - drawn) <= 1)"
    )


def test_a_narrow_window_is_usable(visitor):
    page = visitor(width=375, height=800)
    for tab in ("Rounds", "Metrics", "Trace", "Method"):
        page.tab(tab)
        assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 375, tab
    page.tab("Rounds")
    page.page.locator("#prompt textarea").scroll_into_view_if_needed()
    page.set(max_new_tokens=6)
    page.page.click("#settings .toggle-button")
    page.page.wait_for_selector("#settings:not(.open)")
    page.send("one")
    page.done()
    page.page.locator("#player [data-action=back]").scroll_into_view_if_needed()
    at = page.state()["phase"]
    page.page.click("#player [data-action=back]")
    assert page.state()["phase"] != at


def test_keys_play_and_step_but_not_while_a_prompt_is_written(visitor):
    page = visitor()
    page.press(" ")
    page.until("d => !d.playing")
    page.press("Home")
    page.press("ArrowRight")
    page.until("d => d.round === 0 && d.phase === 'expand-2'")
    page.press("ArrowLeft")
    page.until("d => d.phase === 'expand-1'")
    page.press("Shift+ArrowRight")
    page.until("d => d.round === 1")
    page.page.focus("#prompt textarea")
    page.page.keyboard.type("a b")
    page.press("ArrowLeft")
    page.press("Home")
    assert (page.state()["round"], page.state()["playing"]) == (1, False)
    assert page.page.input_value("#prompt textarea") == "a b"


def test_rounds_in_the_chat_are_reached_by_keys(visitor):
    page = visitor("?recording=ten-plus-two")
    page.until("d => d.rounds === d.count")
    page.page.locator("[data-round][tabindex='0']").focus()
    at = page.state()["round"]
    page.press("ArrowRight")
    page.until(f"d => d.round === {at + 1}")
    assert page.page.evaluate("() => document.activeElement.dataset.round") == str(at + 1)


def test_without_a_model_the_page_plays_the_given_file_and_says_why(browser, broken):
    context = browser.new_context()
    page = App(context.new_page(), broken).visit()
    assert page.state()["playing"]
    assert page.page.inner_text(".ec-note") == "Recorded run: mine.json"
    page.status("No model:")
    assert "holds no config.json" in page.page.inner_text("#status")
    page.write("hello")
    page.page.press("#prompt textarea", "Enter")
    page.page.wait_for_function(f"() => ({STATUS})().startsWith('/')")  # the folder, now without "No model: "
    page.page.wait_for_function("() => !document.querySelector('#generate').disabled")
    assert page.page.input_value("#prompt textarea") == "hello"
    assert not page.errors
    context.close()
    context = browser.new_context()
    page = App(context.new_page(), broken).visit("?" + urlencode({"prompt": "hello"}), drawn=False)
    page.status("holds no config.json")
    context.close()


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    from serving import serving

    folder = tmp_path_factory.mktemp("empty")
    trace_files.save(run(3), folder / "mine.json")
    with serving("--target", str(folder), "--trace", str(folder / "mine.json"), log=folder / "log") as address:
        yield address
