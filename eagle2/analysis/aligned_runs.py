"""Two runs of one prompt and seed under two settings: which of their rounds wrote the same place, and what each cost.

Texts are the same by construction, since what a walk emits is always the target's own draw, keyed by its position (not
so by rejection sampling); `difference` checks it. Rounds are aligned by position in the text. Pure Python; no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eagle2.analysis import metrics
from eagle2.trace.rounds import Round


def text(rounds: Sequence[Round]) -> tuple[int, ...]:
    """The new ids of a run."""
    return tuple(token for r in rounds for token in r.committed)


def difference(one: Sequence[Round], other: Sequence[Round]) -> int | None:
    """How many new ids the two runs have in common before the first that differs; None if there is none.

    Where one run is shorter, what both have is compared.
    """
    pairs = zip(text(one), text(other), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), None)


def round_at(rounds: Sequence[Round], position: int) -> int:
    """Which round wrote the `position`-th new id (from 1); the last one for positions behind the run's end."""
    written = 0
    for index, r in enumerate(rounds):
        written += len(r.committed)
        if written >= position:
            return index
    return len(rounds) - 1


@dataclass(frozen=True)
class Totals:
    """A run up to and with one of its rounds. tokens: decoded by `passes`, the prefill's not among them.

    verified: rows of the target's passes, roots included. decoding_ms: draft, verification and the rest, no prefill.
    """

    tokens: int
    passes: int
    verified: int
    decoding_ms: float

    @property
    def tau(self) -> float | None:
        return self.tokens / self.passes if self.passes else None


def totals(rounds: Sequence[Round], index: int) -> Totals:
    """What the rounds up to `index`, it included, brought and cost."""
    done = rounds[: index + 1]
    verified = sum(r.kept + 1 for r in done if r.bonus is not None)
    spent = sum(r.draft_ms + r.verify_ms + r.rest_ms for r in done)
    return Totals(metrics.decoded(done), metrics.passes(done), verified, spent)
