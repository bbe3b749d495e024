"""Chats written by the target itself: it samples a user turn and answers it.

Many chats run side by side, and a slot whose chat has ended takes the next one at once. This file knows token ids and a
chat's format as ids; the caller supplies model and prompts and stores the chats.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from eagle2.training.fast_llama import LeanLlama
from eagle2.training.options import ChatSettings

SORT_EVERY = 64  # steps between sorting the slots by length; see ChatSampler._sort
LONGEST_CYCLE, LOOP_TOKENS = 8, 48  # an answer loops once its last 48 tokens repeat one cycle of 1-8 tokens
Opening = tuple[list[int], tuple[Tensor, Tensor], float, list[Sequence[int]]]
"""Ids, keys and values of all but the last of them, the answers' temperature, and the user's further turns."""
MARKERS = ("MARKUSER", "MARKANSWER", "MARKAGAIN")


@dataclass(frozen=True)
class ChatFormat:
    """A chat template as token ids. A chat is prefix, user turn, end, assistant, answer, end [, user, turn, ...]."""

    prefix: tuple[int, ...]  # all that stands before the first user's words
    assistant: tuple[int, ...]  # between a user's end token and the answer
    user: tuple[int, ...]  # between an answer's end token and the next user turn
    end: int  # ends every turn
    special: frozenset[int]  # tokens that are no part of any text: drawing one, but the end, spoils a chat

    def __post_init__(self):
        if not self.prefix:
            raise ValueError("The chat format has an empty prefix; a model needs at least one token to start from.")

    def opening(self, turn: Sequence[int]) -> list[int]:
        """Everything before the first answer to this user turn."""
        return [*self.prefix, *turn, self.end, *self.assistant]

    @classmethod
    def from_tokenizer(cls, tokenizer) -> "ChatFormat":
        """Read the format off a rendered conversation."""
        roles = ("user", "assistant", "user")
        turns = [{"role": role, "content": mark} for role, mark in zip(roles, MARKERS, strict=True)]
        text = tokenizer.apply_chat_template(turns, tokenize=False)
        parts = []
        for mark in MARKERS:
            part, found, text = text.partition(mark)
            if not found:
                raise ValueError(f"The chat template does not render the turn {mark!r} as it was given.")
            parts.append(tokenizer.encode(part, add_special_tokens=False))
        prefix, assistant, user = parts
        special = frozenset(tokenizer.all_special_ids)
        end = assistant[0]
        if end not in special or user[0] != end:
            shown = tokenizer.decode(assistant)
            raise ValueError(
                f"The chat template puts {shown!r} after a user turn; it must begin with a special token that ends "
                "every turn, or the model cannot say where its own user turn ends."
            )
        return cls(tuple(prefix), tuple(assistant[1:]), tuple(user[1:]), end, special)


@dataclass(frozen=True)
class Chat:
    tokens: tuple[int, ...]
    answer_start: int  # index of the first answer token
    temperature: float  # of the answers


@dataclass
class Slot:
    """An unfinished chat. Tokens from `fed` on are decided but not yet run through the model."""

    ids: list[int]
    fed: int
    temperature: float
    turn_start: int  # index of the first token of the turn that is being written
    answering: bool = False
    answer_start: int = 0  # of the first answer; 0 until there is one
    whole: int = 0  # length of the chat up to its last finished answer
    more_turns: list[Sequence[int]] = field(default_factory=list)  # the user's further turns, of a given prompt


class ChatSampler:
    """An endless stream of finished chats, or one for each prompt. `counts` counts what was dropped, by reason.

    A prompt that stands several times in a row is read once.
    """

    def __init__(
        self,
        model: LeanLlama,
        chat_format: ChatFormat,
        settings: ChatSettings,
        prompts: Iterable[Sequence[Sequence[int]]] | None = None,
    ):
        """prompts: the user's turns of each, as ids without end tokens; None lets the model write them."""
        needed = len(chat_format.prefix) + len(chat_format.assistant) + 3
        if settings.max_length < needed:
            raise ValueError(f"max_length is {settings.max_length}; this chat template needs {needed} or more.")
        if settings.max_length > model.max_length or settings.slots > model.slots:
            raise ValueError(
                f"{settings.slots} slots of {settings.max_length} tokens were asked for; "
                f"the model was given {model.slots} of {model.max_length}."
            )
        self.model, self.format, self.settings = model, chat_format, settings
        self.counts: Counter[str] = Counter()
        self.openings = None if prompts is None else self._read(prompts)
        self.prefix = model.prefill(list(chat_format.prefix))
        self.generator = torch.Generator(model.device)
        self.random = random.Random()
        self.reseed(0, 0)

    def reseed(self, *key: int) -> None:
        """Start the random numbers that belong to this key, e.g. (seed, shard)."""
        seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1)
        self.generator.manual_seed(seed)
        self.random.seed(seed)

    def __iter__(self) -> Iterator[Chat]:
        slots = self._sort([None] * self.settings.slots)
        step = 0
        while slots:
            logits = self.model.step(
                torch.tensor([slot.ids[slot.fed] for slot in slots]), torch.tensor([slot.fed for slot in slots])
            )
            drawn = draw(logits, [self._temperature(slot) for slot in slots], self.settings.top_k, self.generator)
            step += 1
            gone = False
            for row, (slot, token) in enumerate(zip(slots, drawn, strict=True)):
                slot.fed += 1
                if slot.fed < len(slot.ids):
                    continue  # the next token was given, not drawn
                if self._grow(slot, token):
                    continue
                if slot.ids:
                    yield Chat(tuple(slot.ids), slot.answer_start, slot.temperature)
                slots[row] = self._open(row)
                gone = gone or slots[row] is None
            if gone or step % SORT_EVERY == 0:
                slots = self._sort(slots)

    def _sort(self, slots: list[Slot | None]) -> list[Slot]:
        """Fill empty slots, put the longest first and drop those that stay empty.

        Slots of one length side by side let a block of rows read no more of the cache than it holds: a fifth of all
        time here. Moving the cache costs about one step, so it is done once in many.
        """
        slots = [self._open(row) if slot is None else slot for row, slot in enumerate(slots)]
        order = sorted((row for row, slot in enumerate(slots) if slot is not None), key=lambda row: -slots[row].fed)
        if order != list(range(len(order))):
            self.model.reorder(order)
        return [slots[row] for row in order]

    def _open(self, row: int) -> Slot | None:
        """A new chat in this row, or None when the prompts are used up."""
        if self.openings is None:
            prefix = self.format.prefix
            self.model.fill(row, self.prefix)
            # The last token of the prefix is run again: its logits are where the user turn starts.
            return Slot(list(prefix), len(prefix) - 1, self._any_temperature(), turn_start=len(prefix))
        for ids, read, temperature, more_turns in self.openings:
            self.model.fill(row, read)
            start = len(ids)
            return Slot(list(ids), start - 1, temperature, start, True, start, more_turns=list(more_turns))
        return None

    def _read(self, prompts: Iterable[Sequence[Sequence[int]]]) -> Iterator[Opening]:
        """What precedes each first answer, read once for all answers to it; the greedy one is written once."""
        known: list[int] = []
        for first, *more_turns in prompts:
            ids = self.format.opening(first)
            if len(ids) + self.settings.room > self.settings.max_length:
                self.counts["prompt too long"] += 1
                continue
            if ids != known:
                known, greedy_given = ids, False
                read = self.model.prefill(ids[:-1])  # the last is run again: its logits are where the answer starts
            temperature = self._any_temperature(without_greedy=greedy_given)
            greedy_given = greedy_given or temperature == 0
            yield ids, read, temperature, more_turns

    def _any_temperature(self, without_greedy: bool = False) -> float:
        """The temperature of a chat's answers. without_greedy: not 0, if there is another."""
        choices = self.settings.temperatures
        drawn = [(value, share) for value, share in choices if value > 0 or not without_greedy] or choices
        values, shares = zip(*drawn, strict=True)
        return self.random.choices(values, shares)[0]

    def _temperature(self, slot: Slot) -> float:
        return slot.temperature if slot.answering else 1.0

    def _grow(self, slot: Slot, token: int) -> bool:
        """Add a sampled token. False when the chat has ended or failed; its slot is then free."""
        settings = self.settings
        slot.ids.append(token)
        if token == self.format.end:
            return self._end_turn(slot)
        written = len(slot.ids) - slot.turn_start
        if token in self.format.special:
            self.counts["special token"] += 1
            return self._abandon(slot)
        if slot.answering:
            # Small models loop, above all greedily, and drafts must follow them there: so much of a loop is kept, and
            # looking at every 16th token saves the steps up to the cap.
            if written % 16 == 0 and loops(slot.ids[slot.turn_start :]):
                self.counts["cut in a loop"] += 1
                return False
            if settings.max_answer and written >= settings.max_answer:
                return False
        elif written > settings.max_user or len(slot.ids) + 1 + len(self.format.assistant) >= settings.max_length:
            self.counts["user turn too long"] += 1
            return self._abandon(slot)
        return len(slot.ids) < settings.max_length

    def _end_turn(self, slot: Slot) -> bool:
        """Continue after the end token that was just added; returns what `_grow` does."""
        settings, chat_format = self.settings, self.format
        if len(slot.ids) == slot.turn_start + 1:
            self.counts["empty answer" if slot.answering else "empty user turn"] += 1
            return self._abandon(slot)
        if slot.answering:
            slot.whole = len(slot.ids)
            given = slot.more_turns.pop(0) if slot.more_turns else None
            if given is None and (self.openings is not None or self.random.random() >= settings.second_turn):
                return False
            following = [*chat_format.user]
            if given is not None:
                following += [*given, chat_format.end, *chat_format.assistant]
            if len(slot.ids) + len(following) + settings.room > settings.max_length:
                return False
            slot.ids += following
            slot.turn_start, slot.answering = len(slot.ids), given is not None
            return True
        slot.ids += chat_format.assistant
        slot.turn_start, slot.answering = len(slot.ids), True
        slot.answer_start = slot.answer_start or len(slot.ids)
        return True

    def _abandon(self, slot: Slot) -> bool:
        """Cut the chat back to its last finished answer; with none, nothing is left. Always False: the slot is free."""
        del slot.ids[slot.whole :]
        return False


def draw(logits: Tensor, temperatures: Sequence[float], top_k: int, generator: torch.Generator) -> list[int]:
    """One token a row from logits [rows, vocab]: the best at temperature 0, else drawn among the top_k."""
    best, ids = logits.topk(min(top_k, logits.shape[-1]))  # [rows, top_k], best first
    temperature = torch.tensor(temperatures, device=logits.device)[:, None]  # [rows, 1]
    noise = torch.rand(best.shape, generator=generator, device=logits.device).clamp_(min=1e-20)
    # argmax(logits / t + Gumbel noise) draws from softmax(logits / t); times t, it is the plain argmax at t = 0.
    choice = (best - temperature * noise.log().neg().log()).argmax(-1, keepdim=True)
    return ids.gather(1, choice)[:, 0].tolist()


def loops(ids: Sequence[int], longest_cycle: int = LONGEST_CYCLE, tokens: int = LOOP_TOKENS) -> bool:
    """Whether the last `tokens` ids repeat one cycle of at most `longest_cycle` ids."""
    tail = list(ids[-tokens:])
    return len(tail) == tokens and any(tail[size:] == tail[:-size] for size in range(1, longest_cycle + 1))
