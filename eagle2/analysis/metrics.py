"""Rounds -> the numbers people compare: tau, acceptance by depth, speed. Pure Python over `Round`s; no torch.

tau counts the bonus token, as the papers do; what leaves it out says so in its name. The prefill and the token drawn
from it belong to no round's pass and are never counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eagle2.settings import Settings
from eagle2.trace.rounds import ROOT, Pair, Round


def passes(rounds: Iterable[Round]) -> int:
    """Target passes after the prefill: rounds that verified something, be it the root alone."""
    return sum(r.bonus is not None for r in rounds)


def decoded(rounds: Iterable[Round]) -> int:
    """Tokens committed by those passes, after stops and caps."""
    return sum(max(0, len(r.committed) - r.first) for r in rounds)


def tau(rounds: Sequence[Round]) -> float | None:
    """Mean acceptance length: tokens committed per target pass, bonus included. None without any pass."""
    return decoded(rounds) / passes(rounds) if passes(rounds) else None


def accepted_per_round(rounds: Sequence[Round]) -> float | None:
    """Mean number of accepted draft tokens per target pass, bonus *not* included, before stops and caps."""
    return sum(len(r.accepted) for r in rounds) / passes(rounds) if passes(rounds) else None


FLOOR_PASSES, FLOOR_ACCEPTED = 16, 0.1
"""After so many passes with drafts, fewer accepted tokens per pass than this mean that the head guesses nothing."""


def gives_no_numbers(rounds: Iterable[Round]) -> bool:
    """Whether a drafter gave every node it drafted confidence 0: what NaN and overflow in its dtype look like."""
    drafted = [r for r in rounds if r.token]
    return bool(drafted) and not any(c for r in drafted for c in r.confidence)


def positions_past(pair: Pair, settings: Settings, rounds: Sequence[Round]) -> int:
    """How many positions of a run lie past those its head was made for; 0 where none do or that is not known."""
    if pair.head_positions is None or not pair.head_drafts(settings) or not rounds:
        return 0
    return max(0, rounds[-1].prefix_length + len(rounds[-1].committed) - pair.head_positions)


def near_floor(rounds: Iterable[Round]) -> bool:
    """Whether hardly any draft was accepted in enough rounds to tell: the head may not be this target's."""
    drafted = [r for r in rounds if r.drafted and r.bonus is not None]
    return len(drafted) >= FLOOR_PASSES and accepted_per_round(drafted) < FLOOR_ACCEPTED


def acceptance_by_depth(rounds: Iterable[Round]) -> list[tuple[int, int]]:
    """For each depth (from 1): in how many rounds the walk could choose among nodes there, and in how many it took one.

    Rounds without recorded nodes are left out, since what their walks could choose from is not known.
    """
    tried: list[list[int]] = []
    for r in rounds:
        if not r.token:
            continue
        last = r.accepted[-1] if r.accepted else ROOT
        refused = any(r.parent[node] == last for node in r.flattened)
        for depth in range(1, len(r.accepted) + refused + 1):
            if len(tried) < depth:
                tried.append([0, 0])
            tried[depth - 1][0] += 1
            tried[depth - 1][1] += depth <= len(r.accepted)
    return [(reached, accepted) for reached, accepted in tried]


@dataclass(frozen=True)
class Speed:
    """tokens_per_s counts decoding alone; prefill_ms is reported apart. Shares of the decoding time sum to 1."""

    tokens_per_s: float
    prefill_ms: float
    draft_share: float
    verify_share: float
    rest_share: float


def speed(rounds: Sequence[Round]) -> Speed | None:
    """Decoding speed from the rounds' own clocks; None where nothing was decoded."""
    parts = [sum(getattr(r, f"{phase}_ms") for r in rounds) for phase in ("draft", "verify", "rest")]
    total = sum(parts)
    if not decoded(rounds) or total <= 0:
        return None
    prefill = sum(r.prefill_ms for r in rounds)
    return Speed(1e3 * decoded(rounds) / total, prefill, *(part / total for part in parts))
