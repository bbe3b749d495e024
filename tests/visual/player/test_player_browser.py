"""The player in a real browser, inside a small Gradio page: what a reader sees, presses and clicks.

Run with `pytest -m browser`. One server and one browser serve all tests; each test opens its own page.
"""

from __future__ import annotations

import json

import pytest
from player_page import RECORDED

from visual.figures.theme import CELL_CODES

pytestmark = pytest.mark.browser

MASK_ROW = """(() => { const d = p.parts.mask, f = d._fullLayout, b = d.getBoundingClientRect();
  return [b.left + f.xaxis._offset + f.xaxis.d2p(0), b.top + f.yaxis._offset + f.yaxis.d2p(a)]; })()"""


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
