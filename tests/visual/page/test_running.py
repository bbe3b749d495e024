"""What the page shows where a run fails or an answer comes late: nothing stays live, dead, or of another run."""

from __future__ import annotations

import html
import json
from types import SimpleNamespace

import gradio as gr
import pytest

from eagle2.progress import Cancelled
from visual.page.context import Common
from visual.page.form import Form
from visual.page.parts import Parts
from visual.page.tabs.returning import Returning
from visual.page.tabs.running import Running
from visual.page.tabs.viewing import Viewing, recording
from visual.page.tabs.what_if import Recutting
from visual.page.tabs.your_tree.drawing import Drawing
from visual.server.studio import Options, Studio
from visual.words.say import say

VISITOR = SimpleNamespace(session_hash="visitor")
VALUES = ("eagle2", 3, 3, 8, 0, 1, 0, 0, 20)


@pytest.fixture
def failing(engine, monkeypatch):
    """failing(error, passes): the target verifies so many rounds, then fails; failing(None) mends it."""
    verify = engine.target.verify

    def break_it(error: Exception | None, passes: int = 0) -> None:
        left = iter(range(passes))

        def verified(*asked):
            if error is not None and next(left, None) is None:
                raise error
            return verify(*asked)

        monkeypatch.setattr(engine.target, "verify", verified)

    return break_it


@pytest.fixture
def page(common):
    """What one visitor's page shows: `run` lets a handler go to its end and gives all that changed, the latest last."""

    class Page:
        def __init__(self):
            self.parts, self.visit = common.parts, common.visit(VISITOR)
            self.running, self.viewing = Running(common), Viewing(common, None)
            self.returning = Returning(common, self.running)

        def run(self, told) -> dict:
            shown = {}
            for changed in told:
                shown |= changed
            return shown

        def generate(self, prompt: str) -> dict:
            return self.run(self.running.generate(VISITOR, prompt, "", *VALUES))

        def player(self, shown: dict) -> dict:
            return json.loads(shown[self.parts.player])

    return Page()


def test_a_run_that_fails_midway_stands_stopped_with_all_its_rounds(page, failing):
    failing(MemoryError("no room"), passes=2)
    shown = page.generate("one two")
    told = page.player(shown)
    assert (told["op"], told["live"], told["count"]) == ("end", False, 2)
    assert told["run"] == page.visit.shown.run
    assert "no room" in shown[page.parts.status]
    assert "τ" in shown[page.parts.table]
    assert shown[page.parts.generate]["value"] == say("chat.resume")
    assert shown[page.parts.prompt] == ""
    failing(None)
    assert "length limit" in page.generate("")[page.parts.status]


def test_a_run_that_fails_at_once_gives_its_prompt_back_and_is_no_part_of_the_chat(page, failing):
    failing(MemoryError("no room"))
    shown = page.generate("one two")
    assert shown[page.parts.prompt] == "one two"
    assert json.loads(shown[page.parts.log])["turns"] == []
    assert (page.player(shown)["op"], page.player(shown)["live"]) == ("reset", False)
    assert (page.visit.turns, page.visit.shown) == ([], None)
    failing(None)
    page.generate("one two")
    assert [message["role"] for message in page.visit.last.messages] == ["user"]


def test_the_recording_that_was_shown_before_is_shown_again(page, failing):
    page.viewing.recording("counting", VISITOR)
    page.visit.round = 3
    failing(MemoryError("no room"))
    shown = page.generate("one two")
    assert shown[page.parts.recorded] == "counting"
    told = page.player(shown)
    assert (told["run"], told["live"], told["show"]["round"]) == (page.visit.shown.run, False, 3)
    assert page.visit.last.recording == "counting"


def test_who_looks_at_another_run_is_not_torn_away_from_it_by_a_fault(page, failing):
    page.generate("one")
    first = page.visit.last
    failing(MemoryError("no room"))
    told = page.running.generate(VISITOR, "two", "", *VALUES)
    shown = dict(next(told)) | next(told)
    page.viewing.open(SimpleNamespace(_data={"run": first.run, "round": 0}), VISITOR)
    del shown[page.parts.player]
    shown |= page.run(told)
    assert page.parts.player not in shown
    assert shown[page.parts.prompt] == "two"
    assert (page.visit.turns, page.visit.shown) == ([first], first)


def test_going_back_that_fails_leaves_the_run_one_went_back_in(page, failing):
    page.generate("one two")
    old = page.visit.last
    failing(MemoryError("no room"))
    went = SimpleNamespace(_data={"run": old.run, "round": 0, "text": None})
    form = Form(*VALUES)
    shown = page.run(page.returning.back(VISITOR, went, *(getattr(form, name) for name in Form.__dataclass_fields__)))
    assert page.parts.prompt not in shown, "the prompt box holds what the visitor is writing"
    assert page.player(shown)["run"] == old.run
    assert (page.visit.turns, page.visit.futures) == ([old], ())


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("fc"), "KeyError: 'fc'"),
        (TypeError("no tensor"), "TypeError: no tensor"),
        (gr.Error("The quota is used up"), "The quota is used up"),
    ],
)
def test_whatever_a_run_fails_with_is_told_and_leaves_the_buttons_alive(page, failing, error, told):
    failing(error, passes=1)
    shown = page.generate("one two")
    assert told in html.unescape(shown[page.parts.status])
    assert 'role="alert"' in shown[page.parts.status]
    assert [shown[part]["interactive"] for part in (page.parts.generate, page.parts.step, page.parts.stop)] == [
        True,
        True,
        False,
    ]
    assert not page.visit.busy


