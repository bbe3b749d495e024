"""The page of app.py in a real browser, with a tiny pair: asking, streaming, stopping, going on, looking back."""

from __future__ import annotations

from urllib.parse import urlencode, urlparse

import pytest

from eagle2.trace import files as trace_files
from visual.words.say import say

pytestmark = pytest.mark.browser


def ask(**settings: object) -> str:
    """A link's query: it runs its prompt on its own."""
    return "?" + urlencode({"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, **settings})


def slow(tokens: int = 600) -> str:
    """A run with the paper's tree: rounds that a reader can get a word in between."""
    return ask(top_k=10, depth=6, max_nodes=59, max_new_tokens=tokens)


def test_a_recorded_run_plays_on_load(visitor):
    page = visitor()
    assert page.state()["playing"]
    page.until("d => d.phase !== 'expand-1'")
    assert "adds two numbers" in page.page.inner_text(".ec-user")
    assert page.answers()[0].strip()
    assert not page.errors


def test_enter_streams_an_answer_and_every_kept_node_is_drawn(visitor):
    page = visitor()
    page.send("tell me of the tree")
    page.until("d => d.live && d.rounds > 0")
    page.done()
    trace = trace_files.from_json(page.saved("#save"))
    assert len(trace.new_ids) == 96
    assert page.state()["count"] == len(trace.rounds)
    for index in (0, len(trace.rounds) // 2, len(trace.rounds) - 1):
        page.ask("p.receive({ op: 'goto', run: p.store.run, show: { round: a, phase: 'verify' } })", index)
        page.until(f"d => d.round === {index}")
        r = trace.rounds[index]
        kept = page.ask("p.round.nodes.slot.filter(slot => slot !== null).length")
        assert kept == r.kept == len(r.flattened)
        page.until(f"d => d.points === {r.kept} + 2")  # the root and the bonus token besides
    assert not page.errors


def test_stop_then_step_adds_exactly_one_round_and_go_on_finishes(visitor):
    page = visitor(slow(400), drawn=False)
    page.until("d => d.live && d.rounds > 1")
    page.page.click("#stop")
    page.status("Stopped after round")
    page.until("d => !d.live && d.rounds === d.count")
    stopped, text = page.state()["count"], page.answers()[0]
    assert text
    page.page.click("#step")
    page.status(f"Round {stopped + 1} is done")
    page.until(f"d => d.count === {stopped + 1} && d.round === {stopped}")
    assert page.answers()[0].startswith(text)
    assert page.page.inner_text("#generate") == say("chat.resume")
    page.page.click("#generate")
    page.done()
    assert sum(len(r.committed) for r in trace_files.from_json(page.saved("#save")).rounds) == 400


def test_a_follow_up_starts_with_exactly_the_ids_of_the_turns_before(visitor):
    page = visitor(ask(max_new_tokens=12), drawn=False)
    page.done()
    first = trace_files.from_json(page.saved("#save"))
    page.send("three")
    page.page.wait_for_function("() => document.querySelectorAll('.ec-answer').length === 2")
    page.done()
    second = trace_files.from_json(page.saved("#save"))
    before = first.prompt_ids + first.new_ids
    assert second.prompt_ids[: len(before)] == before
    assert [role for role, _ in second.messages] == ["user", "assistant", "user"]


def test_a_token_opens_its_round_also_of_an_earlier_turn(visitor):
    page = visitor(ask(max_new_tokens=12), drawn=False)
    page.done()
    page.send("three")
    page.page.wait_for_function("() => document.querySelectorAll('.ec-answer').length === 2")
    page.done()
    runs = page.page.locator(".ec-answer").evaluate_all("all => all.map(one => one.dataset.run)")
    page.page.locator(".ec-answer").nth(1).locator("[data-round='1']").click()
    page.until("d => d.round === 1")
    assert page.ask("p.store.run") == runs[1]
    page.page.locator(".ec-answer").nth(0).locator("[data-round='2']").click()
    page.page.wait_for_function(
        "run => document.querySelector('#player .eagle-player').eaglePlayer.store.run === run", arg=runs[0]
    )
    page.until("d => d.round === 2 && d.phase === 'accept'")
    assert page.page.locator("[data-round][aria-current=true]").count() == 1


def test_rounds_that_arrive_throw_no_reader_forward(visitor):
    page = visitor(slow(), drawn=False)
    page.until("d => d.live && d.rounds > 2")
    page.page.locator("[data-round='0']").click()
    page.until("d => d.round === 0")
    seen = page.state()["rounds"]
    page.until(f"d => d.rounds > {seen + 3}")
    assert page.state()["round"] == 0
    page.page.click("#stop")
    page.status("Stopped")
    assert page.state()["round"] == 0


def test_an_earlier_turn_stays_in_sight_while_a_later_one_streams(visitor):
    page = visitor(ask(max_new_tokens=8), drawn=False)
    page.done()
    page.set(max_new_tokens=1800, top_k=10, depth=6, max_nodes=59)
    page.send("three")
    page.until("d => d.live && d.rounds > 1")
    page.page.locator(".ec-answer").nth(0).locator("[data-round='0']").click()
    page.until("d => !d.live && d.round === 0")
    first = page.ask("p.store.run")
    words = len(page.answers()[1])
    page.page.wait_for_function(
        "n => document.querySelectorAll('.ec-answer')[1].textContent.length > n + 20", arg=words
    )
    assert page.ask("p.store.run") == first
    page.page.click("#stop")
    page.status("Stopped")
    assert page.ask("p.store.run") == first
    page.page.locator(".ec-answer").nth(1).locator("[data-round='1']").click()
    page.until("d => d.round === 1 && d.rounds > 1")


def test_settings_say_what_they_mean_and_what_is_wrong(visitor):
    page = visitor()
    page.set(top_k=3, depth=2, max_nodes=50)
    # Each field that changes is answered by itself; the last answer knows all three.
    said = """() => ["3 + 1 × 3² = 12 nodes", "max_nodes 50 becomes 12"].every(
        text => document.querySelector("#meaning").innerText.includes(text))"""
    page.page.wait_for_function(said)
    page.set(seed=-4)
    page.page.wait_for_selector("#meaning [role=alert]")
    assert "Seed is -4" in page.page.inner_text("#meaning")
    page.write("keep this")
    page.page.press("#prompt textarea", "Enter")
    page.status("Seed is -4")
    assert page.page.input_value("#prompt textarea") == "keep this"
    page.set(seed=4)
    page.page.press("#prompt textarea", "Enter")
    page.done()


def test_settings_changed_during_a_run_apply_to_the_next(visitor):
    page = visitor(slow(), drawn=False)
    page.until("d => d.live && d.rounds > 1")
    page.set(depth=2)
    page.page.wait_for_function(
        "() => document.querySelector('#meaning').innerText.includes('apply to the next prompt')"
    )
    page.page.click("#stop")
    page.status("Stopped")
    shape = trace_files.from_json(page.saved("#save")).settings.shape
    assert (shape.top_k, shape.depth, shape.max_nodes) == (10, 6, 59)


def test_two_visitors_with_different_prompts_do_not_cross(visitor):
    one = visitor(ask(prompt="one", max_new_tokens=150, top_k=3), drawn=False)
    two = visitor(ask(prompt="two", max_new_tokens=150, top_k=2), drawn=False)
    one.until("d => d.rounds > 1")
    two.until("d => d.rounds > 1")
    for page, prompt, width in ((one, "one", 3), (two, "two", 2)):
        page.done()
        trace = trace_files.from_json(page.saved("#save"))
        assert page.page.locator(".ec-user").all_text_contents() == [prompt]
        assert trace.messages == (("user", prompt),)
        assert trace.settings.shape.top_k == width
        assert len(trace.new_ids) == 150


def test_a_hostile_prompt_is_shown_literally(visitor):
    page = visitor()
    page.page.evaluate("() => { window.alert = () => { window.ran = true; }; }")
    hostile = "<script>alert(1)</script> $5 and $10 %{x} ${1+1} {{2+2}} <b>x</b>"
    page.set(max_new_tokens=8)
    page.send(hostile)
    page.done()
    assert page.page.locator(".ec-user").text_content() == hostile
    assert page.page.locator(".ec-user *").count() == 0
    assert page.page.evaluate("() => window.ran") is None
    assert not page.errors


def test_a_run_of_one_round_works(visitor):
    page = visitor(ask(max_new_tokens=1), drawn=False)
    page.done()
    assert page.state()["count"] == 1
    page.press("ArrowRight")
    assert page.text("narration")
    assert not page.errors


def test_new_chat_empties_the_page(visitor):
    page = visitor(ask(max_new_tokens=8), drawn=False)
    page.done()
    page.page.click("#clear")
    page.page.wait_for_selector(".ec-empty")
    page.until("d => d.count === 0")
    page.tab("Metrics")
    assert "Nothing has been verified yet" in page.page.inner_text("#metrics")
    assert page.page.locator("#chart-tokens .main-svg").count() == 0
    page.tab("Trace")
    page.page.click("#save")
    page.status("no run to save")


def test_compare_gives_the_verdict(visitor):
    page = visitor(ask(max_new_tokens=40), drawn=False)
    page.done()
    page.tab("Metrics")
    page.page.click("#compare")
    page.page.wait_for_function("() => document.querySelector('#chips').innerText.includes('lossless')")
    assert "lossless ✓ 40 of 40 tokens" in page.page.inner_text("#chips")
    assert "40 of 40 positions agree" in page.page.inner_text("#metrics")
    assert "× plain" in page.page.inner_text("#metrics")


def test_no_request_leaves_this_machine(visitor):
    page = visitor()
    page.set(max_new_tokens=8)
    page.send("one")
    page.done()
    for tab in ("Metrics", "Trace", "Method"):
        page.tab(tab)
    hosts = {urlparse(url).hostname for url in page.requests if url.startswith(("http", "ws"))}
    assert hosts <= {"127.0.0.1", "localhost"}
