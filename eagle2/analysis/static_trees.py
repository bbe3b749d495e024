"""What the target chose in recorded rounds, as places in their trees, and static trees made to fit many of them.

A static tree is the same in every round, so all that a round says about it is the `Way` that the target took: a tree
accepts as much of a way as it holds. The tree of n nodes that would have accepted most over some rounds is then the n
places that most ways go through (as Medusa's and Sequoia's trees are made from measured acceptance). No torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eagle2.analysis.recut import places
from eagle2.analysis.target_choices import choices, descend
from eagle2.trace.rounds import ROOT, Round
from eagle2.tree_paths import Path, Paths, ordered


@dataclass(frozen=True)
class Way:
    """The target's choices after a round's root, as child ranks, as far as the round's pool holds them.

    refused: the child ranks recorded where the way ends, none of which the target chose; empty if nothing was drafted
    there, or if the target's choice there is not known.
    """

    ranks: Path
    refused: frozenset[int] = frozenset()


def way(rounds: Sequence[Round], index: int, own: Sequence[Sequence[int]] | None = None) -> Way:
    """The way of `rounds[index]`; own: as for `recut.places`. Raises ValueError for a round without recorded nodes."""
    r = rounds[index]
    place, chosen = places(r, own), choices(rounds, index)
    path = descend(r, chosen).path
    end = path[-1] if path else ROOT
    known = len(path) < len(chosen)
    refused = (place[node][-1] for node, parent in enumerate(r.parent) if parent == end and known)
    return Way(place[end] if path else (), frozenset(refused))


def accepted(tree: Collection[Path], way: Way) -> tuple[int, bool]:
    """How many nodes of a static tree the way goes through, and whether that is settled: it is not where the tree asks,
    at the way's end, for children that were not drafted there."""
    length = 0
    while length < len(way.ranks) and way.ranks[: length + 1] in tree:
        length += 1
    if length < len(way.ranks):
        return length, True
    asked = {path[-1] for path in tree if path[:-1] == way.ranks}
    return length, asked <= way.refused


@dataclass(frozen=True)
class Mean:
    """tokens: per round, bonus included. settled: whether every round's number is; otherwise there may be more."""

    tokens: float
    settled: bool


def mean(tree: Collection[Path], ways: Sequence[Way]) -> Mean | None:
    """What a static tree would have brought over these ways; None without any."""
    if not ways:
        return None
    found = [accepted(tree, way) for way in ways]
    return Mean(1 + sum(length for length, _ in found) / len(found), all(settled for _, settled in found))


def fitted(ways: Sequence[Way], nodes: int) -> Paths:
    """The static tree of at most `nodes` nodes that accepts most over these ways; () where they are all empty.

    Between places that as many ways go through, the shallower goes first, then the lower rank. No tree of that size
    accepts more of these ways; of others it will accept less, as anything fitted does.
    """
    through = Counter(way.ranks[:depth] for way in ways for depth in range(1, len(way.ranks) + 1))
    best = sorted(through, key=lambda path: (-through[path], len(path), path))
    return ordered(best[:nodes])
