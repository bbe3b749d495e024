"""A visitor's turns on a real engine: follow-ups, stopping and going on, recorded turns."""

from __future__ import annotations

import itertools

import pytest
from fixtures_edges import TRACE
from synthetic import run
from turns import SETTINGS, finish

from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from visual.server.conversation import Visit, advance


def test_a_first_turn_is_the_chat_template_of_system_and_prompt(visit, engine):
    turn = finish(visit.begin(engine, "one two", "be short", SETTINGS), engine)
    messages = [{"role": "system", "content": "be short"}, {"role": "user", "content": "one two"}]
    assert turn.prompt_ids == engine.encode_chat(messages)
    plain = engine.plain(turn.prompt_ids, Sampling(), 20)
    assert turn.ids == turn.prompt_ids + plain
    assert visit.shown is visit.last is turn


def test_a_blank_system_prompt_is_none(visit, engine):
    turn = visit.begin(engine, "one", "  \n", SETTINGS)
    assert [message["role"] for message in turn.messages] == ["user"]


def test_a_follow_up_begins_with_exactly_the_ids_of_the_turns_before(visit, engine):
    first = finish(visit.begin(engine, "one", "", SETTINGS), engine)
    second = finish(visit.begin(engine, "two", "ignored now", SETTINGS), engine)
    third = visit.begin(engine, "three", "", SETTINGS)
    assert second.prompt_ids[: len(first.ids)] == first.ids
    assert third.prompt_ids[: len(second.ids)] == second.ids
    assert [message["role"] for message in third.messages] == ["user", "assistant"] * 2 + ["user"]
    assert visit.turns == [first, second, third]


def test_a_stopped_turn_can_be_followed_up(visit, engine):
    first = visit.begin(engine, "one", "", SETTINGS)
    advance(first, engine)
    second = visit.begin(engine, "two", "", SETTINGS)
    assert second.prompt_ids[: len(first.ids)] == first.ids
    assert first.source is None


def test_going_on_gives_the_same_rounds_with_and_without_the_generator(visit, engine):
    settings = Settings("eagle2", TreeShape(3, 3, 8), Sampling(1.0, seed=3), 30)
    whole = finish(visit.begin(engine, "tree", "", settings), engine)
    kept = Visit()
    stopped = kept.begin(engine, "tree", "", settings)
    for number in itertools.count():
        if not stopped.open:
            break
        if number % 3 == 1:
            kept.close()  # the generator is gone: the run goes on behind its rounds
        advance(stopped, engine)
    assert stopped.ids == whole.ids
    assert [r.accepted for r in stopped.rounds] == [r.accepted for r in whole.rounds]


def test_a_round_that_fails_can_be_tried_again(visit, engine, monkeypatch):
    turn = visit.begin(engine, "one", "", SETTINGS)
    advance(turn, engine)
    with monkeypatch.context() as patched:
        patched.setattr(engine.target, "verify", lambda *_: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError, match="no room"):
            advance(turn, engine)
    finish(turn, engine)
    assert turn.ids == turn.prompt_ids + engine.plain(turn.prompt_ids, Sampling(), 20)


def test_a_prompt_that_is_too_long_leaves_the_conversation_as_it_was(visit, engine):
    first = finish(visit.begin(engine, "one", "", SETTINGS), engine)
    with pytest.raises(ValueError, match="context holds 2048"):
        visit.begin(engine, "@" * 3000, "", SETTINGS)
    assert visit.turns == [first]
    assert visit.shown is first


def test_its_trace_saves_and_loads(visit, engine):
    turn = finish(visit.begin(engine, "<b> $5 %{x}", "", SETTINGS), engine)
    trace = turn.trace()
    assert trace_files.from_json(trace_files.to_json(trace)) == trace
    assert trace.new_ids == tuple(turn.ids[len(turn.prompt_ids) :])


def test_a_recorded_turn_is_closed_and_the_next_prompt_begins_a_new_chat(visit, engine):
    recorded = visit.load(run(3), "a recording")
    assert not recorded.open
    assert recorded.trace().rounds == run(3).rounds
    turn = visit.begin(engine, "one", "", SETTINGS)
    assert visit.turns == [turn]
    assert turn.prompt_ids == engine.encode_chat([{"role": "user", "content": "one"}])


def test_an_unfinished_recorded_turn_is_closed_too(visit):
    assert not visit.load(TRACE, "a file").open


def test_runs_have_names_of_their_own(visit, engine):
    names = {visit.begin(engine, "one", "", SETTINGS).run for _ in range(3)}
    assert len(names) == 3
    assert {turn.run for turn in visit.turns} == names
    for turn in visit.turns:
        assert visit.turn(turn.run) is turn
    with pytest.raises(ValueError, match="no longer part of this conversation"):
        visit.turn("run-0")


def test_clearing_lets_go_of_everything(visit, engine):
    turn = visit.begin(engine, "one", "", SETTINGS)
    visit.clear()
    assert (visit.turns, visit.shown, turn.source) == ([], None, None)
