"""The tab "Your tree" in a real browser: nodes picked, counts seen, the paths edited, the tree kept and run with."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from eagle2.trace import files as trace_files
from visual.words.say import say

pytestmark = pytest.mark.browser

ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 24})


def opened(page):
    page.tab("Your tree")
    page.page.wait_for_selector(".pk-node", timeout=60000)
    page.page.wait_for_selector("#own-table tbody tr", timeout=60000)


def text(page) -> str:
    return page.page.input_value("#own-text textarea")


def own(page, *cells: str) -> None:
    """Wait until the row of one's own tree begins with these numbers: nodes, levels, verified rows."""
    script = """cells => { const row = document.querySelector('#own-table tbody tr');
      return row && cells.every((cell, i) => row.querySelectorAll('td')[i].innerText === cell); }"""
    page.page.wait_for_function(script, arg=list(cells), timeout=60000)


def row(page, name: str) -> list[str]:
    return page.page.locator(f"#own-table tr:has(th:has-text('{name}')) td").all_inner_texts()


def ticked(page) -> list[str]:
    """The places that are picked, as the picture says it."""
    script = "() => [...document.querySelectorAll('.pk-node[aria-checked=true]')].map(b => b.title.split(']')[0] + ']')"
    return page.page.evaluate(script)


def node(page, path: str):
    return page.page.locator(f".pk-node[title^='{path} ']")


def test_nodes_are_picked_with_their_ancestors_and_leave_with_their_descendants(visitor):
    page = visitor("?recording=figure-7")
    opened(page)
    assert text(page).startswith("[0], [1], [2], [3],\n")
    page.page.click("#own-nothing")
    page.page.wait_for_function("() => !document.querySelector('.pk-node[aria-checked=true]')")
    node(page, "[0, 0, 0]").click()  # It is a good
    own(page, "3", "3", "4")
    assert text(page) == "[0],\n[0, 0],\n[0, 0, 0]"
    assert row(page, "Your tree") == ["3", "3", "4", "2.42", "4", "4.00"]  # 1 + .6 + .48 + .336
    node(page, "[1, 0]").click()
    own(page, "5", "3", "6")
    assert text(page) == "[0], [1],\n[0, 0], [1, 0],\n[0, 0, 0]"
    node(page, "[0, 0]").click()
    own(page, "3", "2", "4")
    assert ticked(page) == ["[0]", "[1]", "[1, 0]"]
    assert node(page, "[0, 0]").get_attribute("data-look") == "missed"
    assert node(page, "[0]").get_attribute("data-look") == "accepted"
    assert row(page, "Your tree")[4] == "2"
    assert row(page, say("own.row.same"))[:3] == ["3", "3", "4"]
    assert not page.errors


def test_the_paths_can_be_edited_and_a_fault_is_told_while_the_picture_stays(visitor):
    page = visitor("?recording=figure-7")
    opened(page)
    page.page.fill("#own-text textarea", "[1] [0] [0,1]")
    own(page, "3", "2", "4")
    assert ticked(page) == ["[0]", "[1]", "[0, 1]"]
    page.page.fill("#own-text textarea", "[0], [1, 0]")
    page.page.wait_for_selector("#own-note :text('has no parent: add [1]')", timeout=60000)
    assert ticked(page) == ["[0]", "[1]", "[0, 1]"]
    node(page, "[0, 0]").click()  # from the picture one goes on
    own(page, "4", "2", "5")
    assert text(page) == "[0], [1],\n[0, 0], [0, 1]"
    with page.page.expect_download() as download:
        page.page.click("#own-save")
    with open(download.value.path(), encoding="utf-8") as file:
        saved = file.read()
    assert json.loads(saved) == [[0], [1], [0, 0], [0, 1]]
    page.page.click("#own-nothing")
    page.page.wait_for_function("() => document.querySelector('#own-text textarea').value === ''")
    with page.page.expect_file_chooser() as chooser:
        page.page.click("#own-open")
    chooser.value.set_files({"name": "tree.json", "mimeType": "application/json", "buffer": saved.encode()})
    own(page, "4", "2", "5")
    assert not page.errors


def test_the_keyboard_picks_too(visitor):
    page = visitor("?recording=figure-7")
    opened(page)
    page.page.click("#own-nothing")
    page.page.wait_for_function("() => !document.querySelector('.pk-node[aria-checked=true]')")
    node(page, "[0]").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "Space"):  # [1], [1, 0], [1, 1]
        page.press(key)
    own(page, "2", "2", "3")
    assert ticked(page) == ["[1]", "[1, 1]"]
    page.press("ArrowLeft")
    page.press("Enter")
    page.page.wait_for_function("() => document.querySelector('#own-text textarea').value === ''")
    assert not page.errors


def test_another_round_of_the_player_is_another_pool_under_the_same_tree(visitor):
    page = visitor("?recording=counting&round=1")
    opened(page)
    page.page.click("#own-eagle")
    own(page, "25", "5", "26")
    page.page.click(".pk-next")
    page.page.wait_for_function("() => document.querySelector('.pk-title').innerText.startsWith('Round 2 of')")
    page.until("d => d.round === 1")
    own(page, "25", "5", "26")
    page.page.locator(".ec-round").nth(3).click()
    page.page.wait_for_function("() => document.querySelector('.pk-title').innerText.startsWith('Round 4 of')")
    assert not page.errors


def test_a_run_with_ones_own_tree_verifies_its_nodes_and_writes_the_same_text(visitor):
    page = visitor(ASK, drawn=False)
    page.done()
    before = trace_files.from_json(page.saved("#save"))
    opened(page)
    page.page.fill("#own-text textarea", "[0], [2], [0, 0], [0, 2]")
    own(page, "4", "2", "5")
    page.set(max_new_tokens=24)
    page.page.click("#own-grow")
    page.page.wait_for_selector(f"#own-note :text('{say('own.grown')}')", timeout=60000)
    assert len(page.page.locator("#own-table tbody tr").all()) == 4
    page.page.click("#own-run")
    page.page.wait_for_selector("#chips :text('Your tree')", timeout=60000)
    page.done()
    after = trace_files.from_json(page.saved("#save"))
    assert after.new_ids == before.new_ids
    assert after.settings.paths == ((0,), (2,), (0, 0), (0, 2))
    assert all(r.kept == 4 for r in after.rounds)
    page.settings()
    assert page.page.input_value("#method input") == "Your tree"
    assert "4 nodes in 2 levels" in page.page.inner_text("#meaning")
    opened(page)
    assert ticked(page) == ["[0]", "[2]", "[0, 0]", "[0, 2]"]
    assert not page.errors
