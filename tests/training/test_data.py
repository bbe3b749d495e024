"""Chats made by many slots side by side are the chats that one-at-a-time decoding makes; shards are whole or absent."""

import argparse
import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from eagle2.training import data
from eagle2.training.chats import Chat, ChatFormat, ChatSampler, draw, loops
from eagle2.training.data import ShardFolder, generate, load_chats, read_prompts, shard_paths
from eagle2.training.lean import LeanLlama
from eagle2.training.settings import ChatSettings, add_data_options

VOCAB, END = 32, 2
FORMAT = ChatFormat(prefix=(1, 5, 6), assistant=(1, 7), user=(1, 8), end=END, special=frozenset({0, 1, END}))
GREEDY = ((0.0, 1.0),)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Products this small are faster on one thread, many times so on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tiny_llama(**changes) -> LlamaForCausalLM:
    """A random model that ends turns now and then, and that is far from ties."""
    torch.manual_seed(0)
    config = {
        "vocab_size": VOCAB,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,
    }
    model = LlamaForCausalLM(LlamaConfig(**config | changes)).eval()
    with torch.no_grad():
        for layer in model.model.layers:  # norms of one would hide a norm that is left out
            layer.input_layernorm.weight.uniform_(0.5, 1.5)
            layer.post_attention_layernorm.weight.uniform_(0.5, 1.5)
        model.lm_head.weight[[0, 1]] = 0.0  # control tokens stay possible, but rare
    return model


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return tiny_llama()


def make_sampler(model, prompts=None, **settings) -> ChatSampler:
    settings = ChatSettings(**{"slots": 3, "max_length": 40, "max_user": 12, "room": 10, "top_k": 8} | settings)
    return ChatSampler(LeanLlama(model, settings.slots, settings.max_length), FORMAT, settings, prompts)


def take(sampler: ChatSampler, count: int) -> list[Chat]:
    return [chat for chat, _ in zip(sampler, range(count), strict=False)]


def random_prompts(count: int, turns: int = 1) -> list[list[list[int]]]:
    """No two begin alike."""
    rng = np.random.default_rng(0)
    return [[[3 + i, *rng.integers(3, VOCAB, rng.integers(0, 5)).tolist()] for _ in range(turns)] for i in range(count)]


@torch.inference_mode()
def greedy_answer(model, ids: list[int], max_length: int) -> list[int]:
    """The oracle: the stock model, one sequence, no cache."""
    ids, start = list(ids), len(ids)
    while len(ids) < max_length and (len(ids) == start or ids[-1] != END):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[start:]


# The lean forward pass


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 4},
        {"tie_word_embeddings": True},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}},
    ],
    ids=["grouped", "ungrouped", "tied", "rope scaled"],
)
def test_lean_logits_are_the_stock_models_for_rows_of_any_length(changes):
    model = tiny_llama(**changes)
    slots = 20  # more than one block
    lean = LeanLlama(model, slots, 64)
    ids = torch.randint(3, VOCAB, (slots, 64), generator=torch.Generator().manual_seed(1))
    held = torch.zeros(slots, dtype=torch.int64)
    order = list(range(slots))
    with torch.inference_mode():
        stock = model(ids).logits
        for step in range(40):
            row = torch.tensor(order)
            logits = lean.step(ids[row, held[row]], held[row])
            torch.testing.assert_close(logits, stock[row, held[row]], rtol=0, atol=1e-4)
            held += 1
            held[step % slots] = 0  # a slot is freed and starts over, with no clearing
            if step % 9 == 8:
                new = torch.randperm(slots, generator=torch.Generator().manual_seed(step)).tolist()
                lean.reorder(new)
                order = [order[i] for i in new]


