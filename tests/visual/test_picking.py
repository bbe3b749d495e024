"""Switching pairs behind the page: what stays in use, what is let go of, who may, and what is said."""

from __future__ import annotations

import gc
import json
import shutil
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
import tiny_pair

from eagle2 import memory
from eagle2.config import TreeShape
from eagle2.registry import KNOWN_PAIRS
from visual import page, pairs
from visual.common import Common
from visual.parts import Parts
from visual.picking import Picking
from visual.running import Running
from visual.strings import say
from visual.studio import Options, Studio

OWNER, VISITOR = SimpleNamespace(session_hash="owner"), SimpleNamespace(session_hash="visitor")
VALUES = ("eagle2", 3, 3, 8, 0, 1, 0, 0, 12)
KEY = "the owner's own key"


@pytest.fixture
def other(pair, tmp_path):
    """Folders of another pair: the same models, elsewhere."""
    return tuple(str(shutil.copytree(folder, tmp_path / Path(folder).name)) for folder in pair)


@pytest.fixture
def bad_head(pair, tmp_path):
    """A head for targets of another width."""
    folder = Path(shutil.copytree(pair[1], tmp_path / "bad"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 48}), encoding="utf-8")
    return str(folder)


class Page:
    """The handlers of one page, and its studio."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Blocks():
            self.parts = Parts("", 512, studio.options.methods, "en", open_to_all=not studio.options.key)
        common = Common(studio, self.parts, "en")
        self.visits, self.fields = common.visits, self.parts.models
        self.picking, self.running = Picking(common), Running(common)
        studio.on_switch.append(common.visits.let_go)

    def switch(self, target: str, head: str) -> dict:
        """Load a pair; what the page says at the end."""
        self.picking.load(target, head, OWNER)
        assert self.studio.load.ended.wait(60)
        return self.picking.tick(OWNER)

    def ask(self, prompt: str, who: SimpleNamespace = VISITOR, values: tuple = VALUES) -> str:
        return self.last_status(self.running.generate(who, prompt, "", *values))

    def last_status(self, told) -> str:
        return [changed[self.parts.status] for changed in told if self.parts.status in changed][-1]


def opened(pair, **options) -> Page:
    studio = Studio(Options(*pair, device="cpu", **options))
    studio.engine()
    return Page(studio)


class TestSwitching:
    def test_another_pair_takes_the_old_one_s_place_and_brings_its_tree(self, pair, other):
        page = opened(pair)
        told = page.switch(*other)
        assert page.studio.engine().pair.target == other[0]
        assert "is in use" in told[page.fields.progress]
        assert told[page.parts.status] == told[page.fields.progress]
        method, top_k, depth, max_nodes = (told[field] for field in page.parts.fields[:4])
        assert (method, TreeShape(top_k, depth, max_nodes)) == ("eagle2", TreeShape(10, 6, 59))
        assert other[0] in told[page.fields.used]

    def test_a_pair_without_a_head_is_set_to_plain_decoding(self, pair, other):
        page = opened(pair)
        told = page.switch(other[0], "")
        assert told[page.parts.fields[0]] == "plain"
        assert "none: plain decoding and prompt lookup only" in told[page.fields.used]

    def test_the_old_models_are_let_go_of_though_runs_of_theirs_are_open(self, pair, other):
        page = opened(pair)
        list(page.running.step(VISITOR, "one two", "", *VALUES))
        old = weakref.ref(page.studio.engine().target.model)
        assert page.visits.of("visitor").last.source is not None
        page.switch(*other)
        gc.collect()
        assert old() is None

    def test_a_run_that_goes_on_meanwhile_ends_with_the_models_it_began_with(self, pair, other):
        page = opened(pair)
        told = page.running.generate(VISITOR, "one two", "", *VALUES)
        next(told), next(told), next(told)
        old = weakref.ref(page.studio.engine().target.model)
        page.switch(*other)
        assert "length limit" in page.last_status(told)
        turn = page.visits.of("visitor").last
        assert (turn.pair.target, len(turn.ids) - len(turn.prompt_ids)) == (pair[0], 12)
        gc.collect()
        assert old() is None, "the run was its last user"

    def test_a_run_that_is_stopped_after_the_switch_holds_nothing(self, pair, other):
        page = opened(pair)
        told = page.running.generate(VISITOR, "one two", "", *VALUES[:-1], 200)
        next(told), next(told), next(told)
        old = weakref.ref(page.studio.engine().target.model)
        page.switch(*other)
        page.running.stop(VISITOR)
        assert "Stopped after round" in page.last_status(told)
        gc.collect()
        assert old() is None

    def test_an_open_run_of_the_old_pair_is_kept_but_not_gone_on_with(self, pair, other):
        page = opened(pair)
        list(page.running.step(VISITOR, "one two", "", *VALUES))
        rounds = page.visits.of("visitor").last.rounds[:]
        page.switch(*other)
        told = page.ask(" ")
        assert "This run was made by" in told
        assert page.visits.of("visitor").last.rounds == rounds
        compared = page.last_status(page.running.compare(VISITOR))
        assert "This run was made by" in compared

    def test_the_next_prompt_begins_a_new_conversation_and_says_so(self, pair, other):
        page = opened(pair)
        page.ask("one two")
        page.switch(*other)
        told = list(page.running.generate(VISITOR, "three", "", *VALUES))
        status = [changed[page.parts.status] for changed in told if page.parts.status in changed]
        assert any("This is a new conversation" in line for line in status)
        turns = page.visits.of("visitor").turns
        assert [turn.pair.target for turn in turns] == [other[0]]
        assert turns[0].trace().pair.head == other[1]

    def test_switching_back_lets_the_old_run_go_on(self, pair, other):
        page = opened(pair)
        list(page.running.step(VISITOR, "one two", "", *VALUES))
        page.switch(*other)
        page.switch(*pair)
        assert "length limit" in page.ask(" ")

    def test_the_owner_s_draft_model_comes_with_the_owner_s_pair_only(self, engine):
        asked = []

        def load(*what):
            asked.append(what[:2] + what[4:5])
            return engine

        page = Page(Studio(Options("a", "b", draft_model="c"), load))
        page.studio.estimate = lambda *_: SimpleNamespace(
            fits=True, free=None, needed=0, whole=True, device="", dtype=""
        )
        page.studio.engine()
        page.switch("d", "e")
        page.switch("a", "b")
        assert asked == [("a", "b", "c"), ("d", "e", None), ("a", "b", "c")]


class TestFailing:
    def test_what_does_not_load_is_said_and_the_pair_in_use_stays(self, pair, bad_head):
        page = opened(pair)
        before = page.studio.engine()
        told = page.switch(pair[0], bad_head)
        assert page.studio.engine() is before
        assert "has hidden size 48, the target 32: they are no pair" in told[page.fields.progress]
        assert "Still in use: " in told[page.fields.progress]
        assert 'role="alert"' in told[page.fields.progress]
        assert page.parts.fields[1] not in told, "the settings stay as they are"
        assert page.studio.state == "ready"
        assert "length limit" in page.ask("one two")

    def test_what_has_no_room_is_refused_before_it_is_loaded(self, pair, other, monkeypatch):
        page = opened(pair)
        monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
        monkeypatch.setattr("eagle2.loading.load", lambda *_: pytest.fail("it was loaded"))
        told = page.switch(*other)
        assert "needs about 0.0 GiB in float32, and cpu has 0.0 GiB free" in told[page.fields.progress]
        assert page.studio.engine().pair.target == pair[0]

    def test_a_load_can_be_given_up(self, pair, engine):
        begun, go_on = threading.Event(), threading.Event()

        def load(target, head, device, dtype, draft_model, watch):
            if target == pair[0] and not begun.is_set():
                begun.set()
                return engine
            watch("weights", 1, 3)
            go_on.wait(20)
            watch("weights", 2, 3)
            pytest.fail("it went on")

        page = Page(Studio(Options(*pair), load))
        assert page.studio.engine() is engine
        page.picking.load(*pair, OWNER)
        busy = page.picking.load(*pair, OWNER)
        assert "Another pair is being loaded" in busy[page.fields.progress]
        told = page.picking.cancel(OWNER)
        assert "giving up at the next step" in told[page.fields.progress]
        go_on.set()
        page.studio.load.ended.wait(20)
        told = page.picking.tick(OWNER)
        assert "was cancelled. Still in use:" in told[page.fields.progress]
        assert page.studio.engine() is engine

    def test_the_first_load_can_be_given_up_too_and_another_pair_taken(self, pair, other):
        begun, go_on = threading.Event(), threading.Event()

        def load(*asked):
            if asked[0] == pair[0]:
                begun.set()
                go_on.wait(20)
                asked[-1]("weights", 1, 3)
            from eagle2.loading import load

            return load(*asked)

        page = Page(Studio(Options(*pair, device="cpu"), load))
        page.studio.start()
        begun.wait(20)
        page.picking.cancel(OWNER)
        go_on.set()
        page.studio.load.ended.wait(20)
        assert page.studio.state == "waiting"
        assert "No models are loaded" in page.picking.tick(OWNER)[page.fields.progress]
        told = page.switch(*other)
        assert told[page.parts.fields[3]] == 59
        assert page.studio.engine().pair.target == other[0]

    def test_nothing_a_failed_load_made_stays(self, pair, bad_head, monkeypatch):
        from eagle2 import loading

        made = []
        whole = loading.load_model

        def load_model(*asked):
            model = whole(*asked)
            made.append(weakref.ref(model))
            return model

        page = opened(pair)
        monkeypatch.setattr(loading, "load_model", load_model)
        page.switch(pair[0], bad_head)
        assert [model() for model in made] == [None]


class TestWhoMay:
    def test_on_a_public_page_nobody_without_the_key(self, pair, other):
        page = opened(pair, key=KEY)
        for told in (
            page.picking.load(*other, VISITOR),
            page.picking.cancel(VISITOR),
            page.picking.weigh(*other, VISITOR),
        ):
            assert "Only the owner of this page" in told[page.fields.progress]
        assert page.studio.load.target == pair[0]
        assert "<button" not in page.picking._known(page.visits.of("visitor"))[page.fields.known]

    @pytest.mark.parametrize("wrong", ["", "a", KEY + "x", "ключ"])
    def test_a_wrong_key_is_refused(self, pair, wrong):
        page = opened(pair, key=KEY)
        assert "not the owner" in page.picking.prove(wrong, OWNER)[page.fields.progress]
        assert not page.picking.may(page.visits.of("owner"))

    def test_the_key_opens_the_form_for_that_visitor_alone(self, pair, other):
        page = opened(pair, key=KEY)
        told = page.picking.prove(f" {KEY} ", OWNER)
        assert told[page.fields.form]["visible"]
        assert not told[page.fields.proof]["visible"]
        assert "<button" in told[page.fields.known]
        assert "is in use" in page.switch(*other)[page.fields.progress]
        assert "Only the owner" in page.picking.load(*pair, VISITOR)[page.fields.progress]

    def test_the_page_says_that_it_is_the_owner_s_right(self, engine):
        blocks = page.build(Studio(Options(key=KEY), lambda *_: engine))
        words = json.dumps(blocks.get_config_file(), default=str)
        assert say("pair.public") in words
        assert KEY not in words


class TestChoosing:
    def test_a_known_pair_fills_the_fields_and_is_weighed(self, pair):
        page = opened(pair)
        event = SimpleNamespace(_data={"pair": 9})
        told = page.picking.choose(event, OWNER)
        assert (told[page.fields.target], told[page.fields.head]) == (KNOWN_PAIRS[9].target, KNOWN_PAIRS[9].head)
        assert "in float32; cpu has" in told[page.fields.weight] or "Will not fit" in told[page.fields.weight]
        told = page.picking.choose(SimpleNamespace(_data={"pair": -1}), OWNER)
        assert (told[page.fields.target], told[page.fields.head]) == ("", "")
        assert "MiB" in told[page.fields.weight]

    @pytest.mark.parametrize("place", [None, True, "3", -2, 10**6])
    def test_what_no_button_sends_is_ignored(self, pair, place):
        page = opened(pair)
        assert page.fields.target not in page.picking.choose(SimpleNamespace(_data={"pair": place}), OWNER)

    def test_folders_are_weighed_at_once_and_the_hub_is_not_asked_while_one_types(self, pair, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        handlers = Page(Studio(Options(device="cpu"), lambda *_: None))
        assert " KiB in float32; cpu has " in handlers.picking.weigh(*pair, OWNER)[handlers.fields.weight]
        assert "The hub is asked" in handlers.picking.weigh("somebody/model", "", OWNER)[handlers.fields.weight]

    def test_what_is_no_model_is_said_beside_the_fields(self, tmp_path):
        handlers = Page(Studio(Options(), lambda *_: None))
        told = handlers.picking.weigh(str(tmp_path), "", OWNER)[handlers.fields.weight]
        assert "holds no config.json" in told
        assert 'role="alert"' in told


def test_a_head_whose_layers_were_guessed_is_marked_and_its_table_shown(tmp_path):
    page = opened(tiny_pair.write_eagle3(tmp_path))
    told = pairs.used_card(page.studio.used, "")
    assert page.studio.used.guessed == (2, 4, 5)
    assert "takes the hidden states 2, 4, 5 of the target is a guess, since its config names none" in told
    assert "hidden states 2, 4, 5 of the target (guessed" in told


def test_a_head_that_was_found_out_is_shown_folded(pair):
    told = pairs.used_card(opened(pair).studio.used, "")
    assert "<details><summary>What was found in the head" in told
    assert "EAGLE-1/2" in told
    assert "is a guess" not in told
    assert tiny_pair.VOCABULARY == 300
    assert "300 of 300 tokens" in told


@pytest.mark.parametrize("options", [{"device": "cuda:99"}, {"dtype": "float7"}])
def test_a_device_or_dtype_that_is_not_to_be_had_is_said_where_the_pairs_stand(options, engine):
    page = Page(Studio(Options(**options, key=KEY), load=lambda *_: engine))
    tab = SimpleNamespace(value=say("page.tab_models"))
    for told in (page.picking.tab(tab, OWNER), page.picking.prove(KEY, OWNER), page.picking.tick(OWNER)):
        assert next(iter(options.values())) in told[page.fields.known]
        assert 'role="alert"' in told[page.fields.known]


def test_an_owner_who_comes_from_another_language_s_page_finds_the_form(engine):
    page = Page(Studio(Options(key=KEY), load=lambda *_: engine))
    tab, arrived = SimpleNamespace(value=say("page.tab_models")), SimpleNamespace(session_hash="next page")
    page.picking.prove(KEY, OWNER)
    page.visits.resume(page.visits.park("owner"), "next page")
    for who, may in ((arrived, True), (VISITOR, False)):
        told = page.picking.tab(tab, who)
        assert [told[part]["visible"] for part in (page.fields.form, page.fields.proof)] == [may, not may]