def test_whatever_measuring_fails_with_is_told(page, engine, monkeypatch):
    page.generate("one two")
    monkeypatch.setattr(type(engine), "check", lambda *_: {}["plain"])
    assert "KeyError" in page.run(page.running.compare(VISITOR))[page.parts.status]


@pytest.fixture
def meanwhile(monkeypatch, common):
    """meanwhile(name, done): while the studio does what it has that name for, the visitor does something else."""

    def put(name: str, done) -> None:
        real = getattr(common.studio, name)

        def slow(*asked):
            answer = real(*asked)
            monkeypatch.setattr(common.studio, name, real)
            done()
            return answer

        monkeypatch.setattr(common.studio, name, slow)

    return put


def test_a_measurement_is_not_shown_as_another_run_s(page, meanwhile):
    page.generate("one two")
    turn = page.visit.last
    meanwhile("compare", lambda: page.viewing.recording("counting", VISITOR))
    *_, told = page.running.compare(VISITOR)
    assert list(told) == [page.parts.status]
    assert told[page.parts.status] == gr.skip()
    assert turn.found.checked == 20


def test_a_measurement_of_a_part_is_not_shown_as_the_whole_run_s(page, meanwhile):
    page.run(page.running.step(VISITOR, "one two", "", *VALUES))
    meanwhile("compare", lambda: page.generate(""))
    *_, told = page.running.compare(VISITOR)
    assert list(told) == [page.parts.status]
    assert page.visit.last.found is None


OTHERWISE = ("eagle2", 3, 3, 2)


def test_a_round_grown_too_late_does_not_replace_what_the_sliders_say_by_then(page, common, meanwhile):
    page.generate("one two")
    recutting, shown = Recutting(common), []
    meanwhile("regrow", lambda: shown.append(recutting.cut(VISITOR, *OTHERWISE)))
    told = recutting.grow(VISITOR, *VALUES[:4])
    assert common.parts.what_if_table in shown[0]
    assert list(told) == [common.parts.what_if_note]
    meanwhile("regrow", lambda: page.viewing.recording("counting", VISITOR))
    assert list(recutting.grow(VISITOR, *VALUES[:4])) == [common.parts.what_if_note]


def test_trees_grown_too_late_do_not_replace_what_was_picked_by_then(page, common, meanwhile):
    page.generate("one two")
    drawing = Drawing(common)
    picked = SimpleNamespace(_data={"paths": "[0]"})
    meanwhile("regrow", lambda: drawing.picked(picked, VISITOR))
    *_, told = drawing.grow(VISITOR, "[0], [1]")
    assert list(told) == [common.parts.own.note]
    *_, told = drawing.grow(VISITOR, "[0], [1]")
    assert common.parts.own.table in told


@pytest.fixture
def chinese(common):
    """The Chinese page over the same studio."""
    with gr.Blocks():
        return Common(common.studio, Parts("", 64, common.studio.options.methods, "zh"), "zh")


def test_what_cannot_be_run_again_or_gone_back_to_is_said_in_the_page_s_language(chinese, engine):
    visit, running = chinese.visit(VISITOR), Running(chinese)
    first = visit.begin(engine, "one", "", Form(*VALUES).settings(64))
    visit.begin(engine, "two", "", Form(*VALUES).settings(64))
    visit.shown = first
    *_, told = running.own_tree(VISITOR, "", "", *VALUES)
    assert "这次运行之后还有其他轮次" in told[chinese.parts.status]
    gone = Returning(chinese, running).future(VISITOR, SimpleNamespace(_data={"run": "run-0"}))
    assert say("back.gone", "zh") in gone[chinese.parts.status]


def test_that_another_pair_made_a_run_is_said_in_the_page_s_language(chinese):
    visit, running = chinese.visit(VISITOR), Running(chinese)
    returning = Returning(chinese, running)
    visit.load(recording("counting"), "counting")
    visit.shown.name = None  # as if it had been made here, before the pair was switched
    *_, again = running.own_tree(VISITOR, "", "", *VALUES)
    asked = SimpleNamespace(_data={"run": visit.last.run, "round": 0})
    *_, back = returning.back(VISITOR, asked, *VALUES)
    grown = Recutting(chinese).grow(VISITOR, *VALUES[:4])
    *_, own = Drawing(chinese).grow(VISITOR, "[0]")
    parts = chinese.parts
    for told in (again[parts.status], back[parts.status], grown[parts.what_if_note], own[parts.own.note]):
        assert "这次运行由" in told


def test_that_loading_was_given_up_is_said_in_the_page_s_language(chinese):
    def load(*_):
        raise Cancelled

    chinese.studio = Studio(Options(), load)
    *_, told = Running(chinese).generate(VISITOR, "one", "", *VALUES)
    assert "模型的加载已被取消" in told[chinese.parts.status]
