"""Exact verification: one walk down the kept tree, or rejection sampling of a sampled chain. Pure; knows no model.

At the current node draw y from the target's distribution. If some child holds y, move there; else y is the bonus token.
What is emitted is always y, so no draft can change the output's distribution; the tree only decides how far one pass
reaches. For a fixed tree this is rejection sampling with a one-hot q: "accept child x with p(x), else remove x and
renormalise".

Where the draft itself was sampled, from a distribution q, it may be accepted more often: x with min(1, p(x)/q(x)), and
a rejected x is replaced by a draw from norm(max(0, p - q)) (paper, section 2.1). Then what is emitted has the
distribution p, but depends on the draft.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eagle2.decoding.sampling import Draw


@dataclass(frozen=True)
class Walk:
    """slots: the accepted path in the flattened sequence, root excluded. draws: one per visited row, root first; the
    last one's token is the bonus."""

    slots: tuple[int, ...]
    draws: tuple[Draw, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the walk emits: the accepted tokens, then the bonus."""
        return tuple(draw.token for draw in self.draws)


def walk(tokens: Sequence[int], parents: Sequence[int], draw_at: Callable[[int], Draw]) -> Walk:
    """Walk from the root (slot 0) until no child holds what the target draws.

    tokens [m]: the kept nodes' tokens, slots 1…m. parents [m + 1]: parent slots. draw_at(slot): a draw from the
    target's distribution after the token at `slot`; called once per visited slot, downwards.
    """
    child_of = {(parents[slot], token): slot for slot, token in enumerate(tokens, start=1)}
    slots: list[int] = []
    draws: list[Draw] = []
    slot: int | None = 0
    while slot is not None:
        draws.append(draw_at(slot))
        slot = child_of.get((slot, draws[-1].token))
        if slot is not None:
            slots.append(slot)
    return Walk(tuple(slots), tuple(draws))


def accept_or_replace(
    tokens: Sequence[int],
    distributions: Sequence[np.ndarray],
    distribution_at: Callable[[int], np.ndarray],
    number_at: Callable[[int], float],
    draw_at: Callable[[int, np.ndarray], int],
) -> Walk:
    """Speculative sampling: accept a sampled chain's tokens one after the other until one is rejected.

    tokens [m]: the chain, slots 1…m. distributions [m]: for each token the q it was drawn from, float64 [V'], V' <= V.
    distribution_at(slot): the target's p after the token at `slot`, float64 [V]. number_at(slot): uniform in [0, 1),
    for the token proposed there. draw_at(slot, distribution): a draw that replaces it, or follows the whole chain. Each
    is called at most once per visited slot, downwards, and their results must be independent.
    """
    draws: list[Draw] = []
    for slot, (token, q) in enumerate(zip(tokens, distributions, strict=True)):
        p = distribution_at(slot)
        chance = acceptance(p, q, token)
        if number_at(slot) < chance:
            draws.append(Draw(token, float(p[token]), chance))
            continue
        drawn = draw_at(slot, residual(p, q))
        return Walk(tuple(range(1, slot + 1)), (*draws, Draw(drawn, float(p[drawn]), chance)))
    p = distribution_at(len(tokens))
    drawn = draw_at(len(tokens), p)
    return Walk(tuple(range(1, len(tokens) + 1)), (*draws, Draw(drawn, float(p[drawn]))))


def acceptance(p: np.ndarray, q: np.ndarray, token: int) -> float:
    """min(1, p/q) of a token drawn from q."""
    return min(1.0, float(p[token] / q[token]))


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """norm(max(0, p - q)), float64 [V]: what p has over q, which may know fewer tokens; p where the two are equal."""
    over = p.copy()
    over[: len(q)] = np.maximum(0, p[: len(q)] - q)
    total = over.sum()
    return over / total if total > 0 else p  # then a refusal is a matter of rounding
