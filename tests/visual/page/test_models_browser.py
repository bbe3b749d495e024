"""The tab of models in a real browser: another pair from disk, one that does not load, one that is given up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_hub import REVISION, serving_hub
from serving import serving

from eagle2.trace import files as trace_files

pytestmark = pytest.mark.browser

from browser import App  # noqa: E402

KEY = "the owner's own key"


@pytest.fixture(scope="module")
def hub(pair):
    with serving_hub() as made:
        made.folders = {"somebody/target": Path(pair[0]), "somebody/head": Path(pair[1])}
        yield made


@pytest.fixture(scope="module")
def address(pair, hub, tmp_path_factory):
    """A page of its own, for its models change; its hub is on this machine."""
    place = tmp_path_factory.mktemp("models")
    hub_only = {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(place / "hub"), "HF_TOKEN": ""}
    options = ("--target", pair[0], "--head", pair[1], "--device", "cpu")
    with serving(*options, log=place / "log", **hub_only) as started:
        yield started


@pytest.fixture
def other(pair, tmp_path):
    """Folders of the same models, elsewhere."""
    return tuple(str(shutil.copytree(folder, tmp_path / Path(folder).name)) for folder in pair)


def load(page: App, target: str, head: str) -> None:
    page.tab("Models")
    page.page.wait_for_selector("#pair-known table")
    page.page.fill("#pair-target :is(input, textarea)", target)
    page.page.fill("#pair-head :is(input, textarea)", head)
    page.page.click("#pair-load")


def progress(page: App, words: str) -> str:
    """Wait until the tab says it; all it says."""
    script = "words => document.querySelector('#pair-progress').innerText.includes(words)"
    page.page.wait_for_function(script, arg=words, timeout=60000)
    return page.page.inner_text("#pair-progress")


def used(page: App) -> str:
    return page.page.inner_text("#pair-used")


def runs(page: App) -> None:
    """The models answer."""
    page.tab("Rounds")
    page.page.click("#clear")
    page.set(max_new_tokens=10)
    page.send("one two")
    page.done()


def test_another_pair_takes_over_and_what_was_typed_and_drawn_stays(visitor, other):
    page = visitor()
    runs(page)
    answer, rounds = page.answers(), page.state()["count"]
    page.write("typed before")
    load(page, *other)
    progress(page, "is in use")
    assert other[0] in used(page)
    assert page.page.input_value("#prompt textarea") == "typed before"
    assert (page.answers(), page.state()["count"]) == (answer, rounds)
    sizes = [page.page.input_value(f"#{name} input[type=number]") for name in ("top-k", "depth", "max-nodes")]
    assert sizes == ["10", "6", "59"]
    page.tab("Rounds")
    page.page.press("#prompt textarea", "Enter")
    page.done()
    made = trace_files.from_json(page.saved("#save"))
    assert (made.pair.target, made.pair.head) == other
    assert made.settings.shape.max_nodes == 59
    assert not page.errors


def test_a_head_that_is_no_pair_is_refused_in_a_sentence_and_the_old_pair_answers(visitor, other):
    config = Path(other[1]) / "config.json"
    wider = json.loads(config.read_text(encoding="utf-8")) | {"hidden_size": 48}
    config.write_text(json.dumps(wider), encoding="utf-8")
    page = visitor()
    page.tab("Models")
    page.page.wait_for_selector("#pair-used dl")
    before = used(page)
    load(page, *other)
    told = progress(page, "they are no pair")
    assert "has hidden size 48, the target 32" in told
    assert "Still in use: " in told
    assert used(page) == before
    page.status("they are no pair")
    runs(page)


def test_fetching_is_shown_and_can_be_given_up_then_taken_up_again(visitor, hub):
    page = visitor()
    hub.pause_s = 1.0
    load(page, "somebody/target", "somebody/head")
    progress(page, "downloading: ")
    assert page.page.is_disabled("#pair-load")
    page.page.click("#pair-cancel")
    progress(page, "was cancelled. Still in use: ")
    assert "somebody" not in used(page)
    hub.pause_s = 0.0
    load(page, "somebody/target", "somebody/head")
    progress(page, "is in use")
    assert used(page).count(f"revision {REVISION}") == 2
    runs(page)


def test_what_the_hub_refuses_is_explained(visitor, hub):
    hub.refusals["somebody/gated"] = 403, "GatedRepo"
    page = visitor()
    load(page, "somebody/gated", "")
    assert "403: it is gated, and your account has no access yet" in progress(page, "Still in use: ")


def test_a_known_pair_is_put_into_the_fields_with_its_size(visitor):
    page = visitor()
    page.tab("Models")
    row = page.page.locator("#pair-known tr", has_text="Qwen/Qwen3-32B")
    assert "137.6 GiB" in row.inner_text()
    row.locator("button").click()
    page.page.wait_for_selector("#pair-weight p")
    assert page.page.input_value("#pair-head :is(input, textarea)") == "AngelSlim/Qwen3-32B_eagle3"
    assert "137.6 GiB in float32" in page.page.inner_text("#pair-weight")


def test_on_a_public_page_the_owner_s_key_opens_the_form(pair, browser, tmp_path):
    options = ("--public", "--target", pair[0], "--head", pair[1], "--device", "cpu")
    with serving(*options, log=tmp_path / "log", EAGLE2_OWNER_KEY=KEY) as started:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = App(context.new_page(), started).visit()
        page.tab("Models")
        page.page.wait_for_selector("#pair-known table")
        assert "This page is public" in page.page.inner_text("#pair-proof")
        assert not page.page.is_visible("#pair-form")
        assert page.page.locator("#pair-known button").count() == 0
        for key in ("a guess", KEY):
            page.page.fill("#owner-key input", key)
            page.page.press("#owner-key input", "Enter")
            if key != KEY:
                progress(page, "That is not the owner's key")
        page.page.wait_for_selector("#pair-form", state="visible")
        page.page.wait_for_selector("#pair-known button")
        context.close()
    assert KEY in (tmp_path / "log").read_text(encoding="utf-8")
