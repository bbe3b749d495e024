"""Switching pairs behind the page: what stays in use, what is let go of, and what is said where it fails."""

from __future__ import annotations

import gc
import json
import shutil
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
from picking_page import OWNER, VALUES, VISITOR, Page, opened

from eagle2.models import memory
from eagle2.settings import TreeShape
from visual.server.studio import Options, Studio
from visual.words.say import say


@pytest.fixture
def bad_head(pair, tmp_path):
    """A head for targets of another width."""
    folder = Path(shutil.copytree(pair[1], tmp_path / "bad"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 48}), encoding="utf-8")
    return str(folder)


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
        monkeypatch.setattr("eagle2.loading.load.load", lambda *_: pytest.fail("it was loaded"))
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
        assert say("pair.cancelling") in told[page.fields.progress]
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
            from eagle2.loading.load import load

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
        from eagle2.loading import load as loading

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
