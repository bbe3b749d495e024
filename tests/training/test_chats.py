"""Chats made by many slots side by side are the chats that one-at-a-time decoding makes."""

import numpy as np
import pytest
import torch
from tiny_chats import END, FORMAT, GREEDY, VOCAB, greedy_answer, make_sampler, random_prompts, take, tiny_llama

from eagle2.training.chats import draw, loops
from eagle2.training.options import ChatSettings

pytestmark = pytest.mark.usefixtures("one_thread")


def test_greedy_answers_equal_one_at_a_time_decoding(model):
    prompts = random_prompts(20)
    chats = list(make_sampler(model, prompts, temperatures=GREEDY))
    expected = {tuple(opening := FORMAT.opening(turns[0])): greedy_answer(model, opening, 40) for turns in prompts}
    spoiled = {opening for opening, answer in expected.items() if {0, 1} & set(answer) or answer == [END]}
    assert {chat.tokens[: chat.answer_start] for chat in chats} == set(expected) - spoiled
    for chat in chats:
        assert list(chat.tokens[chat.answer_start :]) == expected[chat.tokens[: chat.answer_start]]
    lengths = {len(chat.tokens) for chat in chats}
    assert 40 in lengths, "no chat met the cap: the test is too easy"
    assert len(lengths) > 3, "all chats ended together: the test is too easy"


def test_the_user_turn_is_sampled_and_its_answer_is_greedy(model):
    for chat in take(make_sampler(model, temperatures=GREEDY, second_turn=0.0), 20):
        user = chat.tokens[len(FORMAT.prefix) : chat.answer_start]
        assert user[-3:] == (END, *FORMAT.assistant)
        assert 1 <= len(user) - 3 <= 12
        assert not {0, 1, END} & set(user[:-3])
        assert chat.tokens[: len(FORMAT.prefix)] == FORMAT.prefix
        opening = list(chat.tokens[: chat.answer_start])
        assert list(chat.tokens[chat.answer_start :]) == greedy_answer(model, opening, 40)


def test_given_turns_follow_finished_answers(model):
    prompts = random_prompts(20, turns=2)
    chats = list(make_sampler(model, prompts, temperatures=GREEDY, max_length=80))
    seconds = {tuple(FORMAT.opening(turns[0])): turns[1] for turns in prompts}
    followed = 0
    for chat in chats:
        opening = chat.tokens[: chat.answer_start]
        first = greedy_answer(model, list(opening), 80)
        turn = [*FORMAT.user, *seconds[opening], END, *FORMAT.assistant]
        room = len(opening) + len(first) + len(turn) + 10 <= 80
        if first[-1] == END and room and len(chat.tokens) > len(opening) + len(first):
            follow_up = [*opening, *first, *turn]
            assert list(chat.tokens) == follow_up + greedy_answer(model, follow_up, 80)
            followed += 1
        else:
            assert list(chat.tokens[chat.answer_start :]) == first
    assert followed >= 3


def test_a_sampled_second_turn_leaves_a_well_formed_chat(model):
    chats = take(make_sampler(model, second_turn=1.0, max_length=80), 40)
    again = (END, *FORMAT.user)
    several = 0
    for chat in chats:
        answers = list(chat.tokens[chat.answer_start :])
        starts = [i for i in range(len(answers)) if tuple(answers[i : i + 3]) == again]
        several += bool(starts)
        # Control tokens stand only where the template puts them: one opens a user turn, one the answer to it.
        assert answers.count(1) == 2 * len(starts)
        assert len(chat.tokens) == 80 or answers[-1] == END
    assert several >= 5


def test_slots_refill_at_once_and_empty_out_at_the_end(model):
    rows, when_used_up = [], []

    def prompts():
        yield from random_prompts(20)
        when_used_up.append(len(rows))

    sampler = make_sampler(model, prompts())
    step = sampler.model.step
    sampler.model.step = lambda tokens, lengths: rows.append(len(tokens)) or step(tokens, lengths)
    list(sampler)
    assert set(rows[: when_used_up[0]]) == {3}
    assert rows[when_used_up[0] :] == sorted(rows[when_used_up[0] :], reverse=True)
    assert rows[-1] == 1


def test_a_prompt_that_is_to_be_answered_several_times_is_read_once_and_answered_greedily_once(model):
    prompts = [turns for turns in random_prompts(12) for _ in range(4)]
    sampler = make_sampler(model, prompts, temperatures=((0.0, 0.8), (1.0, 0.2)))
    prefill, read = sampler.model.prefill, []
    sampler.model.prefill = lambda ids: read.append(list(ids)) or prefill(ids)
    chats = list(sampler)
    assert read == [FORMAT.opening(turns[0])[:-1] for turns in prompts[::4]]
    dropped = sampler.counts["special token"] + sampler.counts["empty answer"]
    assert len(chats) + dropped == 48
    greedy = [chat.tokens[: chat.answer_start] for chat in chats if chat.temperature == 0]
    assert len(greedy) == len(set(greedy)) >= 10


