"""Back in time in a real browser: to a round of a live run, on under other settings, and back to the old future."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from eagle2 import trace_file

pytestmark = pytest.mark.browser

ASK = "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 24})


def test_one_goes_on_from_an_earlier_round_and_returns_to_the_future_that_was_left(visitor):
    page = visitor(ASK, drawn=False)
    page.done()
    old = trace_file.from_json(page.saved("#save"))
    page.page.click("#player [data-action=first]")  # a key would be the tab's, which has the focus
    page.until("d => d.round === 0")
    page.set(max_nodes=2)
    page.page.click("#settings .toggle-button")
    page.page.click("#back")
    page.status("Back at round 1")
    page.until("d => d.count === 1")
    page.page.wait_for_function("() => document.querySelector('#generate').innerText === 'Go on'")
    page.page.click("#generate")
    page.done()
    new = trace_file.from_json(page.saved("#save"))
    assert new.rounds[0] == old.rounds[0]
    assert {r.kept for r in new.rounds[1:]} == {2}
    assert new.new_ids == old.new_ids  # other trees, the same text
    page.page.click("#branches input")
    page.page.get_by_role("option").first.click()
    page.status("This is the future as it was left")
    page.until(f"d => d.count === {len(old.rounds)}")
    assert trace_file.from_json(page.saved("#save")).rounds == old.rounds
    assert not page.errors


def test_a_recorded_run_has_no_way_back(visitor):
    page = visitor()
    page.page.click("#back")
    page.status("Only the last run made here can be returned to")
