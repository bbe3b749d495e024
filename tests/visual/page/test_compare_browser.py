"""The tab "Compare" in a real browser: the paper's figure 4 at first, then a prompt of one's own under two methods."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

pytestmark = pytest.mark.browser

ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 24})


def said(page, words: str, timeout: int = 60000) -> None:
    script = "words => document.querySelector('#beside-note').innerText.includes(words)"
    page.page.wait_for_function(script, arg=words, timeout=timeout)


def row(page, name: str) -> list[str]:
    return page.page.locator(f"#beside-table tr:has-text('{name}') td").all_inner_texts()


def labels(page, side: str) -> list[str]:
    page.page.wait_for_selector(f"#beside-{side} .main-svg", timeout=60000)
    script = "s => document.querySelector(s).data.find(t => t.meta === 'labels').text"
    drawn = page.page.evaluate(script, f"#beside-{side} .eagle-chart")
    return [label.split(" <")[0] for label in drawn]


def test_figure_4_stands_there_before_anything_is_compared(visitor):
    page = visitor()
    page.tab("Compare")
    said(page, "both runs wrote the same 3 tokens")
    assert labels(page, "left") == ["=", "2", "1", "3"]  # the root, the bonus, two candidates
    assert labels(page, "right") == ["=", ".", "1", "2"]
    assert row(page, "τ") == ["2.00", "3.00"]
    assert row(page, "rows verified") == ["3", "3"]
    assert not page.errors


def test_a_prompt_is_run_under_two_methods_and_the_rounds_are_aligned(visitor):
    page = visitor(ASK, drawn=False)
    page.done()
    page.tab("Compare")
    said(page, "Checked: both runs wrote the same")
    page.page.click("#beside-run")
    said(page, "both runs wrote the same 24 tokens", 120000)
    assert "EAGLE, static tree: round 1 of" in page.page.inner_text("#beside-head-left")
    box = page.page.locator("#beside-position input[type=number]").first
    box.fill("24")
    box.press("Tab")
    said(page, "Token 24:")
    heads = [page.page.inner_text(f"#beside-head-{side}") for side in ("left", "right")]
    for head in heads:
        first, last = head.split("round ")[1].split(" of ")
        assert first == last
    assert row(page, "tokens so far") == ["23", "23"]
    passes = [int(count) for count in row(page, "target passes")]
    assert [f"{23 / count:.2f}" for count in passes] == row(page, "τ")
    assert not page.errors


def test_the_shown_run_must_be_one_of_these_models(visitor):
    page = visitor("?recording=counting")
    page.tab("Compare")
    said(page, "Checked: both runs wrote the same")
    page.page.click("#beside-run")
    said(page, "load that pair again")
