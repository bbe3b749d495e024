"""Shards are whole or absent; prompts, formats and the command."""

import argparse
import json
from dataclasses import dataclass

import numpy as np
import pytest
from tiny_chats import END, GREEDY, VOCAB, make_sampler, take

from eagle2.training import data
from eagle2.training.chats import Chat, ChatFormat, ChatSampler
from eagle2.training.data import ShardFolder, generate, load_chats, read_prompts, shard_paths
from eagle2.training.options import add_data_options

pytestmark = pytest.mark.usefixtures("one_thread")


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


def test_the_command_makes_the_answers_that_are_missing(model, tmp_path):
    prompts, out = tmp_path / "p.txt", tmp_path / "out"
    prompts.write_text("one\ntwo\n")
    asked = ("--out", str(out), "--tokens", "100000", "--prompts", str(prompts))
    for answers, most in (("1", 2), ("4", 8), ("3", 8)):
        data.write(model, ToyTokenizer(), options(*asked, "--answers", answers))
        chats = load_chats(shard_paths(out))
        assert len(chats) <= most
    assert len(chats) > 4
    assert len({ids[:start].tobytes() for ids, start in zip(chats, chats.answer_start, strict=True)}) == 2


def test_the_command_goes_on_to_its_number_of_tokens(model, tmp_path):
    for tokens in (400, 800):
        data.write(model, ToyTokenizer(), options("--out", str(tmp_path), "--tokens", str(tokens)))
    assert [path.name for path in shard_paths(tmp_path)] == ["chats-00000.npz", "chats-00001.npz"]
    assert 800 <= len(load_chats(shard_paths(tmp_path)).tokens) < 900


def test_a_number_of_tokens_that_cannot_be_is_refused_before_loading(tmp_path):
    with pytest.raises(ValueError, match="--tokens is 0; it must be 1 or more"):
        data.run(options("--out", str(tmp_path), "--tokens", "0"))
    with pytest.raises(ValueError, match="--answers is 0; it must be 1 or more"):
        data.run(options("--out", str(tmp_path), "--tokens", "9", "--answers", "0"))
