"""Texts and files larger than anything the page can use: refused in one sentence, before any work is done on them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fixtures_edges import FIRST, TRACE

from eagle2.trace import files as trace_files
from eagle2.tree_paths import MOST_CHARACTERS as MOST_OF_A_TREE
from visual.figures.token_labels import note
from visual.page.form import MOST, MOST_CHARACTERS
from visual.page.parts import RECORDINGS
from visual.page.tabs.figures import Figuring
from visual.page.tabs.models import Picking
from visual.page.tabs.models_parts import MOST_NAME
from visual.page.tabs.returning import Returning
from visual.page.tabs.running import Running
from visual.page.tabs.viewing import TRACES, Viewing
from visual.page.tabs.your_tree.drawing import Drawing
from visual.words.say import say

VISITOR = SimpleNamespace(session_hash="visitor")
VALUES = ("eagle2", 3, 3, 8, 0, 1, 0, 0, 20)


def too_long(kind: str) -> str:
    most = MOST_CHARACTERS[kind]
    return note(say("form.too_long", name=say(f"form.text.{kind}"), count=most + 1, most=most), alert=True)


def end(told) -> dict:
    """All that a handler changes, the latest last."""
    shown = {}
    for changed in told:
        shown |= changed
    return shown


@pytest.fixture
def wide(tmp_path):
    """A saved run of 12 kB whose root has 1,600 children."""
    nodes = 1600
    pool = {
        "token": tuple(range(nodes)),
        "parent": (-1,) * nodes,
        "depth": (1,) * nodes,
        "slot": (None,) * nodes,
        "target_probability": (None,) * nodes,
        "fate": ("pruned",) * nodes,
        "expanded": (False,) * nodes,
        "confidence": (0.0,) * nodes,
        "value": (0.0,) * nodes,
    }
    r = replace(FIRST, **pool, accepted=(), bonus=8, committed=(3, 8), checks=(), drafted=nodes, kept=0)
    tokens = {token: b"x" for token in range(nodes)}
    path = tmp_path / "wide.json.gz"
    trace_files.save(replace(TRACE, rounds=(r,), tokens=tokens), path)
    return str(path)


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_that_is_shipped_is_within_the_limits_of_an_upload(name):
    assert trace_files.load(TRACES / f"{name}.json.gz", most=MOST).rounds


def test_an_upload_of_a_tree_wider_than_can_be_drawn_is_refused_and_changes_nothing(common, wide):
    told = Viewing(common, None).upload(wide, VISITOR)
    assert told[common.parts.status] == note("round 0 has 1600 children of one node; at most 32 are read", alert=True)
    assert common.parts.player not in told
    assert common.visit(VISITOR).shown is None


def test_figures_refuse_such_a_file_too(common, wide):
    told = Figuring(common).draw(VISITOR, "files", [wide])
    assert "1600 children of one node" in told[common.parts.figures_note]


@pytest.mark.parametrize("kind", ["prompt", "system"])
def test_a_prompt_longer_than_its_box_is_refused_before_it_is_encoded(common, engine, kind, monkeypatch):
    monkeypatch.setattr(type(engine), "encode_chat", lambda *_: pytest.fail("it was encoded"))
    texts = {"prompt": "one", "system": ""} | {kind: "x" * (MOST_CHARACTERS[kind] + 1)}
    told = end(Running(common).generate(VISITOR, texts["prompt"], texts["system"], *VALUES))
    assert told[common.parts.status] == too_long(kind)
    assert not common.visit(VISITOR).turns


def test_an_edited_answer_longer_than_an_answer_can_be_is_refused_and_the_run_stays(common):
    running = Running(common)
    end(running.generate(VISITOR, "one two", "", *VALUES))
    visit = common.visit(VISITOR)
    run = visit.last.run
    asked = {"run": run, "round": 0, "text": "x" * (MOST_CHARACTERS["answer"] + 1)}
    told = end(Returning(common, running).back(VISITOR, SimpleNamespace(_data=asked), *VALUES))
    assert told[common.parts.status] == too_long("answer")
    assert (visit.last.run, visit.futures) == (run, ())


@pytest.mark.parametrize(("handler", "key"), [("typed", "text"), ("picked", "paths")])
def test_a_tree_text_longer_than_any_tree_is_refused(common, handler, key):
    event = SimpleNamespace(_data={key: "[0]" + " " * 200_000 + "x"})
    told = getattr(Drawing(common), handler)(event, VISITOR)
    said = say("own.fault.long", count=200_004, most=MOST_OF_A_TREE)
    assert told[common.parts.own.note] == note(said, alert=True)


def test_a_models_name_longer_than_a_path_can_be_is_refused(common):
    picking, name = Picking(common), "x" * (MOST_NAME + 1)
    said = note(say("pair.name_long", count=MOST_NAME + 1, most=MOST_NAME), alert=True)
    assert picking.weigh(name, "", VISITOR)[picking.fields.weight] == said
    assert picking.load("", name, VISITOR)[picking.fields.progress] == said
    assert common.studio.load is None
