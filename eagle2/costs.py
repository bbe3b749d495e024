"""What a round costs on one machine, and the tree that is worth it: `eagle2-auto`'s arithmetic. No torch, no clock.

Every node costs verification time and adds its value to the tokens a round is expected to commit, 1 + the sum of the
kept values. The rule is to keep, and to draft, what makes expected tokens per millisecond highest. It is a rule of
thumb: values are calibrated only roughly, and costs were measured once, after a short prompt. Verification is exact
whatever it decides, so a poor decision costs time and nothing else.

Values and costs decide alone: a recorded pool with the recorded costs is cut again exactly as it was.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from eagle2.config import check_integer, check_number


@dataclass(frozen=True)
class Costs:
    """Milliseconds of one target pass, and of drafting one level, by number of rows.

    rows: the row counts that were measured, ascending. verify_ms, level_ms: as long as `rows`. Raises TypeError or
    ValueError where they cannot be.
    """

    rows: tuple[int, ...]
    verify_ms: tuple[float, ...]
    level_ms: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.rows or not len(self.rows) == len(self.verify_ms) == len(self.level_ms):
            raise ValueError("costs need at least one row count, and two durations for each")
        for rows, below in zip(self.rows, (0, *self.rows[:-1]), strict=True):
            check_integer("a row count of costs", rows, below + 1)
        for duration in (*self.verify_ms, *self.level_ms):
            check_number("a duration of costs", duration)
            if duration <= 0:
                raise ValueError(f"a duration of costs is {duration} ms; it must be above 0")

    def verify(self, nodes: int) -> float:
        """Milliseconds to verify `nodes` nodes and the root."""
        return self._between(self.verify_ms, nodes + 1)

    def draft(self, levels: int, top_k: int) -> float:
        """Milliseconds to draft `levels` levels: the first after the root alone, the others after `top_k` nodes."""
        if levels == 0:
            return 0.0
        return self._between(self.level_ms, 1) + (levels - 1) * self._between(self.level_ms, top_k)

    def _between(self, durations: tuple[float, ...], rows: int) -> float:
        """On the straight line between the two nearest counts; past the last, in proportion to it."""
        if rows >= self.rows[-1]:
            return durations[-1] * rows / self.rows[-1]
        above = bisect_left(self.rows, rows)
        if above == 0 or self.rows[above] == rows:
            return durations[above]
        low, high = self.rows[above - 1], self.rows[above]
        part = (rows - low) / (high - low)
        return durations[above - 1] + part * (durations[above] - durations[above - 1])


@dataclass(frozen=True)
class Budget:
    """nodes: how many of the highest value to keep; rate: expected tokens per millisecond of the whole round then."""

    nodes: int
    rate: float


def best_budget(values: Sequence[float], levels: int, top_k: int, most: int, costs: Costs) -> Budget:
    """How many nodes pay, of those worth `values`, after `levels` levels were drafted; the fewest among equals.

    The time that drafting took is spent whatever is kept, and still belongs to the round.
    """
    drafted = costs.draft(levels, top_k)
    expected = 1.0  # the bonus token
    best = Budget(0, expected / (drafted + costs.verify(0)))
    for nodes, value in enumerate(heapq.nlargest(most, values), start=1):
        expected += value
        rate = expected / (drafted + costs.verify(nodes))
        if rate > best.rate:
            best = Budget(nodes, rate)
    return best


def deepens(values: Sequence[float], depths: Sequence[int], top_k: int, most: int, costs: Costs) -> bool:
    """Whether to draft one more level after the pool of these values and depths (both in pool order).

    What the level will bring is not known. It is expected to hold the newest one's `top_k` best again, each worth the
    share that they kept of the best of the level above: a sure draft goes on, one that has begun to waver stops.
    """
    levels = depths[-1]
    newest, above = (_best_of_level(values, depths, level, top_k) for level in (levels, levels - 1))
    share = sum(newest) / sum(above) if sum(above) > 0 else 0.0
    expected = [*values, *(share * value for value in newest)]
    now = best_budget(values, levels, top_k, most, costs)
    return best_budget(expected, levels + 1, top_k, most, costs).rate > now.rate


def _best_of_level(values: Sequence[float], depths: Sequence[int], level: int, top_k: int) -> list[float]:
    """The `top_k` highest values of a level; the root's is 1."""
    if level == 0:
        return [1.0]
    return heapq.nlargest(top_k, (value for value, depth in zip(values, depths, strict=True) if depth == level))