def test_a_filled_prefix_is_as_good_as_a_fed_one(model):
    lean = LeanLlama(model, 2, 16)
    prefix = lean.prefill([1, 5, 6, 9])
    lean.fill(1, prefix)
    logits = lean.step(torch.tensor([3, 11]), torch.tensor([0, 4]))
    with torch.inference_mode():
        torch.testing.assert_close(logits[1], model(torch.tensor([[1, 5, 6, 9, 11]])).logits[0, -1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "slots", "max_length", "message"),
    [
        ({"attention_bias": True}, 2, 16, "attention_bias"),
        ({"hidden_act": "gelu"}, 2, 16, "'gelu'"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, 2, 16, "'dynamic'"),
        ({}, 0, 16, "slots is 0"),
        ({}, 2, 129, "129 tokens; this model allows 1 to 128"),
    ],
)
def test_a_model_the_lean_pass_would_compute_wrongly_is_refused(changes, slots, max_length, message):
    with pytest.raises(ValueError, match=message):
        LeanLlama(tiny_llama(**changes), slots, max_length)


# The sampler


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
    sampler = make_sampler(model, random_prompts(20))
    rows = []
    step = sampler.model.step
    sampler.model.step = lambda tokens, lengths: rows.append(len(tokens)) or step(tokens, lengths)
    given = iter(sampler.prompts)
    left = [20]

    def counted():
        for turns in given:
            left[0] -= 1
            if left[0] == 0:
                left.append(len(rows))  # the step count when the last prompt was taken
            yield turns

    sampler.prompts = counted()
    list(sampler)
    assert set(rows[: left[1]]) == {3}
    assert rows[left[1] :] == sorted(rows[left[1] :], reverse=True)
    assert rows[-1] == 1


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


# Shards


def test_a_stopped_run_loses_no_finished_chat_and_a_new_one_continues(model, tmp_path):
    def stopping():
        yield from take(make_sampler(model), 7)
        raise KeyboardInterrupt

    sampler = make_sampler(model)
    sampler.__class__ = type("Stopping", (ChatSampler,), {"__iter__": lambda self: stopping()})
    with pytest.raises(KeyboardInterrupt):
        generate(sampler, ShardFolder(tmp_path, VOCAB), 10**6, seed=5, shard_chats=5)
    assert [path.name for path in shard_paths(tmp_path)] == ["chats-00000.npz", "chats-00001.npz"]
    assert len(load_chats(shard_paths(tmp_path))) == 7
    before = [path.read_bytes() for path in shard_paths(tmp_path)]

    (tmp_path / "chats-00002.tmp").write_bytes(b"cut off in the middle")
    folder = ShardFolder(tmp_path, VOCAB)
    goal = folder.tokens + 500
    generate(make_sampler(model), folder, goal, seed=5, shard_chats=5)
    paths = shard_paths(tmp_path)
    assert [path.read_bytes() for path in paths[:2]] == before
    assert paths[2].name == "chats-00002.npz"
    chats = load_chats(paths)
    assert goal <= len(chats.tokens) == folder.tokens < goal + 40
    assert len({ids.tobytes() for ids in chats}) == len(chats)

    generate(make_sampler(model), ShardFolder(tmp_path, VOCAB), goal, seed=5)  # there is nothing left to do
    assert shard_paths(tmp_path) == paths


def test_a_shard_has_random_numbers_of_its_own(model, tmp_path):
    for number, name in ((0, "a"), (3, "b"), (3, "c")):
        folder = ShardFolder(tmp_path / name, VOCAB)
        folder.number = number
        generate(make_sampler(model), folder, 300, seed=5)
    a, b, c = (load_chats(shard_paths(tmp_path / name)).tokens.tolist() for name in "abc")
    assert b == c
    assert a != b


