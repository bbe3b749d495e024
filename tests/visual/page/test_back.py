"""Back in time: runs that go on from an earlier round of a run, with its text kept or edited, and their futures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixtures_edges import TRACE
from turns import SETTINGS, finish

from eagle2.analysis.recut import cut_again
from eagle2.analysis.regrow import regrow
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from visual.server.conversation import Turn, advance

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
    trace = trace_files.from_json(trace_files.to_json(new.trace()))
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
    loaded = visit.load(trace_files.from_json(trace_files.to_json(saved)), "saved.json")
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
        ([b"user", b"a", b"\xff", b"b", b"\xf0\x9f"], "a\ufffdb\ufffd", 4),
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
    with pytest.raises(ValueError, match="that continuation is no longer part"):
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
