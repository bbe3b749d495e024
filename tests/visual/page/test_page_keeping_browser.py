"""The page in a real browser: runs that are saved, opened, linked and exported; files and links by strangers."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlencode, urlparse

import pytest

from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Pair

pytestmark = pytest.mark.browser

from browser import App, Page  # noqa: E402
from synthetic import run  # noqa: E402

SMALL = {"prompt": "one two", "top_k": 3, "depth": 3, "max_nodes": 8, "max_new_tokens": 12, "seed": 5, "temperature": 1}


def upload(page: App, path) -> None:
    page.tab("Trace")
    page.page.set_input_files("#upload input[type=file]", str(path))
    page.status(path.name)
    page.tab("Rounds")


def test_a_saved_run_loads_back(visitor, tmp_path):
    page = visitor("?" + urlencode(SMALL), drawn=False)
    page.done()
    text = page.saved("#save")
    made = trace_files.from_json(text)
    assert (made.settings.sampling.seed, made.settings.sampling.temperature) == (5, 1.0)
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    other = visitor()
    upload(other, path)
    other.until(f"d => d.count === {len(made.rounds)} && d.rounds === d.count")
    assert other.answers() == page.answers()
    assert trace_files.from_json(other.saved("#save")) == made


def test_a_file_that_is_no_run_is_refused_in_a_sentence(visitor, tmp_path):
    page = visitor()
    count = page.state()["count"]
    path = tmp_path / "no.json"
    path.write_text('{"format": "something"}', encoding="utf-8")
    page.tab("Trace")
    page.page.set_input_files("#upload input[type=file]", str(path))
    page.page.wait_for_selector("#status [role=alert]")
    assert page.page.inner_text("#status").strip().count("\n") == 0
    assert page.state()["count"] == count
    assert not page.errors


def test_a_hostile_file_is_shown_literally(visitor, tmp_path):
    page = visitor()
    page.page.evaluate("() => { window.alert = () => { window.ran = true; }; }")
    evil = "<img src=x onerror=alert(1)>${alert(1)}{{alert(1)}}"
    trace = replace(run(2), pair=Pair(evil, evil, evil, evil), messages=(("system", evil), ("user", evil)))
    path = tmp_path / "evil.json"
    path.write_text(trace_files.to_json(trace), encoding="utf-8")
    upload(page, path)
    page.until("d => d.count === 2")
    assert evil in page.page.inner_text("#chips")
    assert evil in page.page.inner_text("#status")
    assert page.page.locator(".ec-user").text_content() == evil
    for tab in ("Metrics", "Trace", "Method"):
        page.tab(tab)
    assert page.page.locator("img[src=x]").count() == 0
    assert page.page.evaluate("() => window.ran") is None
    assert not page.errors


def test_a_run_saved_as_html_plays_without_a_network(visitor, browser, tmp_path):
    page = visitor("?" + urlencode(SMALL), drawn=False)
    page.done()
    path = tmp_path / "run.html"
    path.write_text(page.saved("#save-html"), encoding="utf-8")
    context = browser.new_context(offline=True)
    exported = Page(context.new_page(), "#player")
    exported.page.goto(path.as_uri())
    exported.page.wait_for_selector(".ep-tree .main-svg")
    exported.until(f"d => d.count === {page.state()['count']} && d.playing && d.phase !== 'expand-1'")
    assert all(url.startswith(("file:", "data:", "blob:")) for url in exported.requests)
    assert not exported.errors
    context.close()


def test_the_link_brings_back_prompt_settings_and_round(visitor):
    page = visitor("?" + urlencode(SMALL), drawn=False)
    page.done()
    page.page.locator("[data-round='2']").click()
    page.until("d => d.round === 2")
    page.page.wait_for_timeout(600)  # the page tells the server which round is shown a moment later
    page.tab("Trace")
    page.page.click("#link")
    page.page.wait_for_selector("#link-shown", state="visible")
    link = urlparse(page.page.inner_text("#link-shown"))
    asked = {name: values[0] for name, values in parse_qs(link.query).items()}
    assert asked == {**{name: str(value) for name, value in SMALL.items()}, "temperature": "1.0", "round": "3"}
    page.tab("Rounds")
    other = visitor(f"?{link.query}", drawn=False)
    other.done()
    other.until("d => d.round === 2")
    assert other.page.locator(".ec-user").text_content() == "one two"
    assert other.answers() == page.answers()
    assert other.page.input_value("#seed input") == "5"


def test_a_link_to_a_recording_opens_it_at_its_round(visitor):
    page = visitor("?recording=code&round=4")
    page.until("d => d.round === 3 && d.phase === 'accept' && !d.playing")
    page.until("d => d.rounds === d.count")
    page.tab("Trace")
    page.page.click("#link")
    page.page.wait_for_selector("#link-shown", state="visible")
    assert page.page.inner_text("#link-shown").endswith("?recording=code&round=4")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("prompt=hello&seed=many", "Seed is “many”"),
        ("prompt=hello&method=magic", "The method “magic” is unknown"),
        ("prompt=hello&top_k=nan", "top_k is “nan”"),
        ("recording=../secret", "There is no recorded run “../secret”"),
    ],
)
def test_a_bad_link_gives_a_sentence_and_a_recorded_run(visitor, query, told):
    page = visitor(f"?{query}")
    page.status(told)
    page.until("d => d.playing || d.rounds > 0")
    page.page.wait_for_timeout(1500)  # the clock that watches the models ticks once a second
    assert told in page.page.inner_text("#status")
    if "prompt" in query:
        assert page.page.input_value("#prompt textarea") == "hello"


def test_a_recording_chosen_from_the_list_plays_and_arrives_whole(visitor):
    page = visitor()
    page.page.click("#recordings input")
    page.page.get_by_role("option", name="A list of planets").click()
    page.page.wait_for_function("() => document.querySelector('.ec-user').innerText.includes('planets')")
    page.until("d => d.rounds === d.count && d.count > 1", 20000)
    assert page.state()["playing"]
