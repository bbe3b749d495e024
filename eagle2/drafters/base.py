"""Drafters: what might come next. They follow the committed tokens and grow a candidate pool as a policy asks.

A drafter never sees what is kept or verified, and a policy never sees a model; `grow` is where the two meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from eagle2.decoding.policy import Policy
from eagle2.decoding.tree import ROOT, Pool, top_children


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
