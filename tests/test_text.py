"""Where ids meet text, on small real tokenizers: a byte-level one, and one in sentencepiece's spelling."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eagle2 import text

TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|user|>", "<|assistant|>", "<|end|>", "<｜é▁of▁text｜>")


def with_specials(backend: Tokenizer, **options) -> PreTrainedTokenizerFast:
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIAL])
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)


@pytest.fixture(scope="module")
def byte_level():
    """All 256 bytes in GPT-2's alphabet, and two merges: " s" and " st"."""
    vocabulary = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary |= {"Ġs": 256, "Ġst": 257}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[("Ġ", "s"), ("Ġs", "t")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return with_specials(backend, chat_template=TEMPLATE)


@pytest.fixture(scope="module")
def sentencepiece():
    """LLaMA's spelling: spaces as ▁ with one put in front, unknown characters as <0xNN>."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "x", ".", "▁a", "▁b", "▁x"]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: i for i, piece in enumerate(pieces)},
            merges=[("▁", "a"), ("▁", "b"), ("▁", "x")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return with_specials(backend)


@pytest.fixture(params=["byte_level", "sentencepiece"])
def tokenizer(request):
    return request.getfixturevalue(request.param)


def encode(tokenizer, said: str) -> list[int]:
    return tokenizer(said, add_special_tokens=False)["input_ids"]


class TestStream:
    @pytest.mark.parametrize(
        "said", ["a  b", "  a", "a x.", "😀", "aé😀b", "éé 你好 x", "a\n\nb", "a ", "\t\tx  ", "👩‍👩‍👧 b"]
    )
    @pytest.mark.parametrize("step", [1, 2, 3, 50])
    def test_pieces_hold_whole_characters_and_concatenate_to_the_whole(self, tokenizer, said, step):
        ids = encode(tokenizer, said)
        stream = text.TextStream(tokenizer)
        pieces = [stream.add(ids[i : i + step]) for i in range(0, len(ids), step)]
        assert text.BROKEN not in "".join(pieces)
        assert "".join(pieces) == said == tokenizer.decode(ids)

    def test_an_emoji_shows_with_its_last_byte(self, tokenizer):
        ids = encode(tokenizer, "a😀")
        stream = text.TextStream(tokenizer)
        pieces = [stream.add([token]) for token in ids]
        assert [piece for piece in pieces if piece] == ["a", "😀"]
        assert pieces[-1] == "😀"

    def test_whole_characters_before_an_unfinished_one_are_not_lost(self, tokenizer):
        ids = encode(tokenizer, "a b😀")
        stream = text.TextStream(tokenizer)
        assert stream.add(ids[:-2]) == "a b"
        assert stream.add(ids[-2:-1]) == ""
        assert stream.add(ids[-1:]) == "😀"

    def test_special_tokens_are_left_out_and_change_no_spaces(self, tokenizer):
        a, b = encode(tokenizer, "a"), encode(tokenizer, "a b")
        end = tokenizer.convert_tokens_to_ids("<|end|>")
        stream = text.TextStream(tokenizer)
        assert [stream.add(ids) for ids in (a, [end], [end, *b[len(a) :]], [end])] == ["a", "", " b", ""]

    def test_nothing_added_shows_nothing(self, tokenizer):
        assert text.TextStream(tokenizer).add([]) == ""

    def test_bytes_that_no_character_has_show_once_something_follows(self, byte_level):
        lone = encode(byte_level, "😀")[0]
        stream = text.TextStream(byte_level)
        assert stream.add([lone]) == ""
        assert stream.add(encode(byte_level, "a")) == text.BROKEN + "a"


class TestSpeller:
    def test_bytes_of_a_byte_level_tokenizer(self, byte_level):
        spell = text.speller(byte_level)
        assert [spell(token) for token in encode(byte_level, "😀")] == [b"\xf0", b"\x9f", b"\x98", b"\x80"]
        assert spell(257) == b" st"
        assert b"".join(map(spell, encode(byte_level, " st\n\0é"))) == " st\n\0é".encode()

    def test_every_byte_has_one_token(self, byte_level):
        spell = text.speller(byte_level)
        assert sorted(spell(token) for token in range(256)) == [bytes([byte]) for byte in range(256)]

    def test_bytes_of_a_sentencepiece_tokenizer(self, sentencepiece):
        spell = text.speller(sentencepiece)
        assert b"".join(map(spell, encode(sentencepiece, "a b😀"))) == " a b😀".encode()
        assert [spell(token) for token in encode(sentencepiece, "x\n")] == [b" x", b"\n"]
        assert spell(sentencepiece.convert_tokens_to_ids("<0xF0>")) == b"\xf0"

    @pytest.mark.parametrize("name", SPECIAL)
    def test_special_tokens_give_their_names(self, tokenizer, name):
        assert text.speller(tokenizer)(tokenizer.convert_tokens_to_ids(name)) == name.encode()

    def test_ids_beyond_the_tokenizers_own_are_spelled_as_numbers(self, tokenizer):
        assert text.speller(tokenizer)(99_999) == b"<99999>"

    def test_without_a_tokenizer_ids_are_spelled_as_numbers(self):
        assert text.speller(None)(7) == b"<7>"


class TestTextBefore:
    def test_what_may_begin_a_stop_string_is_held_back_until_it_is_known(self):
        shown = text.TextBefore(["END", "\nUser:"])
        assert [shown.add(piece) for piece in ("on", "e E", "N", "tity\n", "Us", "age")] == [
            "on", "e ", "", "ENtity", "", "\nUsage",
        ]  # fmt: skip
        assert shown.rest() == ""

    def test_nothing_from_a_stop_string_on_is_shown(self):
        shown = text.TextBefore(["END"])
        assert [shown.add(piece) for piece in ("one E", "ND two", "three")] == ["one ", "", ""]
        assert shown.rest() == ""

    def test_a_beginning_that_came_to_nothing_is_given_back_at_the_end(self):
        shown = text.TextBefore(["END"])
        assert shown.add("one EN") == "one "
        assert shown.rest() == "EN"

    def test_without_stop_strings_everything_passes(self):
        assert text.TextBefore(()).add("anything") == "anything"


class TestStopStrings:
    def kept(self, tokenizer, said: str, strings: list[str]) -> str | None:
        """What is left of `said` where the rule, asked after each token as the engine does, ends it."""
        ids = encode(tokenizer, said)
        rule = text.stop_strings(tokenizer, strings)
        for end in range(1, len(ids) + 1):
            if (keep := rule(ids[:end])) is not None:
                return tokenizer.decode(ids[:keep])
        return None

    def test_the_end_is_before_the_token_that_reaches_into_the_string(self, tokenizer):
        assert self.kept(tokenizer, "a b.x", [".x"]) == "a b"

    def test_a_string_that_spans_tokens(self, tokenizer):
        assert len(encode(tokenizer, "é.")) >= 3
        assert self.kept(tokenizer, "aé.b", ["é."]) == "a"

    def test_a_token_that_holds_more_than_the_string_goes_as_a_whole(self, byte_level):
        assert encode(byte_level, " st") == [257]
        assert self.kept(byte_level, "a st", ["t"]) == "a"

    def test_the_first_of_several_strings_in_the_text_decides(self, tokenizer):
        assert self.kept(tokenizer, "a x b", ["b", "x", "nowhere"]) == self.kept(tokenizer, "a x b", ["x"])

    def test_of_two_strings_found_at_once_the_earlier_place_counts(self, byte_level):
        assert self.kept(byte_level, "abx", ["x", "abx"]) == ""

    def test_a_string_at_the_very_start_keeps_nothing(self, tokenizer):
        ids = encode(tokenizer, "a b")
        assert text.stop_strings(tokenizer, ["a"])(ids) == 0

    def test_a_string_that_does_not_occur_stops_nothing(self, tokenizer):
        assert self.kept(tokenizer, "a b", ["ab"]) is None

    def test_half_an_emoji_matches_nothing(self, tokenizer):
        assert self.kept(tokenizer, "a😀", ["😁"]) is None
        assert self.kept(tokenizer, "a😀b", ["😀"]) == "a"

    def test_an_empty_string_is_refused(self, tokenizer):
        with pytest.raises(ValueError, match="a stop string is empty; give at least one character"):
            text.stop_strings(tokenizer, ["x", ""])

    @pytest.mark.parametrize("strings", ["abc", [3], ["a", None]])
    def test_anything_but_a_list_of_strings_is_refused(self, tokenizer, strings):
        with pytest.raises(TypeError, match="stop strings must be a list of strings"):
            text.stop_strings(tokenizer, strings)


class TestEncodeChat:
    def test_the_template_leads_to_the_assistants_turn(self, byte_level):
        ids = text.encode_chat(byte_level, [{"role": "user", "content": "a st"}])
        assert byte_level.convert_ids_to_tokens(ids) == ["<|user|>", "a", "Ġst", "<|end|>", "<|assistant|>"]

    def test_without_a_template_the_turns_are_joined(self, sentencepiece):
        turns = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
        assert text.encode_chat(sentencepiece, turns) == encode(sentencepiece, "a\n\nb")

    def test_turns_that_the_template_refuses_are_named(self, byte_level):
        with pytest.raises(ValueError, match=r"template refuses these turns \(user, tool\): no tools here"):
            text.encode_chat(byte_level, [{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])

    def test_a_pair_without_tokenizer_says_what_to_do(self):
        with pytest.raises(ValueError, match="no tokenizer, so text cannot be encoded; give token ids instead"):
            text.encode_chat(None, [{"role": "user", "content": "a"}])

    @pytest.mark.parametrize("messages", ["hi", [], None])
    def test_what_is_no_conversation_is_refused(self, byte_level, messages):
        with pytest.raises(ValueError, match="a conversation is a list of at least one"):
            text.encode_chat(byte_level, messages)

    @pytest.mark.parametrize("turn", ["hi", {"role": "user"}, {"role": "user", "content": ["a"]}, {"content": "a"}])
    def test_a_turn_of_another_shape_is_refused(self, byte_level, turn):
        with pytest.raises(ValueError, match="every turn must be"):
            text.encode_chat(byte_level, [turn])


class TestFollowUp:
    TURNS = ({"role": "user", "content": "a"},)

    def test_the_next_prompt_begins_with_the_last_ones_ids_whatever_they_spell(self, byte_level):
        end = byte_level.convert_tokens_to_ids("<|end|>")
        answered = [*text.encode_chat(byte_level, self.TURNS), *map(byte_level.convert_tokens_to_ids, ("Ġ", "s"))]
        for closed in ([], [end]):  # the answer was cut by the length cap, or ended by its own end token
            ids = text.encode_follow_up(byte_level, self.TURNS, [*answered, *closed], "x", {end})
            assert ids[: len(answered)] == answered
            names = byte_level.convert_ids_to_tokens(ids[len(answered) :])
            assert names == ["<|end|>", "<|user|>", "x", "<|end|>", "<|assistant|>"]

    def test_without_a_template_the_turn_is_joined_and_nothing_put_in_front(self, sentencepiece):
        assert text.encode_follow_up(sentencepiece, self.TURNS, [7], "x", set()) == [7, *encode(sentencepiece, "\n\nx")]

    def test_a_template_that_forgets_answers_is_refused(self, byte_level, monkeypatch):
        monkeypatch.setattr(byte_level, "chat_template", "{{ messages[-1].content }}")
        with pytest.raises(ValueError, match="leaves out earlier answers"):
            text.encode_follow_up(byte_level, self.TURNS, [7], "x", set())

    def test_turns_that_are_none_are_refused(self, byte_level):
        with pytest.raises(ValueError, match="this pair has no tokenizer"):
            text.encode_follow_up(None, self.TURNS, [7], "x", set())
        with pytest.raises(ValueError, match="every turn must be"):
            text.encode_follow_up(byte_level, self.TURNS, [7], 3, set())
