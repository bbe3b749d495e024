"""A pair on this machine -> its `Costs`: what a target pass and a drafted level take, by number of rows.

Takes seconds on a CPU, so an engine does it once, when a method first asks (`eagle2-auto`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from eagle2.decoding.budget import Costs
from eagle2.decoding.clock import Clock
from eagle2.decoding.policy import Dynamic
from eagle2.decoding.tree import ancestor_mask
from eagle2.drafters.base import Drafter
from eagle2.models.target import Target
from eagle2.settings import TreeShape

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 48, 64)
"""Row counts that are timed; 17 because kernels often like 16 rows better, and what is between is interpolated."""

REPEATS = 3
PREFIX = 128
"""Committed tokens before what is timed: a short chat. Attention to a longer one adds to every size alike."""


def measure_costs(target: Target, drafter: Drafter) -> Costs:
    """Time the pair, the sizes in turns so that a noisy moment hurts all alike; of each the quickest run counts."""
    length = min(PREFIX, target.context_limit // 2)
    ids = [i % target.vocab_size for i in range(length)]
    cache, draft = target.begin(), drafter.begin(ids[0])
    features, _ = target.extend(cache, ids)
    following = torch.tensor(ids, device=target.device)
    draft.extend(following, features)

    def verify(rows: int) -> None:
        """Siblings under one root: the cost is that of any tree with as many nodes."""
        parent = torch.zeros(rows, dtype=torch.int64, device=target.device)
        positions = length + parent.index_fill(0, torch.arange(1, rows, device=target.device), 1)
        tokens = torch.tensor([ids[row % length] for row in range(rows)], device=target.device)
        target.verify(cache, tokens, positions, ancestor_mask(parent))
        target.commit(cache, parent[:0])

    def grow(rows: int, depth: int) -> None:
        draft.grow(Dynamic("eagle2", TreeShape(min(rows, drafter.vocabulary), depth, 1)), depth)

    def milliseconds(task: Callable[..., None], *sizes: int) -> float:
        clock = Clock(target.device)
        task(*sizes)
        clock.lap("rest")
        return clock.spent_ms["rest_ms"]

    verify(1)  # warm
    grow(1, 2)
    tasks = [(verify,), (grow, 1), (grow, 2)]
    turns = [[[milliseconds(task, rows, *depth) for task, *depth in tasks] for rows in ROWS] for _ in range(REPEATS)]
    quickest = [[min(times) for times in zip(*same, strict=True)] for same in zip(*turns, strict=True)]
    return Costs(
        ROWS,
        _rising([verified for verified, _, _ in quickest]),
        _rising([two - one for _, one, two in quickest]),  # the first level is fed no rows: its cost is the second's
    )


def _rising(durations: list[float]) -> tuple[float, ...]:
    """No count costs more than a larger one, which could be had instead; and none costs nothing."""
    return tuple(max(1e-3, min(durations[place:])) for place in range(len(durations)))