def test_duplicates_are_dropped_and_counted_across_runs(model, tmp_path):
    for run in range(2):
        sampler = make_sampler(model, [[[9, 10]], [[9, 10]], [[11]]], temperatures=GREEDY)
        generate(sampler, ShardFolder(tmp_path, VOCAB), 10**6)
        assert sampler.counts["duplicate"] == (1, 3)[run]
        assert sampler.counts["kept"] == (2, 0)[run]
    assert len(shard_paths(tmp_path)) == 1


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65536, np.uint16), (65537, np.uint32)])
def test_tokens_take_two_bytes_where_the_vocabulary_allows(tmp_path, vocab_size, dtype):
    folder = ShardFolder(tmp_path, vocab_size)
    assert folder.add(Chat((1, 2, vocab_size - 1), 2, 0.7))
    assert not folder.add(Chat((1, 2, vocab_size - 1), 2, 0.7))
    folder.write()
    chats = load_chats(shard_paths(tmp_path))
    assert (chats.tokens.dtype, chats.length.dtype, chats.answer_start.dtype) == (dtype, np.int32, np.int32)
    assert [ids.tolist() for ids in chats] == [[1, 2, vocab_size - 1]]
    assert chats.temperature.tolist() == [np.float32(0.7)]
    assert folder.write() is None


GOOD = {
    "tokens": np.arange(7, dtype=np.uint16),
    "length": np.array([4, 3], np.int32),
    "answer_start": np.array([2, 1], np.int32),
    "temperature": np.array([0.0, 1.0], np.float32),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": None}, "has no array length; a shard holds tokens, length"),
        ({"tokens": np.full(7, -3)}, "holds token -3; tokens are 0 or more"),
        ({"tokens": np.zeros(7, np.float32)}, r"tokens is float32 of shape \(7,\); it must be one row of integers"),
        ({"tokens": np.zeros((7, 1), np.uint16)}, r"tokens is uint16 of shape \(7, 1\)"),
        ({"temperature": np.array([0, 1])}, "temperature is int64"),
        ({"temperature": np.array([0.0], np.float32)}, "2 lengths, 2 answer starts and 1 temperatures"),
        ({"length": np.array([4, 4], np.int32)}, "add up to 8, but there are 7 tokens"),
        ({"answer_start": np.array([2, 3], np.int32)}, "chat 1 has its answer start at 3; allowed are 1 to 2"),
        ({"answer_start": np.array([0, 1], np.int32)}, "chat 0 has its answer start at 0"),
        ({"temperature": np.array([0.0, np.nan], np.float32)}, "chat 1 has temperature nan"),
        ({"temperature": np.array([-1.0, 0.0], np.float32)}, r"chat 0 has temperature -1\.0"),
    ],
)
def test_the_reader_names_what_is_wrong_with_a_shard(tmp_path, change, message):
    good, bad = tmp_path / "chats-00000.npz", tmp_path / "chats-00001.npz"
    np.savez(good, **GOOD)
    np.savez(bad, **{name: array for name, array in (GOOD | change).items() if array is not None})
    assert [ids.tolist() for ids in load_chats([good, good])] == [[0, 1, 2, 3], [4, 5, 6]] * 2
    with pytest.raises(ValueError, match=message) as caught:
        load_chats([good, bad])
    assert str(bad) in str(caught.value)


def test_the_reader_refuses_what_is_no_shard_of_this_target(tmp_path):
    whole, torn, text = tmp_path / "whole.npz", tmp_path / "torn.npz", tmp_path / "text.npz"
    np.savez(whole, **GOOD)
    torn.write_bytes(whole.read_bytes()[:-40])
    text.write_text("chats")
    for path in (torn, text):
        with pytest.raises(ValueError, match=f"{path} is not an .npz file, or not a whole one"):
            load_chats([path])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_chats([tmp_path / "none.npz"])
    assert len(load_chats([whole], vocab_size=7)) == 2
    with pytest.raises(ValueError, match="holds token 6; the target's vocabulary ends at 5"):
        load_chats([whole], vocab_size=6)
    with pytest.raises(ValueError, match="No shards were given"):
        load_chats([])


# Prompts, formats and the command


