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

from eagle2.settings import check_integer, check_number


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

    def draft(self, fed: Sequence[int]) -> float:
        """Milliseconds to draft levels, `fed` the rows that the drafter was fed for each; for the first, the root."""
        return sum(self._between(self.level_ms, rows) for rows in fed)

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


def best_budget(values: Sequence[float], fed: Sequence[int], most: int, costs: Costs) -> Budget:
    """How many nodes pay, of a pool with these values for which `fed` rows were drafted; the fewest among equals.

    The time that drafting took is spent whatever is kept, and still belongs to the round.
    """
    drafted = costs.draft(fed)
    expected = 1.0  # the bonus token
    best = Budget(0, expected / (drafted + costs.verify(0)))
    for nodes, value in enumerate(heapq.nlargest(most, values), start=1):
        expected += value
        rate = expected / (drafted + costs.verify(nodes))
        if rate > best.rate:
            best = Budget(nodes, rate)
    return best


def width(
    values: Sequence[float], depths: Sequence[int], fed: Sequence[int], top_k: int, most: int, costs: Costs
) -> int:
    """How many of the newest level's best nodes, `top_k` at most, to feed to the drafter for one more level; 0: stop.

    values, depths: of the pool, in pool order. Only nodes that would be kept now are fed, since a child is worth no
    more than its parent. What their children will be worth is not known. Each is expected to go on as one node worth
    the share that the newest level's best kept of the nodes above them: a sure draft is deepened, one that wavers not.
    """
    levels = depths[-1]
    now = best_budget(values, fed, most, costs)
    kept = heapq.nlargest(now.nodes, range(len(values)), key=values.__getitem__)  # among equals the earlier
    rows = min(top_k, sum(depths[node] == levels for node in kept))
    newest = _best_of_level(values, depths, levels, top_k)
    above = sum(_best_of_level(values, depths, levels - 1, fed[-1]))
    share = sum(newest) / above if above > 0 else 0.0
    expected = [*values, *(share * value for value in newest[:rows])]
    return rows if rows and best_budget(expected, [*fed, rows], most, costs).rate > now.rate else 0


def rows_fed(depths: Sequence[int], expanded: Sequence[bool]) -> list[int]:
    """Rows fed to the drafter for each level of a pool: the root, then the expanded nodes of all but the last."""
    if not depths:
        return []
    fed = [1] + [0] * (depths[-1] - 1)
    for depth, fed_on in zip(depths, expanded, strict=True):
        if fed_on and depth < depths[-1]:
            fed[depth] += 1
    return fed


def _best_of_level(values: Sequence[float], depths: Sequence[int], level: int, most: int) -> list[float]:
    """The `most` highest values of a level; the root's is 1."""
    if level == 0:
        return [1.0]
    return heapq.nlargest(most, (value for value, depth in zip(values, depths, strict=True) if depth == level))
