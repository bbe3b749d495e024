"""Drafters: what might come next. They follow the committed tokens and grow a candidate pool as a policy asks.

A drafter never sees what is kept or verified, and a policy never sees a model; `grow` is where the two meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from eagle2 import products
from eagle2.cache import KeyValueRows
from eagle2.eagle3 import Eagle3Head
from eagle2.head import EagleHead
from eagle2.policy import Policy
from eagle2.progress import Watch, unwatched
from eagle2.target import Target
from eagle2.tree import ROOT, Pool, top_children


class Draft(Protocol):
    """A drafter's state in one run."""

    def extend(self, tokens: Tensor, features: Tensor) -> None:
        """Follow committed tokens: `tokens` int64 [n], and the target's features [n, hidden] of those before them."""

    def grow(self, policy: Policy, depth: int) -> Pool:
        """Draft at most `depth` levels after the last committed token."""


class Drafter(Protocol):
    """Starts drafts; `vocabulary` is how many tokens it can propose after one."""

    vocabulary: int

    def begin(self, first: int) -> Draft:
        """The state of a run whose prompt begins with id `first`; the tokens after it come with `extend`."""


Expand = Callable[[Pool, Tensor, Tensor], Tensor]
"""(pool, nodes [r] to feed, rows [r] of their parents among those fed before) -> log-probabilities float32 [r, V]."""


def grow_tree(
    policy: Policy, depth: int, root_log_probs: Tensor, expand: Expand, draft_ids: Tensor | None = None
) -> Pool:
    """The expansion phase (paper, section 4.1): level by level, the policy's choice of nodes is fed and gets children.

    root_log_probs: the draft's distribution after the root, float32 [1, V]. draft_ids: the target's ids of the columns
    of all distributions, int64 [V] ascending, where the drafter has a vocabulary of its own.
    """
    device = root_log_probs.device
    pool = Pool.empty(device)
    nodes = torch.full((1,), ROOT, device=device)
    log_probs = root_log_probs
    for level in range(1, depth + 1):
        width = policy.width(level)
        tokens, log_confidence = top_children(log_probs, width)
        if draft_ids is not None:
            tokens = draft_ids[tokens]
        place = policy.children(level)  # which of the r x width children enter the pool
        place = torch.arange(tokens.numel(), device=device) if place is None else place.to(device)
        pool = pool.grow(nodes[place // width], tokens.flatten()[place], log_confidence.flatten()[place])
        if level < depth:
            nodes = policy.expand(pool).to(device)
            if not len(nodes):
                break
            log_probs = expand(pool, nodes, place[nodes - pool.level] // width)
    return pool


class EagleDrafter:
    """An EAGLE head with its target's embeddings and LM head, or its own where it brings some.

    draft_ids: the target's ids of the tokens it can propose, int64 [D] ascending, None for all. Of the LM head only
    their rows are computed, so confidences are shares of these tokens alone. Raises ValueError for a target that does
    not hand out the features the head takes.
    """

    def __init__(self, target: Target, head: EagleHead | Eagle3Head) -> None:
        if target.states != head.states:
            raise ValueError(
                f"the head takes hidden states {head.states} of its target, which hands out {target.states}; "
                "give it target.handing_out(head.states)"
            )
        self.target = target
        self.head = head.eval()
        self.draft_ids = head.draft_ids
        if head.lm_head is not None:
            self.lm_head = head.lm_head
        else:
            self.lm_head = target.lm_head if self.draft_ids is None else target.lm_head_over(self.draft_ids)
        self.vocabulary = target.vocab_size if self.draft_ids is None else len(self.draft_ids)
        if target.device.type == "mps" and self.draft_ids is not None:
            self.draft_ids = self.draft_ids.cpu()  # where `log_probs` are

    def choose_products(self, watch: Watch = unwatched) -> None:
        """Have the head and the LM head multiply in the order that is faster on this CPU."""
        products.choose_products(self.head, watch)
        if self.head.lm_head is not None:
            self.lm_head = self.head.lm_head
        elif self.draft_ids is not None:  # a copy of some of the target's rows
            self.lm_head = products.faster(self.lm_head)

    def begin(self, first: int) -> EagleDraft:  # no feature lies before the first id, so no pair holds it
        return EagleDraft(self)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings [T, hidden] of `tokens` [T]: the head's own where it has some, else the target's."""
        embed = self.head.embed_tokens if self.head.config.own_embeddings else self.target.embed
        return embed(tokens).to(self.head.fc.weight.device)

    def log_probs(self, features: Tensor) -> Tensor:
        """The draft's distribution float32 [T, D] after features [T, hidden]: always at temperature 1.

        On MPS it comes back to the CPU, whose sorts are stable and whose integers have 64 bits; so does the pool.
        """
        log_probs = self.lm_head(self.head.before_lm_head(features)).float().log_softmax(dim=-1)
        return log_probs.cpu() if log_probs.device.type == "mps" else log_probs


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
        device = self._drafter.head.fc.weight.device
        tokens, features = tokens.to(device), features.to(device)
        past, new = self.cache.length, len(tokens)
        positions = torch.arange(past, past + new, device=tokens.device)
        visible = torch.ones(new, past + new, dtype=torch.bool, device=tokens.device).tril(past)
        embeddings = self._drafter.embed(tokens)
        features = self._drafter.head.fuse(features)
        self._feature = self._drafter.head(embeddings, features, positions, self.cache, visible)[-1:]

    @torch.inference_mode()
    def grow(self, policy: Policy, depth: int) -> Pool:
        committed = self.cache.length
        features = self._feature  # [r, hidden] of the rows fed last, now the root's
        visible = torch.ones(1, committed, dtype=torch.bool, device=features.device)  # [r, cached]: what they attend to

        def expand(pool: Pool, nodes: Tensor, rows: Tensor) -> Tensor:
            nonlocal features, visible
            nodes, rows = nodes.to(pool.token.device), rows.to(features.device)
            own = torch.eye(len(nodes), dtype=torch.bool, device=features.device)
            visible = torch.cat([visible[rows], own], dim=1)
            positions = (pool.depth[nodes] + (committed - 1)).to(features.device)
            embeddings = self._drafter.embed(pool.token[nodes])
            features = self._drafter.head(embeddings, features[rows], positions, self.cache, visible)
            return self._drafter.log_probs(features)

        pool = grow_tree(policy, depth, self._drafter.log_probs(features), expand, self._drafter.draft_ids)
        self.cache.truncate(committed)
        return pool
