"""Where token ids meet text: chats to ids, ids to text as it streams, ids to their bytes, stop strings.

The only module of `eagle2` that uses tokenizers. A token is bytes, not text: half a character is a token too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from jinja2 import TemplateError
from transformers.convert_slow_tokenizer import bytes_to_unicode

BROKEN = "\ufffd"
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def encode_chat(tokenizer: object | None, messages: Sequence[dict[str, str]]) -> list[int]:
    """Ids of a conversation, ready for the assistant's turn; without a chat template the turns are joined as text.

    Raises ValueError without a tokenizer, for turns that are no {"role": ..., "content": ...} of strings, and for turns
    that the model's template refuses (some know no system role).
    """
    _check_chat(tokenizer, messages)
    if not getattr(tokenizer, "chat_template", None):
        return list(tokenizer("\n\n".join(turn["content"] for turn in messages))["input_ids"])
    try:
        return list(tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, return_dict=False))
    except TemplateError as error:
        roles = ", ".join(turn["role"] for turn in messages)
        raise ValueError(f"the model's chat template refuses these turns ({roles}): {error}") from error


def _check_chat(tokenizer: object | None, messages: Sequence[dict[str, str]]) -> None:
    if tokenizer is None:
        raise ValueError("this pair has no tokenizer, so text cannot be encoded; give token ids instead")
    if isinstance(messages, str) or not messages:
        raise ValueError('a conversation is a list of at least one {"role": ..., "content": ...}')
    for turn in messages:
        if not isinstance(turn, dict) or not all(isinstance(turn.get(key), str) for key in ("role", "content")):
            raise ValueError(f'every turn must be {{"role": ..., "content": ...}} with strings, not {turn!r}')


ANSWER = "\ue000the answer so far\ue000"
"""Stands for an answer whose ids are known; no chat contains it."""


def encode_follow_up(
    tokenizer: object | None,
    messages: Sequence[dict[str, str]],
    ids: Sequence[int],
    content: str,
    ends: Collection[int],
) -> list[int]:
    """Ids of the next user turn's prompt, beginning with exactly `ids`: the last prompt and the answer to it.

    messages: the turns up to the one that `ids` answers. ends: the model's end tokens; a template that closes the
    answer with the one that `ids` already ends in does not close it twice.
    """
    turns = [*messages, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": content}]
    _check_chat(tokenizer, turns)
    if not getattr(tokenizer, "chat_template", None):
        return [*ids, *tokenizer(f"\n\n{content}", add_special_tokens=False)["input_ids"]]
    try:
        text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    except TemplateError as error:
        raise ValueError(f"the model's chat template refuses another turn: {error}") from error
    if ANSWER not in text:
        raise ValueError("the model's chat template leaves out earlier answers, so this chat cannot go on from its ids")
    glue = list(tokenizer(text.split(ANSWER)[-1], add_special_tokens=False)["input_ids"])
    if ids[-1] in ends and glue and glue[0] == ids[-1]:
        glue = glue[1:]
    return [*ids, *glue]


def encode_answer(tokenizer: object | None, content: str) -> list[int]:
    """Ids of the beginning of an answer, to follow the prompt's own. Raises ValueError without a tokenizer."""
    _check_chat(tokenizer, [{"role": "assistant", "content": content}])
    return list(tokenizer(content, add_special_tokens=False)["input_ids"])


class TextStream:
    """Ids -> text, piece by piece; an incomplete character is held back, so that none ever shows as U+FFFD."""

    def __init__(self, tokenizer: object) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._start = 0  # decoding begins here: tokens before the last piece may change its spaces, older ones do not
        self._whole = 0  # ids up to here made whole characters
        self._shown = 0  # characters already shown of those decoded from `_start` on

    def add(self, ids: Sequence[int]) -> str:
        """The text that `ids` complete; special tokens are left out."""
        self._ids += ids
        text = self._decode(self._ids[self._start :])
        complete = text.rstrip(BROKEN)  # the next token may still make a character of the rest
        piece = complete[self._shown :]
        self._shown += len(piece)
        if complete == text and piece:
            self._start, self._whole = self._whole, len(self._ids)
            self._shown = len(self._decode(self._ids[self._start :]))
        return piece

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True)


