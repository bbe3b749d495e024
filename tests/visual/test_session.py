"""A visitor's turns on a real engine: follow-ups, stopping and going on, recorded turns, and many visitors."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from fixtures_edges import TRACE
from synthetic import run

from eagle2 import trace_file
from eagle2.config import Sampling, TreeShape
from eagle2.recut import cut_again
from eagle2.regrow import regrow
from eagle2.trace import Settings
from visual.session import Turn, Visit, advance
from visual.visits import Visits

SETTINGS = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)


def finish(turn, engine):
    while turn.open:
        advance(turn, engine)
    return turn


@pytest.fixture
def visit():
    return Visit()


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
    assert trace_file.from_json(trace_file.to_json(trace)) == trace
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
    with pytest.raises(ValueError, match="not part of this conversation"):
        visit.turn("run-0")


def test_clearing_lets_go_of_everything(visit, engine):
    turn = visit.begin(engine, "one", "", SETTINGS)
    visit.clear()
    assert (visit.turns, visit.shown, turn.source) == ([], None, None)


def test_visitors_are_bounded_and_the_longest_unseen_is_forgotten():
    visits = Visits(limit=3)
    first = visits.of("a")
    for name in "bc":
        visits.of(name)
    assert visits.of("a") is first
    second = visits.of("b")
    visits.of("d")  # c was seen longest ago
    assert len(visits) == 3
    assert visits.of("a") is first
    assert visits.of("b") is second


def test_a_busy_visitor_is_never_forgotten():
    visits = Visits(limit=2)
    busy = visits.of("busy")
    busy.busy = True
    for number in range(10):
        visits.of(str(number))
    assert visits.of("busy") is busy
    assert len(visits) == 2


def test_forgetting_closes_an_idle_run_and_halts_a_busy_one(engine):
    visits = Visits()
    idle, busy = visits.of("idle"), visits.of("busy")
    turns = [visit.begin(engine, "one", "", SETTINGS) for visit in (idle, busy)]
    busy.busy = True
    for name in ("idle", "busy", "never seen"):
        visits.forget(name)
    assert [turn.source is None for turn in turns] == [True, False]
    assert busy.halt
    assert len(visits) == 0


def test_without_a_session_nothing_is_shared():
    visits = Visits()
    assert visits.of(None) is not visits.of(None)
    assert len(visits) == 0


def test_a_parked_visit_goes_to_whoever_has_its_key_once_and_what_was_carried_with_it(engine):
    visits = Visits()
    visit = visits.of("english")
    turn = visit.begin(engine, "one", "", SETTINGS)
    visit.halt = True
    key = visits.park("english", carried="typed")
    assert visits.of("english") is visit  # until it is taken over: the change of pages may fail
    assert visits.resume("no such key", "chinese") is None
    assert visits.resume(key, "chinese") == (visit, "typed")
    assert (visits.of("chinese"), visit.halt, visit.last) == (visit, False, turn)
    assert visits.resume(key, "a third") is None
    visits.forget("english")  # its page is closed only now
    assert not visit.halt
    assert turn.source is not None


def test_parked_visits_are_forgotten_oldest_first():
    visits = Visits(limit=2)
    keys = [visits.park(name) for name in ("one", "two", "three")]
    assert [visits.resume(key, "next") is not None for key in keys] == [False, True, True]


CHAIN = Settings("chain", TreeShape(1, 2, 2), Sampling(), 20)


def kept(turn, rounds):
    return [token for r in turn.rounds[:rounds] for token in r.committed]


def test_going_back_begins_a_run_whose_prompt_ends_with_the_text_kept(visit, engine):
    old = finish(visit.begin(engine, "one two", "", SETTINGS), engine)
    new = visit.back(1, None, CHAIN, engine)
    assert visit.last is visit.shown is new
    assert visit.futures == (old, new)
    assert new.prompt_ids == old.prompt_ids + kept(old, 2)
    assert new.messages == [*old.messages, {"role": "assistant", "content": engine.decode(kept(old, 2))}]
    assert (new.rounds, new.open, new.settings) == ([], True, CHAIN)
    finish(new, engine)
    assert new.ids[: len(old.ids)] == old.ids  # another tree, the same text
    assert {r.kept for r in new.rounds} == {2}
    assert len(old.rounds[0].token) == 3 + 2 * 9  # the future left behind is as it was


def test_the_text_is_the_same_at_any_temperature_since_its_draws_are_keyed_by_place(visit, engine):
    warm = Settings("eagle2", TreeShape(3, 3, 8), Sampling(1.5, seed=3), 20)
    old = finish(visit.begin(engine, "one two", "", warm), engine)
    new = finish(visit.back(0, None, warm, engine), engine)
    assert new.ids[: len(old.ids)] == old.ids
    assert engine.check(new.prompt_ids, new.ids[len(new.prompt_ids) :], warm.sampling).lossless


def test_the_record_of_a_run_gone_on_with_is_true_of_all_its_rounds(visit, engine):
    finish(visit.begin(engine, "one two", "", SETTINGS), engine)
    new = finish(visit.back(1, None, CHAIN, engine), engine)
    trace = trace_file.from_json(trace_file.to_json(new.trace()))
    assert (trace.settings, trace.messages[-1][0]) == (CHAIN, "assistant")
    for index, r in enumerate(trace.rounds):
        assert cut_again(trace, index, trace.settings).kept == r.flattened
        grown = regrow(engine, trace, index, trace.settings)
        assert (grown.token, grown.committed) == (r.token, r.committed)


def test_the_text_can_be_edited_and_edited_again(visit, engine):
    old = finish(visit.begin(engine, "one two", "", SETTINGS), engine)
    new = visit.back(1, "three four", SETTINGS, engine)
    assert new.prompt_ids == old.prompt_ids + engine.encode_answer("three four")
    assert new.answer_begun == "three four"
    finish(new, engine)
    again = visit.back(0, None, SETTINGS, engine)
    assert again.prompt_ids == new.prompt_ids + kept(new, 1)
    assert again.answer_begun == engine.decode(engine.encode_answer("three four") + kept(new, 1))
    bare = visit.back(0, "", SETTINGS, engine)
    assert (bare.prompt_ids, bare.messages) == (old.prompt_ids, old.messages)
    assert finish(bare, engine).ids == old.ids
    assert visit.futures == (old, new, again, bare)


def test_a_follow_up_of_a_run_gone_on_with_has_one_answer_begun_and_ended(visit, engine):
    finish(visit.begin(engine, "one two", "", SETTINGS), engine)
    new = finish(visit.back(0, "three", SETTINGS, engine), engine)
    third = visit.begin(engine, "four", "", SETTINGS)
    assert third.prompt_ids[: len(new.ids)] == new.ids
    assert [message["role"] for message in third.messages] == ["user", "assistant", "user"]
    assert third.messages[1]["content"] == engine.decode(new.answer_ids)
    assert third.messages[1]["content"].startswith("three")


def test_a_saved_run_gone_on_with_is_gone_back_in_as_before_it_was_saved(visit, engine):
    old = finish(visit.begin(engine, "one two", "", SETTINGS), engine)
    begun = engine.encode_answer("three four")
    saved = finish(visit.back(1, "three four", SETTINGS, engine), engine).trace()
    loaded = visit.load(trace_file.from_json(trace_file.to_json(saved)), "saved.json")
    assert loaded.answer_ids == [*begun, *saved.new_ids]
    again = finish(visit.again(SETTINGS, engine), engine)
    assert again.answer_ids == loaded.answer_ids
    edited = visit.back(0, "five", SETTINGS, engine)
    assert edited.prompt_ids == old.prompt_ids + engine.encode_answer("five")
    visit.switch(again.run)
    kept_on = visit.back(0, None, SETTINGS, engine)
    assert kept_on.prompt_ids == old.prompt_ids + begun + kept(again, 1)
    assert kept_on.answer_begun.startswith("three four")


@pytest.mark.parametrize(
    ("spelled", "text", "begun"),
    [
        ([b"user", b"1", b", ", b"2"], "1, 2", 3),
        ([b"Assistant:", b" Hel", b"lo"], "Hello", 2),  # as SentencePiece spells the first word
        ([b"user", b"a", b"\xf0\x9f"], "a\ufffd", 2),  # the rest of the character was not kept
        ([b"user", b"1", b"2"], "another text", 0),
        ([b"user", b"1", b"2"], "", 0),
    ],
)
def test_a_recorded_answers_beginning_is_found_by_the_bytes_that_spell_it(spelled, text, begun):
    messages = (("user", "u"), *([("assistant", text)] if text else []))
    trace = replace(TRACE, prompt_ids=tuple(range(len(spelled))), tokens=dict(enumerate(spelled)), messages=messages)
    assert Turn.recorded(trace, "a file").begun == begun


def test_a_round_more_makes_what_was_measured_out_of_date(visit, engine):
    turn = visit.begin(engine, "one", "", SETTINGS)
    advance(turn, engine)
    turn.found = "measured"
    advance(turn, engine)
    assert turn.found is None


def test_an_end_token_is_not_kept(visit, engine):
    old = visit.begin(engine, "one", "", SETTINGS)
    first = advance(old, engine)
    end = min(engine.target.end_ids)
    old.rounds[0] = replace(first, committed=(*first.committed, end), finish="stop")
    assert visit.back(0, None, SETTINGS, engine).prompt_ids == old.prompt_ids + list(first.committed)


def test_one_can_switch_between_futures_and_a_new_prompt_forgets_those_left(visit, engine):
    old = finish(visit.begin(engine, "one", "", SETTINGS), engine)
    new = visit.back(0, None, SETTINGS, engine)
    assert visit.switch(old.run) is old
    assert (visit.turns, visit.futures) == ([old], (old, new))
    assert visit.switch(new.run) is visit.shown is new
    with pytest.raises(ValueError, match="not part of this conversation"):
        visit.switch("run-0")
    visit.begin(engine, "two", "", SETTINGS)
    assert visit.futures == ()


def test_what_cannot_be_gone_back_to_leaves_everything_as_it_was(visit, engine):
    old = finish(visit.begin(engine, "one", "", SETTINGS), engine)
    with pytest.raises(ValueError, match="asks for 10000 children"):
        visit.back(0, None, Settings("static", paths=((9999,),)), engine)
    with pytest.raises(ValueError, match=r"2,?048"):
        visit.back(0, "one " * 3000, SETTINGS, engine)
    old.pair = replace(old.pair, target="another")
    with pytest.raises(ValueError, match="load the same models"):
        visit.back(0, None, SETTINGS, engine)
    assert (visit.turns, visit.futures) == ([old], ())
