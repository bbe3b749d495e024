"""A visit that moves from one language's page to the other, without a browser, on a real tiny pair."""

from __future__ import annotations

import json
from types import SimpleNamespace
from urllib.parse import parse_qsl

import gradio as gr
import pytest

from eagle2.settings import Sampling, Settings, TreeShape
from visual.page import language_switch
from visual.page.context import Common
from visual.page.form import FIELDS, Form
from visual.page.language_switch import Carried, Switching, carried
from visual.page.parts import Parts
from visual.page.tabs.viewing import Viewing
from visual.server.conversation import advance
from visual.server.studio import Options, Studio
from visual.server.visits import Visits

SETTINGS = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)
TYPED = ("half a sentence", "be brief", *(getattr(Form(top_k=5, max_new_tokens=20), name) for name in FIELDS))
VIEW = json.dumps({"round": 1, "phase": "rerank", "tab": "metrics"})


def request(session: str, **query: str) -> SimpleNamespace:
    return SimpleNamespace(session_hash=session, query_params=query)


@pytest.fixture
def pages(engine):
    """Both languages' pages of one app: {language: Switching}."""
    studio, visits = Studio(Options(max_new_tokens=64), load=lambda *_: engine), Visits()
    studio.engine()
    made = {}
    for language in ("en", "zh"):
        with gr.Blocks():
            common = Common(studio, Parts("", 64, studio.options.methods, language), language, visits)
            made[language] = Switching(common, Viewing(common, None).load)
    return made


@pytest.fixture
def turn(pages, engine):
    """An open run of three rounds on the English page."""
    begun = pages["en"].common.visit(request("english")).begin(engine, "one two", "", SETTINGS)
    for _ in range(3):
        advance(begun, engine)
    assert begun.open
    return begun


def leave(page: Switching, to: str, come_from: SimpleNamespace, view: str = VIEW) -> str:
    return page.leaving(to)(come_from, view, *TYPED)[page.parts.elsewhere]


def test_the_run_its_place_and_what_was_typed_are_on_the_other_page_and_the_run_can_go_on(pages, turn, engine):
    english, chinese = pages["en"], pages["zh"]
    address = leave(english, "zh", request("english", recording="code", lang="en"))
    path, query = address.split("?")
    asked = dict(parse_qsl(query))
    assert (path, asked["recording"], "lang" in asked) == ("./zh", "code", False)
    told = chinese.load(request("chinese", **asked))
    p = chinese.parts
    shown = json.loads(told[p.player])
    assert (shown["run"], shown["count"], len(shown["rounds"])) == (turn.run, 3, 3)
    assert shown["show"] == {"round": 1, "phase": "rerank", "play": False}
    assert shown["rounds"][0]["heading"]["outcome"].startswith("接受")
    assert [told[part] for part in (p.prompt, p.system, *p.fields)] == list(TYPED)
    assert "第 3 轮之后停止" in told[p.status]
    assert "候选池" in told[p.meaning]
    assert chinese.common.visit(request("chinese")).last is turn
    assert english.common.visit(request("english")).last is None
    advance(turn, engine)
    assert len(turn.rounds) == 4


def test_a_recorded_run_is_named_anew_and_an_empty_page_stays_empty(pages):
    english, chinese = pages["en"], pages["zh"]
    english.load(request("english", recording="pancakes"))
    asked = dict(parse_qsl(leave(english, "zh", request("english")).split("?")[1]))
    told = chinese.load(request("chinese", **asked))
    assert json.loads(told[chinese.parts.log])["turns"][0]["name"].startswith("运行记录：菜谱")
    assert told[chinese.parts.recorded] == "pancakes"
    chinese.common.visit(request("chinese")).clear()
    asked = dict(parse_qsl(leave(chinese, "en", request("chinese")).split("?")[1]))
    assert asked["lang"] == "en"
    told = english.load(request("again", **asked))
    assert json.loads(told[english.parts.log])["turns"] == []
    assert told[english.parts.status] == ""


def test_a_run_that_cannot_be_stopped_now_keeps_its_page(pages, turn, monkeypatch):
    monkeypatch.setattr(language_switch, "HALT_S", 0.0)
    visit = pages["en"].common.visit(request("english"))
    visit.busy = True
    told = pages["en"].leaving("zh")(request("english"), VIEW, *TYPED)
    assert told[pages["en"].parts.elsewhere] == ""
    assert "stop it first" in told[pages["en"].parts.status]
    assert visit.halt  # so that it is over soon, and a second try succeeds


def test_a_key_that_is_not_known_any_more_is_told_beside_a_first_sight(pages):
    told = pages["zh"].load(request("chinese", resume="gone"))
    assert "没能带过来" in told[pages["zh"].parts.status]
    assert json.loads(told[pages["zh"].parts.player])["count"] > 0


@pytest.mark.parametrize("view", ["", "[]", "{}", '{"round": "x", "phase": 1}', '{"round": 1e999, "phase": ""}'])
def test_a_view_that_cannot_be_read_only_loses_its_place(view):
    assert carried(view, TYPED) == Carried(TYPED)
