"""Exact verification as one walk down the kept tree. Pure; knows no model.

At the current node draw y from the target's law. If some child holds y, move there; else y is the bonus token. What is
emitted is always y, so no draft can change the output's law; the tree only decides how far one pass reaches. For a
fixed tree this is rejection sampling with a one-hot q: "accept child x with p(x), else remove x and renormalise".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eagle2.sampling import Draw


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
    target's law after the token at `slot`; called once per visited slot, downwards.
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