@dataclass
class ToyTokenizer:
    """Letters are ids; <s> and </s> are special."""

    template: str = "<s>s<s>u{}</s><s>b{}</s><s>u{}</s>"
    all_special_ids = (1, END)

    def apply_chat_template(self, turns, tokenize):
        assert not tokenize
        return self.template.format(*(turn["content"] for turn in turns))

    def encode(self, text, add_special_tokens=True):
        assert not add_special_tokens
        text = text.replace("</s>", "\x02").replace("<s>", "\x01")
        return [ord(letter) if letter < " " else 3 + ord(letter) % 29 for letter in text]

    def decode(self, ids):
        return str(list(ids))


def test_a_format_is_read_off_the_chat_template():
    code = {letter: 3 + ord(letter) % 29 for letter in "sub"}
    assert ChatFormat.from_tokenizer(ToyTokenizer()) == ChatFormat(
        prefix=(1, code["s"], 1, code["u"]),
        assistant=(1, code["b"]),
        user=(1, code["u"]),
        end=END,
        special=frozenset({1, END}),
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("USER: {} ASSISTANT: {}</s>USER: {}", "must begin with a special token that ends every turn"),
        ("<s>u{}</s><s>a</s>", "does not render the turn 'MARKANSWER'"),
        ("{}</s><s>a{}</s><s>u{}</s>", "empty prefix"),
    ],
)
def test_a_template_without_clear_turns_is_refused(template, message):
    with pytest.raises(ValueError, match=message):
        ChatFormat.from_tokenizer(ToyTokenizer(template))


def test_prompts_come_as_json_lines_or_plain_text(tmp_path):
    lines, text = tmp_path / "p.jsonl", tmp_path / "p.txt"
    lines.write_text('{"prompt": "one "}\n\n{"turns": ["two", "three"], "id": 4}\n')
    text.write_text("one\n\n  two\n")
    assert read_prompts(lines, str.split) == [[["one"]], [["two"], ["three"]]]
    assert read_prompts(text, str.split) == [[["one"]], [["two"]]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "line 2, is not JSON"),
        ('{"text": "x"}', 'must be an object with "prompt"'),
        ('{"turns": []}', 'or "turns", a list of texts'),
        ('{"prompt": " "}', "line 2"),
        ('["x"]', "line 2"),
    ],
)
def test_a_bad_prompt_is_named_by_its_line(tmp_path, line, message):
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"prompt": "fine"}) + "\n" + line)
    with pytest.raises(ValueError, match=message):
        read_prompts(path, str.split)


def options(*argv):
    parser = argparse.ArgumentParser()
    add_data_options(parser)
    return parser.parse_args([*argv, "--batch", "2", "--max-length", "100"])


def test_the_command_writes_shards_and_skips_answered_prompts(model, tmp_path, capsys):
    prompts, out = tmp_path / "p.txt", tmp_path / "out"
    prompts.write_text("one\ntwo\n")
    asked = options("--out", str(out), "--tokens", "100000", "--prompts", str(prompts))
    data.write(model, ToyTokenizer(), asked)
    first = len(load_chats(shard_paths(out)))
    assert f"{first} kept" in capsys.readouterr().err
    prompts.write_text("one\ntwo\nthree\n")
    data.write(model, ToyTokenizer(), asked)
    chats = load_chats(shard_paths(out))
    openings = [ids[:start].tobytes() for ids, start in zip(chats, chats.answer_start, strict=True)]
    assert first < len(openings) == len(set(openings))


def test_the_command_goes_on_to_its_number_of_tokens(model, tmp_path):
    for tokens in (400, 800):
        data.write(model, ToyTokenizer(), options("--out", str(tmp_path), "--tokens", str(tokens)))
    assert [path.name for path in shard_paths(tmp_path)] == ["chats-00000.npz", "chats-00001.npz"]
    assert 800 <= len(load_chats(shard_paths(tmp_path)).tokens) < 900


def test_a_number_of_tokens_that_cannot_be_is_refused_before_loading(tmp_path):
    with pytest.raises(ValueError, match="--tokens is 0; it must be 1 or more"):
        data.run(options("--out", str(tmp_path), "--tokens", "0"))
