"""The tab "What if" in a real browser: a recorded round cut again at once, and one of a live run grown again."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from eagle2.trace import files as trace_files
from visual.words.say import say

pytestmark = pytest.mark.browser

ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 24})


def said(page, words: str) -> None:
    script = "words => document.querySelector('#what-if-note').innerText.includes(words)"
    page.page.wait_for_function(script, arg=words, timeout=60000)


def column(page, name: str) -> list[str]:
    """The numbers of one column of the table, once it is there."""
    page.page.wait_for_selector(f"#what-if-table th:has-text('{name}')", timeout=60000)
    heads = page.page.locator("#what-if-table thead th").all_inner_texts()
    place = next(i for i, head in enumerate(heads) if name in head)
    return page.page.locator(f"#what-if-table tbody td:nth-of-type({place + 1})").all_inner_texts()


def shape(page, name: str, value: int) -> None:
    box = page.page.locator(f"#what-if-{name} input[type=number]").first
    box.fill(str(value))
    box.press("Tab")


def points(page, picture: str) -> list[int]:
    """The nodes that a picture of a tree draws: pool indices, -1 the root, -2 the bonus."""
    page.page.wait_for_selector(f"#what-if-{picture} .main-svg", timeout=60000)
    script = "s => document.querySelector(s).data.find(t => t.meta === 'nodes').customdata"
    return page.page.evaluate(script, f"#what-if-{picture} .eagle-chart")


def test_at_its_own_settings_the_recorded_round_comes_out_the_same(visitor):
    page = visitor("?recording=figure-7")
    page.tab("What if")
    said(page, "Exact: ")
    assert column(page, "as recorded") == column(page, say("what_if.cut")) == ["10", "8", "2.91", "4", "0.50"]
    assert points(page, "before") == points(page, "after") == [-1, -2, 0, 1, 2, 3, 4, 6, 8]
    assert not page.errors


def test_fewer_nodes_are_kept_at_once_and_the_targets_choices_say_what_they_bring(visitor):
    page = visitor("?recording=figure-7")
    page.tab("What if")
    said(page, "Exact")
    shape(page, "max-nodes", 2)  # is .6 and a .48: the target takes both
    page.page.wait_for_function(
        "() => document.querySelector('#what-if-table tbody tr:nth-child(2) td:last-child').innerText === '3'"
    )
    assert column(page, say("what_if.cut")) == ["10", "3", "2.08", "3", "1.00"]
    assert points(page, "after") == [-1, -2, 0, 2]
    shape(page, "top-k", 3)
    said(page, "Not exact")
    assert not page.errors


def test_a_live_round_is_grown_again_by_its_models(visitor):
    page = visitor(ASK, drawn=False)
    page.done()
    trace = trace_files.from_json(page.saved("#save"))
    page.page.click("#player [data-action=first]")  # a key would be the tab's, which has the focus
    page.until("d => d.round === 0")
    page.tab("What if")
    said(page, "Exact")
    page.page.click("#regrow")
    said(page, say("what_if.grown_note"))
    r = trace.rounds[0]
    assert column(page, say("what_if.grown")) == column(page, "as recorded")
    assert column(page, say("what_if.grown"))[0] == str(r.drafted)
    assert points(page, "after") == points(page, "before")
    shape(page, "top-k", 5)
    said(page, "Not exact")
    page.page.click("#regrow")
    said(page, say("what_if.grown_note"))
    assert int(column(page, say("what_if.grown"))[0]) == 5 + 2 * 25
    assert not page.errors


def test_a_run_of_other_models_is_not_grown(visitor):
    page = visitor("?recording=counting")
    page.tab("What if")
    said(page, "Exact")
    page.page.click("#regrow")
    said(page, "load that pair again")
    assert column(page, say("what_if.cut"))
