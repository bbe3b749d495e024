"""What the tabs Figures, What if and Compare and the way back answer, without a browser, on a real tiny pair."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from eagle2.examples import paper_figures
from eagle2.examples.recordings import RECORDINGS
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from visual.page.context import Common
from visual.page.form import Form
from visual.page.parts import FIGURES, PRESETS
from visual.page.tabs.compare import Comparing
from visual.page.tabs.figures import MOST_FILES, Figuring
from visual.page.tabs.returning import Returning
from visual.page.tabs.running import Running
from visual.page.tabs.viewing import TRACES, Viewing, recording
from visual.page.tabs.what_if import Recutting
from visual.page.tabs.your_tree.drawing import Drawing
from visual.server.conversation import advance
from visual.words.say import say

VISITOR = SimpleNamespace(session_hash="visitor")
SETTINGS = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)
OWN = ("eagle2", 3, 3, 8)


@pytest.fixture
def live(common, engine):
    """A visitor with a finished run of the tiny pair."""
    visit = common.visit(VISITOR)
    turn = visit.begin(engine, "one two", "", SETTINGS)
    while turn.open:
        advance(turn, engine)
    return visit


def opened(key: str, common: Common) -> SimpleNamespace:
    return SimpleNamespace(value=common.say(key))


def figure(message: str) -> dict | None:
    return json.loads(message)["light"]


def cells(table: str) -> list[str]:
    return [cell.split("</td>")[0] for cell in table.split("<tbody>")[1].split("<td>")[1:]]


def test_figures_are_drawn_when_their_tab_opens_and_its_clock_runs_only_then(common, live):
    figuring = Figuring(common)
    told = figuring.tab(opened("page.tab_figures", common), VISITOR, "run", None)
    assert f"Rounds: {len(live.last.rounds)} · runs: 1" in told[common.parts.figures_note]
    assert all(figure(told[part])["data"] for part in common.parts.figures)
    assert list(common.parts.figures.values()) == list(FIGURES)
    assert told[common.parts.figures_clock].active
    left = figuring.tab(opened("page.tab_rounds", common), VISITOR, "run", None)
    assert list(left) == [common.parts.figures_clock]
    assert not left[common.parts.figures_clock].active


def test_figures_are_drawn_again_only_where_rounds_were_added(common, live, engine):
    figuring = Figuring(common)
    figuring.draw(VISITOR, "run", None)
    assert list(figuring.tick(VISITOR, "run", None)) == [common.parts.figures_note]
    advance(live.begin(engine, "three", "", SETTINGS), engine)
    told = figuring.tick(VISITOR, "run", None)
    assert "Rounds: 1 · runs: 1" in told[common.parts.figures_note]
    told = figuring.draw(VISITOR, "conversation", None)
    assert f"Rounds: {sum(len(t.rounds) for t in live.turns)} · runs: 2" in told[common.parts.figures_note]


def test_recordings_files_and_nothing_at_all(common, tmp_path):
    figuring = Figuring(common)
    note = common.parts.figures_note
    runs = [trace_files.load(TRACES / f"{wanted.name}.json.gz").rounds for wanted in RECORDINGS]
    drafted = sum(bool(r.token) for rounds in runs for r in rounds)
    assert f"Rounds: {drafted} · runs: {len(runs)}" in figuring.draw(VISITOR, "recorded", None)[note]
    files = [str(TRACES / f"{name}.json.gz") for name in paper_figures.examples()]
    assert "Rounds: 4 · runs: 4" in figuring.draw(VISITOR, "files", files)[note]
    empty = figuring.draw(VISITOR, "run", None)
    assert "fill as you generate" in empty[note]
    assert [figure(empty[part]) for part in common.parts.figures] == [None] * 5
    assert "at most 16" in figuring.draw(VISITOR, "files", files[:1] * (MOST_FILES + 1))[note]
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}", encoding="utf-8")
    assert 'role="alert"' in figuring.draw(VISITOR, "files", [str(wrong)])[note]


def test_what_if_begins_with_the_runs_own_settings_and_the_same_tree(common, live):
    told = Recutting(common).tab(opened("page.tab_what_if", common), VISITOR)
    assert tuple(told[field] for field in common.parts.what_if) == OWN
    assert "Exact" in told[common.parts.what_if_note]
    assert (
        told[common.parts.what_if_before].split('"serial"')[0] == told[common.parts.what_if_after].split('"serial"')[0]
    )
    pairs = cells(told[common.parts.what_if_table])
    assert pairs[::2] == pairs[1::2]


def test_what_if_begins_no_larger_than_its_sliders_go(common):
    large = replace(recording("counting"), settings=Settings("eagle2", TreeShape(500, 40, 5000)))
    common.visit(VISITOR).load(large, "a file")
    told = Recutting(common).tab(opened("page.tab_what_if", common), VISITOR)
    assert [told[field] for field in common.parts.what_if[1:]] == [32, 12, 256]
    for field in common.parts.what_if:
        field.preprocess(told[field])  # what the browser sends back is taken


def test_what_if_cuts_figure_7_to_the_two_best(common):
    common.visit(VISITOR).load(recording("figure-7"), "figure 7")
    told = Recutting(common).cut(VISITOR, "eagle2", 2, 3, 2)  # is .6, a .48: the target takes both, then " good"
    assert cells(told[common.parts.what_if_table])[1::2] == ["10", "3", "2.08", "3", "1.00"]
    told = Recutting(common).cut(VISITOR, "eagle2", 3, 3, 7)
    assert "Not exact" in told[common.parts.what_if_note]


@pytest.mark.parametrize("method", ["eagle2", "eagle", "chain", "eagle2-no-both"])
def test_a_round_is_grown_again_with_the_model(common, live, method):
    recutting = Recutting(common)
    live.round = 1
    told = recutting.grow(VISITOR, method, 3, 3, 8)
    assert say("what_if.grown_note") in told[common.parts.what_if_note]
    recorded, grown = (cells(told[common.parts.what_if_table])[side::2] for side in (0, 1))
    assert (grown == recorded) == (method == "eagle2")


def test_what_cannot_be_cut_or_grown_is_told(common, live):
    recutting = Recutting(common)
    assert "whole number from 1 to" in recutting.cut(VISITOR, "eagle2", 0, 3, 8)[common.parts.what_if_note]
    live.load(recording("counting"), "counting")
    assert "load that pair again" in recutting.grow(VISITOR, *OWN)[common.parts.what_if_note]
    live.clear()
    assert "No round yet" in recutting.cut(VISITOR, *OWN)[common.parts.what_if_note]


def test_figure_4_stands_in_compare_before_anything_is_compared(common):
    told = Comparing(common).tab(opened("page.tab_compare", common), VISITOR)
    assert "both runs wrote the same 3 tokens" in told[common.parts.beside_note]
    assert cells(told[common.parts.beside_table])[4:6] == ["2.00", "3.00"]
    assert all(figure(told[tree])["data"] for tree in common.parts.beside_trees)


@pytest.mark.parametrize("preset", PRESETS)
def test_both_methods_of_a_preset_write_the_same_text(common, live, preset):
    comparing = Comparing(common)
    *_, told = comparing.run(VISITOR, preset)
    assert "both runs wrote the same 20 tokens" in told[common.parts.beside_note]
    assert not live.busy
    told = comparing.move(VISITOR, 20)
    assert "Token 20:" in told[common.parts.beside_note]
    assert cells(told[common.parts.beside_table])[:2] == ["19", "19"]
    assert [turn.settings.policy for turn in live.beside] == list(PRESETS[preset])
    assert live.last.settings == SETTINGS  # the conversation is left alone


def test_a_comparison_needs_the_models_of_the_run(common):
    common.visit(VISITOR).load(recording("counting"), "counting")
    *_, told = Comparing(common).run(VISITOR, "static")
    assert "write a new prompt, or load that pair again" in told[common.parts.beside_note]
    assert not common.visit(VISITOR).busy
    common.language = "zh"
    *_, told = Comparing(common).run(VISITOR, "static")
    assert "请写一个新的提示词" in told[common.parts.beside_note]


def test_a_run_that_the_same_models_made_elsewhere_is_compared_with_the_pair_in_use(common, live, engine):
    pair = replace(engine.pair, device="cuda", dtype="bfloat16", draft_model="another", target_revision="1")
    live.load(replace(live.last.trace(), pair=pair), "saved.json")
    *_, told = Comparing(common).run(VISITOR, "static")
    assert "both runs wrote the same 20 tokens" in told[common.parts.beside_note]
    assert [turn.pair for turn in live.beside] == [engine.pair] * 2


@pytest.mark.parametrize(
    ("beyond", "told"),
    [({"max_new_tokens": 65}, "from 1 to 64"), ({"shape": TreeShape(3, 40, 8)}, "from 1 to 12")],
    ids=["tokens", "tree"],
)
def test_a_file_does_not_get_more_than_a_visitor_can_ask_for(common, live, beyond, told):
    saved = live.last.trace()
    live.load(replace(saved, settings=replace(saved.settings, **beyond)), "saved.json")
    *_, changed = Comparing(common).run(VISITOR, "static")
    assert told in changed[common.parts.beside_note]
    assert live.beside == ()
    *_, changed = Drawing(common).grow(VISITOR, "[0], [1]")
    assert (told in changed[common.parts.own.note]) == ("shape" in beyond)  # growing is one round, however long the run


@pytest.mark.parametrize("error", [KeyError("fc"), TypeError("no such thing"), gr.Error("worker lost"), IndexError()])
def test_whatever_a_comparison_fails_with_is_told_and_its_buttons_come_back(common, live, monkeypatch, error):
    def fail(*_):
        raise error
        yield

    monkeypatch.setattr(common.studio, "rounds", fail)
    *_, told = Comparing(common).run(VISITOR, "static")
    assert (str(error).strip("'") or "IndexError") in told[common.parts.beside_note].replace("&#x27;", "'")
    assert 'role="alert"' in told[common.parts.beside_note]
    assert (told[common.parts.generate]["interactive"], told[common.parts.stop]["interactive"]) == (True, False)


def test_a_comparison_tells_how_far_it_is_no_oftener_than_the_player_is_sent_rounds(common, live, monkeypatch):
    for pause, messages in ((0.0, lambda rounds: rounds), (float("inf"), lambda _: 0)):
        monkeypatch.setattr("visual.page.tabs.compare.SEND_EVERY_S", pause)
        _, *running, _ = Comparing(common).run(VISITOR, "chain")
        assert len(running) == messages(sum(len(turn.rounds) for turn in live.beside))


def went(run: str, round: int = 0, text: str | None = None) -> SimpleNamespace:
    """What the browser sends when one goes on from a round."""
    return SimpleNamespace(_data={"run": run, "round": round, "text": text})


def values(settings: Settings) -> list[object]:
    form = Form.of(settings)
    return [getattr(form, name) for name in Form.__dataclass_fields__]


def test_one_goes_on_from_a_round_with_its_text_edited_and_finds_the_old_future(common, live):
    returning = Returning(common, Running(common))
    old = live.last
    other = Settings("eagle2", TreeShape(3, 3, 2), Sampling(), 20)
    *_, told = returning.back(VISITOR, went(old.run, 0, "three"), *values(other))
    assert say("status.done_length") in told[common.parts.status]
    new = live.last
    assert (new.settings, new.answer_begun, new.open) == (other, "three", False)
    told = returning.future(VISITOR, went(old.run))
    assert live.last is live.shown is old
    assert "Continuation 1" in told[common.parts.status]
    chat = json.loads(told[common.parts.log])
    assert chat["futures"] == [old.run, new.run]
    assert [turn["run"] for turn in chat["turns"]] == [old.run]


def test_a_link_cannot_hold_a_text_that_was_kept(common, live):
    *_, _ = Returning(common, Running(common)).back(VISITOR, went(live.last.run), *values(SETTINGS))
    assert "was kept or edited" in Viewing(common, None).link(VISITOR)[common.parts.status]


def test_only_the_last_run_that_was_made_here_can_be_gone_back_in(common, live, engine):
    returning = Returning(common, Running(common))
    first = live.last
    live.begin(engine, "two", "", SETTINGS)
    *_, told = returning.back(VISITOR, went(first.run), *values(SETTINGS))
    assert say("back.none") in told[common.parts.status]
    turn = live.load(recording("counting"), "counting")
    *_, told = returning.back(VISITOR, went(turn.run), *values(SETTINGS))
    assert say("back.none") in told[common.parts.status]
    assert say("back.gone") in returning.future(VISITOR, went(first.run))[common.parts.status]
