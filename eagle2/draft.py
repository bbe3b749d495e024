"""Drafters: what might come next. They follow the committed tokens and grow a candidate pool as a policy asks.

A drafter never sees what is kept or verified, and a policy never sees a model; `grow` is where the two meet.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from eagle2.cache import KeyValueRows
from eagle2.head import EagleHead
from eagle2.policy import Policy
from eagle2.target import Target
from eagle2.tree import ROOT, Pool, top_children


class Draft(Protocol):
    """A drafter's state in one run."""

    def extend(self, tokens: Tensor, features: Tensor) -> None:
        """Follow committed tokens: `tokens` int64 [n] and the target's features [n, hidden] of the tokens before each."""

    def grow(self, policy: Policy, depth: int) -> Pool:
        """Draft at most `depth` levels after the last committed token."""


class Drafter(Protocol):
    """Starts drafts; `vocabulary` is how many tokens it can propose."""

    vocabulary: int

    def begin(self) -> Draft:
        """A fresh state that has seen no token."""


class EagleDrafter:
    """The EAGLE head with its target's embeddings and LM head."""

    def __init__(self, target: Target, head: EagleHead) -> None:
        self.target = target
        self.head = head.eval()
        self.vocabulary = target.vocab_size

    def begin(self) -> EagleDraft:
        return EagleDraft(self)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings [T, hidden] of `tokens` [T]: the head's own where it has some, else the target's."""
        embed = self.head.embed_tokens if self.head.config.own_embeddings else self.target.embed
        return embed(tokens).to(self.head.fc.weight.device)

    def log_probs(self, features: Tensor) -> Tensor:
        """The draft's distribution float32 [T, V] after features [T, hidden]: always at temperature 1."""
        return self.target.lm_head(features).float().log_softmax(dim=-1)


class EagleDraft:
    """One run's draft cache: a row for each pair (embedding of token i + 1, the *target's* feature of token i).

    With N tokens committed, the root included, it holds N - 1 rows. Rows that `grow` adds are computed from guessed
    features; they are dropped before it returns, so nothing guessed outlives a round.
    """

    def __init__(self, drafter: EagleDrafter) -> None:
        self._drafter = drafter
        self.cache = KeyValueRows()
        self._feature: Tensor | None = None  # [1, hidden]: the head's guess for the root's feature

    @torch.inference_mode()
    def extend(self, tokens: Tensor, features: Tensor) -> None:
        past, new = self.cache.length, len(tokens)
        positions = torch.arange(past, past + new, device=tokens.device)
        visible = torch.ones(new, past + new, dtype=torch.bool, device=tokens.device).tril(past)
        embeddings = self._drafter.embed(tokens)
        self._feature = self._drafter.head(embeddings, features, positions, self.cache, visible)[-1:]

    @torch.inference_mode()
    def grow(self, policy: Policy, depth: int) -> Pool:
        committed = self.cache.length
        features = self._feature  # [r, hidden] of the r nodes expanded last, in the order of expansion: now the root's
        device = features.device
        visible = torch.ones(1, committed, dtype=torch.bool, device=device)  # [r, cached]: what those rows attend to
        nodes = torch.full((1,), ROOT, device=device)  # [r] pool indices
        pool = Pool.empty(device)
        for level in range(1, depth + 1):
            if level > 1:
                nodes = policy.expand(pool).to(device)
                rows = place[nodes - pool.level] // width  # where each one's parent stands among those expanded before
                visible = torch.cat([visible[rows], torch.eye(len(nodes), dtype=torch.bool, device=device)], dim=1)
                positions = torch.full((len(nodes),), committed + level - 2, device=device)
                embeddings = self._drafter.embed(pool.token[nodes])
                features = self._drafter.head(embeddings, features[rows], positions, self.cache, visible)
            width = policy.width(level)
            tokens, log_confidence = top_children(self._drafter.log_probs(features), width)
            place = policy.children(level)  # which of the r x width children enter the pool
            place = torch.arange(tokens.numel(), device=device) if place is None else place.to(device)
            pool = pool.grow(nodes[place // width], tokens.flatten()[place], log_confidence.flatten()[place])
        self.cache.truncate(committed)
        return pool
