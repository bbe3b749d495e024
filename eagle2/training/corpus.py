"""Chats and their features as training reads them: held-out prompts set aside, batches in a new order each epoch."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from eagle2.training.data import Chats

HELD_OUT = 24
"""One prompt in so many, with all answers to it, is not trained on, in whatever order and company chats come. (A head
that training continues from may have read it before, under another choice.)"""
LONGEST_ROW = 2048
"""Tokens of chats end to end in one row, at most: attention over a row takes memory by the square of its length."""


@dataclass(frozen=True)
class Batch:
    """Rows of tokens. ids int64 [B, T]; features float32 [B, T, hidden]; weight float32 [B, T]: what a position's
    feature counts as something to learn (0: padding, and what is only read; that is all before a chat's first answer,
    unless the batch is one of those that learn prompts too)."""

    ids: Tensor
    features: Tensor
    weight: Tensor

    @property
    def tokens(self) -> int:
        return int((self.weight > 0).sum())

    def first_row(self, steps: int) -> int:
        """The first row (a pair's, so one before the position it guesses) that `steps` draft steps have to compute.

        What lies before it in every row of the batch is prompt, and its guesses are nobody's past.
        """
        learnt = (self.weight[:, 1:] > 0).any(dim=0)
        return max(0, int(learnt.int().argmax()) - (steps - 1))

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.ids.to(device), self.features.to(device), self.weight.to(device))


def held_out(opening: np.ndarray) -> bool:
    """Whether chats that begin with these ids, all before the first answer, are kept for evaluation."""
    return int.from_bytes(hashlib.sha256(opening.astype("<u4").tobytes()).digest()[:8], "little") % HELD_OUT == 0


def answers(chats: Chats) -> np.ndarray:
    """The tokens of all chats that are not held out, each from its first answer on: what a head should propose."""
    pairs = zip(chats, chats.answer_start, strict=True)
    return np.concatenate([ids[start:] for ids, start in pairs if not held_out(ids[:start])] or [chats.tokens[:0]])


class Corpus:
    """features: float16 [tokens, hidden] of the first chats; chats beyond them are not there yet and left out."""

    def __init__(self, chats: Chats, features: np.ndarray) -> None:
        self.chats, self.features = chats, features
        self.ids = list(chats)
        self.starts = np.cumsum([0, *chats.length])
        ready = int(np.searchsorted(self.starts, len(features), side="right")) - 1
        openings = [ids[:start] for ids, start in zip(self.ids, chats.answer_start, strict=True)][:ready]
        self.held_out = [i for i, opening in enumerate(openings) if held_out(opening)]
        self.train = sorted(set(range(ready)) - set(self.held_out))
        self.shared = _common_prefix(self.ids)

    def chat(self, i: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Ids [n], features [n, hidden] and the answer's start of chat i."""
        return self.ids[i], self.features[self.starts[i] : self.starts[i + 1]], int(self.chats.answer_start[i])

    def tokens(self, chats: Sequence[int]) -> int:
        return sum(len(self.ids[i]) for i in chats)

    def batches(self, chats: Sequence[int], size: int, seed: int, prompts: float = 0.0) -> Iterator[Batch]:
        """All of `chats` once, in batches of about `size` tokens (a longer chat is one by itself), order by `seed`.

        prompts: the share of batches whose prompts are to be learnt too, but for what all chats begin with.

        Every other batch has its chats end to end in long rows instead of side by side. What a chat follows tells it
        nothing, as its features were computed without it; but so the head meets contexts longer than one chat.
        """
        random = np.random.default_rng(seed)
        order = random.permutation(np.asarray(chats, dtype=np.int64))
        groups: list[list[int]] = []
        for first in range(0, len(order), 256):
            group: list[int] = []
            for i in sorted(order[first : first + 256], key=lambda i: len(self.ids[i])):
                if group and (len(group) + 1) * len(self.ids[i]) > size:
                    groups.append(group)
                    group = []
                group.append(int(i))
            groups.append(group)
        for place, which in enumerate(random.permutation(len(groups))):
            rows = self._rows(groups[which]) if place % 2 else [[i] for i in groups[which]]
            yield self._batch(rows, random.random() < prompts)

    def _rows(self, chats: Sequence[int]) -> list[list[int]]:
        """Chats end to end, in rows of at most `LONGEST_ROW` tokens (a longer chat is one by itself)."""
        rows: list[list[int]] = [[]]
        for i in chats:
            if rows[-1] and self.tokens(rows[-1]) + len(self.ids[i]) > LONGEST_ROW:
                rows.append([])
            rows[-1].append(i)
        return rows

    def _batch(self, rows: Sequence[Sequence[int]], whole: bool) -> Batch:
        laid = [map(torch.cat, zip(*(self._tensors(i, whole) for i in row), strict=True)) for row in rows]
        return Batch(*(pad_sequence(parts, batch_first=True) for parts in zip(*laid, strict=True)))

    def _tensors(self, i: int, whole: bool) -> tuple[Tensor, Tensor, Tensor]:
        ids, features, answer_start = self.chat(i)
        weight = torch.ones(len(ids))
        weight[: min(self.shared, answer_start) if whole else answer_start] = 0
        return torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(features.astype(np.float32)), weight


def _common_prefix(chats: Sequence[np.ndarray]) -> int:
    """How many tokens all of them begin with: the chat template's own opening."""
    if not chats:
        return 0
    length = min(map(len, chats))
    same = np.all([ids[:length] == chats[0][:length] for ids in chats], axis=0)
    return int(length if same.all() else same.argmin())