class TextBefore:
    """Streamed text up to the first of some stop strings; what may be the beginning of one is held back."""

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._held = ""
        self._over = False

    def add(self, piece: str) -> str:
        """The text that can be shown now."""
        if self._over:
            return ""
        text = self._held + piece
        found = [place for place in map(text.find, self._strings) if place >= 0]
        if found:
            self._over, self._held = True, ""
            return text[: min(found)]
        begun = [n for stop in self._strings for n in range(1, len(stop)) if text.endswith(stop[:n])]
        shown = len(text) - max(begun, default=0)
        self._held = text[shown:]
        return text[:shown]

    def rest(self) -> str:
        """The text held back, once it is known that no stop string follows."""
        held, self._held = self._held, ""
        return held


class StopStrings:
    """A stop rule: a run ends before the first token that reaches into one of `strings`, in whatever round that began.

    Raises TypeError for anything but a list of strings, ValueError where one is empty.
    """

    def __init__(self, tokenizer: object, strings: Sequence[str]) -> None:
        if isinstance(strings, str) or not all(isinstance(string, str) for string in strings):
            raise TypeError(f"stop strings must be a list of strings, not {strings!r}")
        if not all(strings):
            raise ValueError("a stop string is empty; give at least one character, or no stop string")
        self._tokenizer, self._strings = tokenizer, tuple(strings)

    def __call__(self, new_ids: list[int]) -> int | None:
        """How many of the ids stay, once a stop string has come."""
        text = self._text(new_ids)
        found = [place for place in map(text.find, self._strings) if place >= 0]
        return self._before(new_ids, min(found)) if found else None

    def undecided(self, new_ids: list[int]) -> int:
        """How many of the last ids may turn out to reach into a stop string that has only begun."""
        text = self._text(new_ids)
        whole = text.rstrip("\ufffd")  # an unfinished character may become the first of one
        begun = max((n for s in self._strings for n in range(1, len(s)) if whole.endswith(s[:n])), default=0)
        return len(new_ids) - self._before(new_ids, len(whole) - begun)

    def _before(self, new_ids: list[int], place: int) -> int:
        """The largest number of first ids whose text ends at `place` or before."""
        keep = len(new_ids)
        while keep and len(self._text(new_ids[:keep])) > place:
            keep -= 1
        return keep

    def _text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True)


def stop_strings(tokenizer: object, strings: Sequence[str]) -> StopStrings:
    """The stop rule of some strings; see `StopStrings`."""
    return StopStrings(tokenizer, strings)


def speller(tokenizer: object | None) -> Callable[[int], bytes]:
    """A function from a token id to the bytes it stands for; special tokens give their name, as "<|im_end|>".

    Without a tokenizer an id is spelled "<id>".
    """
    if tokenizer is None:
        return lambda token: f"<{token}>".encode()
    added = {token: str(entry).encode() for token, entry in tokenizer.added_tokens_decoder.items()}
    byte_of = {char: byte for byte, char in bytes_to_unicode().items()} if _is_byte_level(tokenizer) else None

    def spell(token: int) -> bytes:
        if token in added:
            return added[token]
        piece = tokenizer.convert_ids_to_tokens(token)
        if piece is None:  # an id beyond the tokenizer's own: models pad their vocabulary
            return f"<{token}>".encode()
        if byte_of is not None and all(char in byte_of for char in piece):
            return bytes(byte_of[char] for char in piece)
        if match := BYTE_TOKEN.fullmatch(piece):
            return bytes([int(match[1], 16)])
        return piece.replace("▁", " ").encode()

    return spell


def _is_byte_level(tokenizer: object) -> bool:
    """Whether pieces are written in GPT-2's alphabet of visible stand-ins for bytes."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend is not None and "ByteLevel" in str(backend.decoder)
