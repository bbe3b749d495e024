"""What the target chose after a round's root, and how far any tree over that round's pool would have followed it.

What a walk emits is always the target's own draw, keyed by its position, so the choices do not depend on the tree:
those after a root are the draws of its round's walk, then the draws of the rounds behind it. That makes "what would
another tree have accepted?" a question about a recorded run, without a model. Rounds of rejection sampling know no such
choices: what they emit depends on what was drafted. Pure Python; no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eagle2.methods import WALK
from eagle2.trace.rounds import ROOT, Round


def drawn(round: Round) -> tuple[int, ...]:
    """The tokens its walk drew, before stops and caps: the accepted path's, then the bonus. () where none was drawn.

    () also for a round of rejection sampling. Raises ValueError where nodes were not recorded and a stop or the cap
    dropped some of the draws.
    """
    if round.bonus is None or round.rule != WALK:
        return ()
    if round.token or not round.accepted:
        return (*(round.token[node] for node in round.accepted), round.bonus)
    committed = round.committed[round.first :]
    if len(committed) <= len(round.accepted):
        raise ValueError(f"round {round.index} kept no record of its nodes, and a stop or the cap dropped its last ids")
    return committed


def follows(later: Round, earlier: Round) -> bool:
    """Whether `later` goes on where `earlier` ended. Runs laid end to end in one list do not follow one another."""
    return (
        earlier.finish is None
        and earlier.bonus is not None
        and later.rule == earlier.rule == WALK
        and later.index == earlier.index + 1
        and later.root == earlier.bonus
        and later.prefix_length == earlier.prefix_length + len(earlier.accepted) + 1
    )


def choices(rounds: Sequence[Round], index: int) -> tuple[int, ...]:
    """The target's choices after the root of `rounds[index]`, as many as its pool is deep, or as far as recorded.

    Known are the draws of that round's own walk and, where the rounds behind it belong to the same run, theirs. A run's
    last rounds may know fewer choices than their pools are deep: what the target would have said next was never asked.
    """
    wanted = max(rounds[index].depth, default=0)
    known = list(drawn(rounds[index]))
    while len(known) < wanted and index + 1 < len(rounds) and follows(rounds[index + 1], rounds[index]):
        index += 1
        known += drawn(rounds[index])
    return tuple(known)


@dataclass(frozen=True)
class Descent:
    """path: the pool nodes that hold the target's choices, one after the other, from the first level down.

    settled: whether the path ends because the pool holds no further choice; otherwise the known choices ran out first,
    and the path may in truth go on.
    """

    path: tuple[int, ...]
    settled: bool


def descend(round: Round, chosen: Sequence[int]) -> Descent:
    """Follow `chosen` through *all* drafted nodes. A tree accepts the part of the path that it keeps, no more."""
    child_of = {
        (parent, token): node for node, (parent, token) in enumerate(zip(round.parent, round.token, strict=True))
    }
    parents = set(round.parent)
    path: list[int] = []
    at = ROOT
    for token in chosen:
        node = child_of.get((at, token))
        if node is None:
            return Descent(tuple(path), True)
        path.append(node)
        at = node
    return Descent(tuple(path), at not in parents)


def by_value(round: Round) -> list[int]:
    """Pool indices in the paper's order: value descending, then depth ascending, then place in the pool."""
    return sorted(range(len(round.value)), key=lambda node: (-round.value[node], round.depth[node], node))
