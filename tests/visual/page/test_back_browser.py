"""Back in time in a real browser: on from a round, its text edited or not, and to the futures that were left."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Trace
from visual.words.say import say

pytestmark = pytest.mark.browser

ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 24})
DONE = say("status.done_length")


@pytest.fixture
def run(visitor):
    """A visitor with a finished run, at its second round, and what that run saves as."""
    page = visitor(ASK, drawn=False)
    page.done()
    old = trace_files.from_json(page.saved("#save"))
    page.page.click("#player [data-action=first]")  # a key would be the tab's, which has the focus
    page.page.click("#player [data-action=next]")
    page.page.wait_for_selector("#chat .ec-back:has-text('round 2')")
    return page, old


def kept(trace, rounds: int) -> tuple[int, ...]:
    return tuple(token for r in trace.rounds[:rounds] for token in r.committed)


def edit(page) -> None:
    page.page.click("#chat .ec-back")
    page.page.wait_for_selector("#chat .ec-field:focus")


def gone_on(page) -> Trace:
    """The run made by going on from what the field holds."""
    before = page.ask("p.store.run")
    page.page.click("#chat .ec-go")
    page.until(f"d => p.store.run !== '{before}' && d.count && !d.live", 60000)
    page.done()
    return trace_files.from_json(page.saved("#save"))


def test_one_goes_on_from_a_round_under_other_settings_and_returns_to_the_future_that_was_left(run):
    page, old = run
    page.set(max_nodes=2)
    page.page.click("#settings .toggle-button")
    edit(page)
    new = gone_on(page)
    assert new.prompt_ids == old.prompt_ids + kept(old, 2)
    assert new.settings.shape.max_nodes == 2
    assert {r.kept for r in new.rounds} == {2}
    assert (kept(old, 2) + new.new_ids)[: len(old.new_ids)] == old.new_ids  # other trees, the same text
    assert page.page.inner_text("#chat .ec-place") == "2 of 2"
    page.page.click("#chat .ec-turn[data-by='-1']")
    page.status(say("back.switched", place=1))
    page.until(f"d => d.count === {len(old.rounds)}")
    assert page.page.inner_text("#chat .ec-place") == "1 of 2"
    assert trace_files.from_json(page.saved("#save")).rounds == old.rounds
    assert not page.errors


def test_the_text_is_edited_in_place_and_the_run_goes_on_from_that(run):
    page, old = run
    edit(page)
    field = page.page.locator("#chat .ec-field")
    assert page.page.locator("#chat .ec-answer").is_hidden()
    field.fill("three four")
    new = gone_on(page)
    assert new.messages[-1] == ("assistant", "three four")
    assert new.prompt_ids[: len(old.prompt_ids)] == old.prompt_ids
    assert page.answers()[-1].startswith("three four")
    edit(page)
    assert field.input_value().startswith("three four")  # the whole answer, not only what this run added
    page.press("Escape")
    page.page.wait_for_selector("#chat .ec-field", state="detached")
    assert page.page.locator("#chat .ec-answer").is_visible()
    assert not page.errors


def test_it_is_all_done_with_the_keyboard(run):
    page, old = run
    page.page.focus("#chat .ec-back")
    page.press("Enter")
    page.page.wait_for_selector("#chat .ec-field:focus")
    page.press("End")
    page.page.keyboard.type(" one")
    page.press("Control+Enter")
    page.page.wait_for_selector("#chat .ec-begun:text(' one')")
    page.status(DONE)
    page.page.wait_for_selector("#chat .ec-turn[data-by='-1']:enabled")
    page.page.focus("#chat .ec-turn[data-by='-1']")
    page.press("Enter")
    page.status(say("back.switched", place=1))
    assert trace_files.from_json(page.saved("#save")).rounds == old.rounds
    assert not page.errors


def test_a_recorded_run_has_no_way_back(visitor):
    page = visitor("?recording=counting")
    page.page.wait_for_selector("#chat .ec-round[aria-current=true]")
    assert page.page.locator("#chat .ec-tools").is_hidden()


def test_a_text_that_is_refused_is_not_lost(run):
    page, _ = run
    edit(page)
    field, long = page.page.locator("#chat .ec-field"), "one " * 3000
    field.fill(long)
    page.page.click("#chat .ec-go")
    page.status("context")
    edit(page)
    assert field.input_value() == long
    page.press("Escape")
    edit(page)
    assert field.input_value() != long  # given up, it begins with the answer's own text again
    assert not page.errors
