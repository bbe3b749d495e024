"""Prompt lookup: a drafter without a model. What followed the same words before is guessed to follow again.

Knows token ids and nothing else: the last few tokens are looked up among all committed ones, prompt included.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eagle2.decoding.policy import Policy
from eagle2.decoding.tree import ROOT, Pool

LONGEST = 4
"""Tokens of context compared at most; longer ones are tried first."""


class NgramDrafter:
    """Proposes one token after each, whatever the target's vocabulary."""

    vocabulary = 1

    def begin(self, first: int) -> NgramDraft:
        return NgramDraft(first)


class NgramDraft:
    """The committed tokens of one run, and where each n-gram among them was last continued."""

    def __init__(self, first: int) -> None:
        self._tokens = [first]
        self._continued: dict[tuple[int, ...], int] = {}  # n-gram -> place of the token after its latest occurrence

    def extend(self, tokens: Tensor, features: Tensor) -> None:
        for token in tokens.tolist():
            place = len(self._tokens)
            for size in range(1, min(LONGEST, place) + 1):
                self._continued[tuple(self._tokens[place - size :])] = place
            self._tokens.append(token)

    def grow(self, policy: Policy, depth: int) -> Pool:
        """A chain of the continuation, each confidence 1; empty where the last token is new. Any policy can cut it."""
        return chain(self.continuation()[:depth])

    def continuation(self) -> list[int]:
        """What followed the latest occurrence of the longest n-gram that the text ends with, up to the text's end."""
        for size in range(min(LONGEST, len(self._tokens)), 0, -1):
            place = self._continued.get(tuple(self._tokens[-size:]))
            if place is not None:
                return self._tokens[place:]
        return []


def chain(tokens: Sequence[int]) -> Pool:
    """A pool of one node per level, each certain."""
    pool = Pool.empty()
    for place, token in enumerate(tokens):
        pool = pool.grow(torch.tensor([place - 1 if place else ROOT]), torch.tensor([token]), torch.zeros(1))
    return pool
