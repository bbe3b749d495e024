"""The player in a real browser, inside a small Gradio page: what a reader sees, presses and clicks.

Run with `pytest -m browser`. One server and one browser serve all tests; each test opens its own page.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from urllib.parse import urlparse

import gradio as gr
import pytest
from browser import Page
from synthetic import HOSTILE_IDS, TOKENS, grown, plain_round, prefill_round, run

from visual import export, player
from visual.labels import token_label
from visual.theme import CELL_CODES

pytestmark = pytest.mark.browser

RECORDED = run(5)
SMALL = run(12, seed=30, top_k=4, depth=3, max_nodes=8)
HOSTILE = replace(RECORDED, rounds=tuple(grown(40 + i, 10, 2, 40, index=i, ids=HOSTILE_IDS) for i in range(2)))
ONE = replace(RECORDED, rounds=(grown(3, 4, 3, 8, index=0),))
PLAIN = replace(RECORDED, rounds=(prefill_round(), plain_round(1), plain_round(2)))
RUNS = {"recorded": RECORDED, "small": SMALL, "hostile": HOSTILE, "one": ONE, "plain": PLAIN}


def page() -> gr.Blocks:
    """A page with the player, one hidden in a second tab, and buttons that send messages."""

    def load(request: gr.Request):
        name = request.query_params.get("run", "recorded")
        return "" if name == "none" else player.message_load(name, RUNS[name])

    def need(event: gr.EventData):
        name = event._data["run"]
        trace = RUNS[name.removesuffix("-live")]
        return player.message_rounds(name, trace.rounds, trace.tokens, event._data)

    def stream(pause: float):
        def rounds():
            yield player.message_reset("small-live")
            for r in SMALL.rounds:
                yield player.message_append("small-live", r, SMALL.tokens)
                time.sleep(pause)
            yield player.message_end("small-live", len(SMALL.rounds))

        return rounds

    def clicked(event: gr.EventData):
        return json.dumps(event._data)

    with gr.Blocks() as demo:
        shown = player.component()
        gr.Textbox(elem_id="typing", label="typing")
        log = gr.Textbox(elem_id="clicked", label="clicked")
        seen = gr.Textbox(elem_id="seen", label="seen")
        gr.Button("slow", elem_id="slow").click(stream(0.4), None, shown, show_progress="hidden")
        gr.Button("fast", elem_id="fast").click(stream(0), None, shown, show_progress="hidden")
        gr.Button("jump", elem_id="jump").click(
            lambda: player.message_goto("recorded", 5, 2, "verify"), None, shown, show_progress="hidden"
        )
        with gr.Tabs():
            with gr.Tab("first"):
                gr.Markdown("nothing here")
            with gr.Tab("second"):
                hidden = player.component(elem_id="hidden")
        shown.need(need, None, shown, show_progress="hidden")
        shown.node_click(clicked, None, log, show_progress="hidden")
        shown.round_shown(clicked, None, seen, show_progress="hidden")
        demo.load(load, None, shown)
        demo.load(lambda: player.message_load("small", SMALL), None, hidden)
    return demo


@pytest.fixture(scope="module")
def address():
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    demo = page()
    _, local, _ = demo.queue().launch(prevent_thread_lock=True, quiet=True, run_history=False)
    yield local
    demo.close()


LOOK = """[p.root.dataset.look, getComputedStyle(p.root).color,
  p.parts.tree.data.find(trace => trace.meta === 'labels').textfont.size,
  p.parts.values.layout.template.layout.font.color]"""
SIZES = """[p.parts.values.layout.width, p.parts.values.clientWidth, p.parts.mask.layout.height,
  p.parts.mask.clientHeight, p.parts.tree.layout.width, p.parts.treePanel.clientWidth]"""
MASK_ROW = """(() => { const d = p.parts.mask, f = d._fullLayout, b = d.getBoundingClientRect();
  return [b.left + f.xaxis._offset + f.xaxis.d2p(0), b.top + f.yaxis._offset + f.yaxis.d2p(a)]; })()"""


@pytest.fixture
def reader(browser, address):
    """Opens pages: reader("recorded") is the player at its first phase."""
    contexts = []

    def open_page(name: str = "recorded", width: int = 1440, height: int = 900, drawn: bool = True) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True)
        contexts.append(context)
        return Page(context.new_page(), "#player").open(f"{address}?run={name}", drawn)

    yield open_page
    for context in contexts:
        context.close()


def test_it_draws_every_kept_node_of_the_round(reader):
    page = reader()
    assert page.state()["points"] == len(RECORDED.rounds[0].flattened) + 2
    assert page.text("title") == "Round 1 of 5"
    assert not page.errors


def test_keys_walk_through_phases_and_rounds(reader):
    page = reader()
    page.press("ArrowRight")
    assert page.state()["phase"] == "expand-2"
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    assert (page.state()["round"], page.state()["phase"]) == (0, "expand-1")
    page.press("End")
    assert (page.state()["round"], page.state()["phase"]) == (4, "accept")
    page.press("Shift+ArrowLeft")
    assert (page.state()["round"], page.state()["phase"]) == (3, "accept")
    page.press("ArrowRight")
    assert (page.state()["round"], page.state()["phase"]) == (4, "expand-1")
    page.press("Home")
    assert (page.state()["round"], page.state()["phase"]) == (0, "expand-1")
    page.press("?")
    assert page.page.locator("dialog.ep-help[open]").count() == 1


def test_keys_typed_into_a_text_box_are_left_alone(reader):
    page = reader()
    page.page.locator("#typing textarea, #typing input").first.focus()
    page.press("ArrowRight")
    page.press("End")
    assert (page.state()["round"], page.state()["phase"]) == (0, "expand-1")


def test_buttons_and_chips_step_and_jump(reader):
    page = reader()
    page.page.click("#player [data-action=forward]")
    assert page.state()["phase"] == "expand-2"
    page.page.click("#player [data-phase=verify]")
    assert page.state()["phase"] == "verify"
    page.page.click("#player [data-action=back]")
    assert page.state()["phase"] == "flatten"
    page.page.click("#player [data-action=last]")
    assert page.state()["round"] == 4


def test_play_goes_on_by_itself_and_stops_at_the_end(reader):
    page = reader("one")
    page.page.select_option("#player .ep-speed", "4")
    page.press(" ")
    assert page.state()["playing"]
    page.until("d => d.phase === 'accept'", 20000)
    page.until("d => !d.playing", 5000)


def test_the_scrubber_reaches_every_round(reader):
    page = reader()
    scrubber = page.page.locator("#player .ep-scrubber")
    box = scrubber.bounding_box()
    page.page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    page.until("d => d.round === 2")


def test_nodes_keep_their_place_through_all_phases(reader):
    page = reader()
    places = set()
    for _ in range(10):
        places.add(tuple(page.state()["x"]))
        page.press("ArrowRight")
    assert len(places) == 1


def test_a_click_on_a_node_fills_the_inspector_and_lights_its_row(reader):
    page = reader()
    page.press("End")
    r = RECORDED.rounds[4]
    node = next(i for i in r.flattened if r.depth[i] == 2)
    page.page.mouse.click(*page.spot(node))
    page.until(f"d => d.selected === {node}")
    page.page.wait_for_function("() => document.querySelector('#clicked textarea, #clicked input').value")
    told = json.loads(page.page.locator("#clicked textarea, #clicked input").first.input_value())
    assert told == {"run": "recorded", "round": 4, "node": node, "token": r.token[node]}
    facts = page.text("inspector")
    assert f"{r.slot[node]} of 59" in facts
    lit = page.ask("p.parts.mask.data[0].z.map(row => row.filter(cell => cell === a).length)", CELL_CODES.index("l"))
    assert [i for i, n in enumerate(lit) if n] == [r.slot[node]]
    assert lit[r.slot[node]] == 1 + r.depth[node]
    page.press("Escape")
    assert page.state()["selected"] is None


def test_a_click_on_a_mask_row_selects_the_node(reader):
    page = reader()
    page.press("End")
    r = RECORDED.rounds[4]
    x, y = page.ask(MASK_ROW, 10)
    page.page.mouse.click(x, y)
    page.until(f"d => d.selected === {r.flattened[9]}")


def test_the_tree_is_a_list_for_the_keyboard_and_screen_readers(reader):
    page = reader()
    page.press("End")
    r = RECORDED.rounds[4]
    items = page.page.locator("#player [role=treeitem]")
    assert items.count() == 60
    items.first.focus()
    page.press("ArrowRight")
    first = next(i for i in r.flattened if r.parent[i] == -1)
    page.until(f"d => d.selected === {first}")
    assert page.state()["round"] == 4
    assert page.page.locator("#player .ep-narration[aria-live=polite]").count() == 1


def test_zoom_survives_phases_rounds_and_appended_rounds(reader):
    page = reader()
    box = page.page.locator("#player .ep-tree").bounding_box()
    page.page.click("#player [data-action=plus]")
    page.page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 360, box["y"] + 230, steps=5)
    page.page.mouse.up()
    page.page.wait_for_timeout(300)
    zoomed = page.state()["range"]
    page.press("ArrowRight")
    page.press("Shift+ArrowRight")
    assert page.state()["range"] == pytest.approx(zoomed)
    page.page.click("#player [data-action=reset]")
    assert page.state()["range"][0] == 0


def test_dragging_the_tree_is_no_click(reader):
    page = reader()
    page.press("End")
    x, y = page.spot(RECORDED.rounds[4].flattened[0])
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + 40, y, steps=4)
    page.page.mouse.up()
    assert page.state()["selected"] is None


def test_rounds_that_arrive_do_not_throw_a_reader_forward(reader):
    page = reader("none", drawn=False)
    page.page.click("#slow")
    page.until("d => d.rounds >= 3")
    now = page.state()
    assert now["round"] == now["count"] - 1
    page.press("Home")
    page.until("d => d.rounds >= 7")
    assert (page.state()["round"], page.state()["phase"]) == (0, "expand-1")
    page.page.click("#player [data-action=latest]")
    now = page.state()
    assert now["round"] == now["count"] - 1
    page.until("d => d.rounds === 12 && !d.live", 30000)
    assert page.state()["round"] == 11


def test_no_round_is_lost_when_they_come_faster_than_the_page_takes_them(reader):
    page = reader("none", drawn=False)
    page.page.click("#fast")
    page.until("d => d.rounds === 12 && d.count === 12", 30000)
    assert not page.errors


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
    assert any("plotly.min.js" in url for url in page.requests)


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
