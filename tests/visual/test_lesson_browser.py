"""The guided tour in a real browser: from start to end by keyboard, each step at a real element and in its phase."""

from __future__ import annotations

import pytest

from visual.lesson import STEPS

pytestmark = pytest.mark.browser


def card(page) -> str:
    return page.page.inner_text(".es-lesson .es-lesson-place")


def test_the_tour_runs_from_start_to_end_by_keyboard(visitor):
    page = visitor("?recording=figure-7")
    page.page.focus("#lesson .es-lesson-open")
    page.press("Enter")
    for number, (_, point, phase) in enumerate(STEPS, start=1):
        page.page.wait_for_function(
            "at => document.querySelector('.es-lesson-place').innerText === at", arg=f"{number} of {len(STEPS)}"
        )
        lit = page.page.locator(".es-lit")
        assert lit.count() == 1
        assert lit.evaluate("(lit, point) => lit === document.querySelector(point)", point)
        assert lit.is_visible()
        if phase and phase != "first":
            page.until(f"d => d.phase === '{phase}'")
        page.press("ArrowRight")
    page.page.wait_for_selector(".es-lesson", state="hidden")
    assert page.page.locator(".es-lit").count() == 0
    assert page.page.evaluate("document.activeElement.className") == "es-lesson-open"
    assert not page.errors


def test_one_can_go_back_leave_and_see_the_answer_of_the_exercise(visitor):
    page = visitor("?recording=figure-7")
    page.page.click("#lesson .es-lesson-open")
    page.press("ArrowLeft")
    assert card(page) == f"1 of {len(STEPS)}"
    for _ in STEPS[1:]:
        page.press("ArrowRight")
    assert card(page) == f"{len(STEPS)} of {len(STEPS)}"
    answer = page.page.locator(".es-lesson details p")
    assert not answer.is_visible()
    page.page.click(".es-lesson summary")
    assert "top_k²" in answer.inner_text()
    page.press("Escape")
    page.page.wait_for_selector(".es-lesson", state="hidden")
    assert not page.errors
