"""The guided tour in a real browser: from start to end by keyboard, each step at a real element and in its phase."""

from __future__ import annotations

import pytest

from visual.page.lesson import STEPS, TOP_K

pytestmark = pytest.mark.browser


def at_step(page, number: int) -> None:
    page.page.wait_for_function(
        "at => document.querySelector('.es-lesson-place').innerText === at", arg=f"{number} of {len(STEPS)}"
    )


def done(page) -> list[bool]:
    """Which of the exercise's three tasks the page has seen done."""
    return [
        mark == "true" for mark in page.page.locator(".es-exercise li").evaluate_all("l => l.map(i => i.dataset.done)")
    ]


def until_done(page, *marks: bool) -> None:
    script = """marks => [...document.querySelectorAll('.es-exercise li')]
      .every((item, i) => (item.dataset.done === 'true') === marks[i])"""
    page.page.wait_for_function(script, arg=list(marks))


def to_exercise(page) -> None:
    page.page.focus("#lesson .es-lesson-open")
    page.press("Enter")
    for number in range(1, len(STEPS)):
        at_step(page, number)
        page.press("ArrowRight")
    at_step(page, len(STEPS))


def test_the_tour_runs_from_start_to_end_by_keyboard(visitor):
    page = visitor("?recording=figure-7")
    page.page.focus("#lesson .es-lesson-open")
    page.press("Enter")
    for number, (_, point, phase) in enumerate(STEPS, start=1):
        at_step(page, number)
        lit = page.page.locator(".es-lit")
        assert lit.count() == 1
        assert lit.evaluate("(lit, point) => lit === document.querySelector(point)", point)
        assert lit.is_visible()
        if phase != "first":
            page.until(f"d => d.phase === '{phase}'")
        page.press("ArrowRight")
    page.page.wait_for_selector(".es-lesson", state="hidden")
    assert page.page.locator(".es-lit").count() == 0
    assert page.page.evaluate("document.activeElement.className") == "es-lesson-open"
    assert not page.errors


@pytest.mark.parametrize("size", [(1440, 900), (1024, 640)])
def test_what_the_tour_points_at_is_in_sight_above_the_strip(visitor, size):
    page = visitor("?recording=figure-7", width=size[0], height=size[1])
    page.page.click("#lesson .es-lesson-open")
    for number in range(1, len(STEPS) + 1):
        at_step(page, number)
        # A lit element is scrolled to, smoothly, until all of it is above the strip, or as much as there is room for.
        page.page.wait_for_function(
            """() => { const strip = document.querySelector('.es-lesson').getBoundingClientRect().top;
              const lit = document.querySelector('.es-lit').getBoundingClientRect();
              return lit.height < strip ? lit.top >= -1 && lit.bottom <= strip + 1 : lit.top < strip / 2; }"""
        )
        page.press("ArrowRight")


def test_the_exercise_is_done_by_keyboard_and_checks_itself_against_the_page(visitor):
    page = visitor("?recording=code")
    to_exercise(page)
    assert done(page) == [True, False, False]  # the recording's tree has top_k 8
    answer = page.page.locator(".es-question button").first
    assert answer.is_disabled()
    page.press("Tab")
    page.page.wait_for_selector(".es-exercise li:nth-child(2) button:focus")
    page.press("Enter")
    page.page.wait_for_selector("#top-k input[type=number]:focus")
    page.page.keyboard.type(str(TOP_K))
    page.press("Tab")
    until_done(page, True, True, False)
    page.page.wait_for_selector(".es-exercise li:nth-child(3) button:focus")
    page.press("Enter")
    page.page.wait_for_selector("#prompt textarea:focus")
    page.page.keyboard.type("one two")
    page.press("Enter")
    until_done(page, True, True, True)
    page.page.wait_for_selector(".es-question button:focus")
    pool = TOP_K + 4 * TOP_K**2
    assert f"After: {pool} nodes drafted, 16 kept." in page.page.inner_text(".es-exercise")
    for place, said in (
        (1, "No, look again. Reranking kept 16"),
        (2, "No, look again. Verification took 17"),
        (0, "Yes."),
    ):
        page.page.locator(".es-question button").nth(place).press("Enter")
        assert page.page.inner_text(".es-verdict").startswith(said)
    assert f"264 nodes before, and {pool} after" in page.page.inner_text(".es-verdict")
    page.press("Escape")
    page.page.wait_for_selector(".es-lesson", state="hidden")
    assert not page.errors


def test_a_tree_that_is_wide_already_is_not_taken_for_the_narrow_one(visitor):
    page = visitor("?recording=pancakes")  # top_k 10
    to_exercise(page)
    assert done(page) == [False, False, False]
    page.page.click("#recordings input")
    page.page.get_by_role("option", name="Python code").click()
    until_done(page, True, False, False)
    assert not page.errors


def test_one_can_go_back_and_leave(visitor):
    page = visitor("?recording=figure-7")
    page.page.click("#lesson .es-lesson-open")
    page.press("ArrowLeft")
    at_step(page, 1)
    page.press("ArrowRight")
    at_step(page, 2)
    page.press("ArrowLeft")
    at_step(page, 1)
    page.press("Escape")
    page.page.wait_for_selector(".es-lesson", state="hidden")
    assert not page.errors