def test_no_chat_passes_the_cap_and_a_prompt_without_room_is_counted(model):
    prompts = [[[9] * 3], [[9] * 30], [[9] * 4]]
    sampler = make_sampler(model, prompts)
    chats = list(sampler)
    assert sampler.counts["prompt too long"] == 1
    assert {chat.answer_start for chat in chats} <= {9, 10}
    assert all(len(chat.tokens) <= 40 for chat in take(make_sampler(model), 50))


def test_a_long_user_turn_is_abandoned_and_counted(model):
    sampler = make_sampler(model, max_user=2)
    chats = take(sampler, 10)
    assert sampler.counts["user turn too long"] > 0
    assert all(chat.answer_start <= 3 + 2 + 1 + 2 for chat in chats)


def test_a_looping_answer_ends_its_chat_once_48_tokens_show_it():
    model = tiny_llama()
    with torch.no_grad():  # whatever it is told, it says 9
        model.lm_head.weight.zero_()
        model.model.norm.weight.fill_(1.0)
        model.lm_head.weight[9] = 0.0
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(VOCAB, 24) + 0.5)
        model.lm_head.weight[9] = 1.0
    sampler = make_sampler(model, random_prompts(2), temperatures=GREEDY, max_length=120, room=50)
    steps = []
    step = sampler.model.step
    sampler.model.step = lambda tokens, lengths: steps.append(1) or step(tokens, lengths)
    chats = list(sampler)
    assert [set(chat.tokens[chat.answer_start :]) for chat in chats] == [{9}, {9}]
    assert [len(chat.tokens) - chat.answer_start for chat in chats] == [48, 48]
    assert sampler.counts["cut in a loop"] == 2
    assert len(steps) < 70


def test_an_answer_of_the_most_tokens_allowed_ends_its_chat(model):
    chats = list(make_sampler(model, random_prompts(6), temperatures=GREEDY, max_answer=4))
    lengths = [len(chat.tokens) - chat.answer_start for chat in chats]
    assert max(lengths) == 4
    free = list(make_sampler(model, random_prompts(6), temperatures=GREEDY))
    longest = {chat.tokens[: chat.answer_start]: chat.tokens for chat in free}
    for chat in chats:  # the same answers, cut
        assert longest[chat.tokens[: chat.answer_start]][: len(chat.tokens)] == chat.tokens


def test_seeds_decide_the_chats(model):
    def first_chats(*key):
        sampler = make_sampler(model)
        sampler.reseed(*key)
        return take(sampler, 6)

    assert first_chats(3, 0) == first_chats(3, 0)
    assert first_chats(3, 0) != first_chats(3, 1)
    before = torch.random.get_rng_state()
    first_chats(3, 2)
    assert torch.equal(before, torch.random.get_rng_state())


def test_draw_is_greedy_at_zero_and_keeps_to_the_top_k():
    logits = torch.log(torch.tensor([[0.1, 0.6, 0.3, 1e-9]])).expand(4000, -1)
    generator = torch.Generator().manual_seed(0)
    assert set(draw(logits, [0.0] * 4000, 3, generator)) == {1}
    drawn = np.bincount(draw(logits, [1.0] * 4000, 2, generator), minlength=4) / 4000
    np.testing.assert_allclose(drawn, [0, 2 / 3, 1 / 3, 0], atol=0.03)
    squared = np.bincount(draw(logits, [0.5] * 4000, 2, generator), minlength=4) / 4000
    np.testing.assert_allclose(squared, [0, 0.8, 0.2, 0], atol=0.03)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([7] * 48, True),
        ([1, 2, 3] * 16, True),
        ([1, 2, 3] * 30 + [1], True),  # the cut may fall anywhere in the cycle
        (list(range(50)) + [4, 5] * 24, True),  # a loop after good text
        ([1, 2, 3, 4, 5, 6, 7, 8] * 6, True),
        (list(range(9)) * 6, False),  # a cycle of nine may be a table
        ([7] * 47, False),
        ([7] * 100 + [8], False),  # it got out
        (list(range(48)), False),
        ([], False),
    ],
)
def test_loops_are_recognised(ids, expected):
    assert loops(ids) is expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slots": 0}, "slots is 0; it must be 1 or more"),
        ({"second_turn": 1.5}, r"second_turn is 1\.5"),
        ({"temperatures": ((-1.0, 1.0),)}, "temperatures is"),
        ({"max_answer": -1}, "max_answer is -1; it must be 0 or more"),
    ],
)
def test_settings_refuse_what_makes_no_sense(change, message):
    with pytest.raises(ValueError, match=message):
        ChatSettings(**change)


def test_a_cap_below_the_template_is_refused(model):
    with pytest.raises(ValueError, match="max_length is 7; this chat template needs 8 or more"):
        make_sampler(model, max_length=7)
