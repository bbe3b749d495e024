"""Rounds -> the numbers people compare: tau, acceptance by depth, speed. Pure Python over `Round`s; no torch.

tau counts the bonus token, as the papers do; what leaves it out says so in its name. The prefill and the token drawn
from it belong to no round's pass and are never counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eagle2.trace import Round


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


def acceptance_by_depth(rounds: Iterable[Round]) -> list[tuple[int, int]]:
    """For each depth (from 1): rounds whose walk reached a kept node's parent there, and in how many it went on."""
    tried: list[list[int]] = []
    for r in rounds:
        deepest = max((r.depth[node] for node in r.flattened), default=0)
        for depth in range(1, min(len(r.accepted) + 1, deepest) + 1):
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
