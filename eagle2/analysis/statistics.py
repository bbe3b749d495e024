"""Rounds -> what the paper's figures 5 and 6 plot, and what one asks of a draft next. Pure Python; no torch.

Every function takes any rounds: a session's, one run's (`trace.rounds`), or several runs laid end to end. Rounds whose
nodes were not recorded say nothing here and are left out. So are rounds of rejection sampling, but for their nodes'
fates: what they accept depends on how the draft was drawn. All counts are taken before stops and caps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from eagle2.analysis.target_choices import by_value, choices, descend
from eagle2.methods import WALK
from eagle2.trace.rounds import ROOT, Round

TENTHS = tuple(n / 10 for n in range(11))


def interval(hits: int, count: int) -> tuple[float, float]:
    """Where the true share lies with 95 % confidence, `hits` of `count` > 0 having been seen (Wilson's interval).

    Draws in one text are not independent, so take it as the least doubt that the counts leave.
    """
    z = 1.96
    centre = hits + z * z / 2
    spread = z * (hits * (count - hits) / count + z * z / 4) ** 0.5
    return max(0.0, (centre - spread) / (count + z * z)), min(1.0, (centre + spread) / (count + z * z))


@dataclass(frozen=True)
class Bin:
    """Drafted nodes of similar confidence: low <= c < high (the last bin: <= high). drawn: those the target drew."""

    low: float
    high: float
    count: int
    drawn: int
    confidence: float | None

    @property
    def share(self) -> float | None:
        """The part of them that the target drew; None in an empty bin."""
        return self.drawn / self.count if self.count else None


def outcomes(rounds: Iterable[Round]) -> list[tuple[float, bool]]:
    """(confidence, whether the target drew it) of every drafted child of every node that a walk visited.

    Pruned children count too, whatever reranking did with them: the target's draw at their parent is known, and to
    leave them out would favour nodes of high value. At temperature 0 a draw is the target's first choice.
    """
    found = []
    for r in rounds:
        if not r.token or r.rule != WALK:
            continue
        drawn = dict(zip((ROOT, *r.accepted), (*(r.token[node] for node in r.accepted), r.bonus), strict=True))
        for node, parent in enumerate(r.parent):
            if parent in drawn:
                found.append((r.confidence[node], drawn[parent] == r.token[node]))
    return found


def reliability(rounds: Iterable[Round], edges: Sequence[float] = TENTHS) -> list[Bin]:
    """Confidence against outcome (paper, figure 6): a bin between each two neighbours of `edges` (ascending).

    `confidence` is the bin's mean; calibrated confidences have it equal `share`, up to chance. Raises ValueError
    unless the edges ascend from 0 to 1.
    """
    if (edges[0], edges[-1]) != (0, 1) or any(low >= high for low, high in pairwise(edges)):
        raise ValueError(f"the edges of the bins must ascend from 0 to 1, not {tuple(edges)}")
    sums = [[0, 0, 0.0] for _ in edges[1:]]
    for confidence, drawn in outcomes(rounds):
        place = sum(confidence >= edge for edge in edges[1:-1])
        sums[place][0] += 1
        sums[place][1] += drawn
        sums[place][2] += confidence
    return [
        Bin(low, high, count, drawn, total / count if count else None)
        for low, high, (count, drawn, total) in zip(edges, edges[1:], sums, strict=False)
    ]


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: |mean confidence - share drawn| over the bins, weighted by their counts."""
    count = sum(b.count for b in bins)
    return sum(b.count * abs(b.confidence - b.share) for b in bins if b.count) / count if count else None


@dataclass(frozen=True)
class Position:
    """A place in the draft tree, as child ranks from the root: (0,) is the likeliest first token, (0, 1) its 2nd child.

    drafted: in how many rounds the pool held it. reached: in how many of them the target chose its parent. drawn: in
    how many it chose the position itself. Rounds where that is not known are left out of all three.
    """

    ranks: tuple[int, ...]
    drafted: int
    reached: int
    drawn: int

    @property
    def share(self) -> float:
        """How often the position was right where it was drafted; over a static tree these add up to tau - 1."""
        return self.drawn / self.drafted

    @property
    def share_if_reached(self) -> float | None:
        return self.drawn / self.reached if self.reached else None


def positions(rounds: Sequence[Round], width: int = 2, depth: int = 3) -> list[Position]:
    """Acceptance by position in the tree (paper, figure 5: width 2, depth 2), by depth, then by ranks.

    Ranks are among the *drafted* children of a node, by confidence. Positions that were never drafted are left out.
    """
    counts: dict[tuple[int, ...], list[int]] = {}
    for index, r in enumerate(rounds):
        if not r.token:
            continue
        chosen = choices(rounds, index)
        right = {ROOT, *descend(r, chosen).path}
        unknown = set()  # what hangs under a path that agrees with all choices known
        for node, ranks in enumerate(child_ranks(r)):
            parent = r.parent[node]
            if parent in unknown or (parent in right and len(ranks) > len(chosen)):
                unknown.add(node)
            if node in unknown or len(ranks) > depth or max(ranks) >= width:
                continue
            count = counts.setdefault(ranks, [0, 0, 0])
            count[0] += 1
            count[1] += parent in right
            count[2] += node in right
    return [Position(ranks, *counts[ranks]) for ranks in sorted(counts, key=lambda ranks: (len(ranks), ranks))]


def child_ranks(round: Round) -> list[tuple[int, ...]]:
    """Each node's place in the tree as child ranks from the root, in pool order."""
    ranks: list[tuple[int, ...]] = []
    children: dict[int, int] = {}
    for parent in round.parent:
        rank = children[parent] = children.get(parent, -1) + 1
        ranks.append((*(ranks[parent] if parent != ROOT else ()), rank))
    return ranks


@dataclass(frozen=True)
class Length:
    """One round: the tokens predicted for it (1 + the sum of its kept values) and those it brought, bonus included."""

    predicted: float
    tokens: int


def lengths(rounds: Iterable[Round]) -> list[Length]:
    """Accepted length against prediction, round by round; if values were probabilities, they would agree on average."""
    return [Length(r.predicted, len(r.accepted) + 1) for r in rounds if r.token and r.rule == WALK]


@dataclass(frozen=True)
class Budget:
    """What keeping `max_nodes` would have brought. tokens: per round, bonus included. predicted: 1 + kept values."""

    max_nodes: int
    tokens: float
    predicted: float


def budgets(rounds: Sequence[Round]) -> list[Budget]:
    """Tokens per round for every max_nodes from 0 to the largest recorded pool (of a smaller one, all that it holds).

    Exact for each recorded round: neither its pool nor the target's choices depend on max_nodes. It is not quite the
    tau of a whole run at that setting, whose rounds would begin at other places of the same text. Rounds whose pool
    agrees with every choice known (a run's last ones may) are left out; an empty list where none remains.
    """
    descents = [(r, descend(r, choices(rounds, index))) for index, r in enumerate(rounds) if r.token]
    settled = [(r, frozenset(descent.path)) for r, descent in descents if descent.settled]
    largest = max((len(r.token) for r, _ in settled), default=0)
    gained, foreseen = [0] * largest, [0.0] * largest
    for r, right in settled:
        for place, node in enumerate(by_value(r)):
            gained[place] += node in right
            foreseen[place] += r.value[node]
    count = len(settled)
    sums = zip(accumulate(gained, initial=count), accumulate(foreseen, initial=float(count)), strict=True)
    return [Budget(m, tokens / count, predicted / count) for m, (tokens, predicted) in enumerate(sums) if count]


def values_by_fate(rounds: Iterable[Round]) -> dict[str, list[float]]:
    """Values of the nodes that the walk accepted ("cut" ones included), that it rejected, and that were pruned."""
    found: dict[str, list[float]] = {"accepted": [], "rejected": [], "pruned": []}
    for r in rounds:
        for value, fate in zip(r.value, r.fate, strict=True):
            found["accepted" if fate == "cut" else fate].append(value)
    return found
