"""Plain decoding with the same target, one token a pass: the baseline, and the oracle that tree decoding must equal.

Shares the stop and cap rules with the engine (`Output`), and nothing of its trees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from eagle2.decoding.sampling import drawer
from eagle2.models.target import Target
from eagle2.settings import Sampling
from eagle2.trace.rounds import Finish

StopRule = Callable[[list[int]], int | None]
"""Called after each new id with all ids since the prompt; returns how many to keep (0: none), or None to continue.

A rule may have a method `undecided(new_ids)`: how many of the last ids may still be taken back by a later call. Rounds
that hold such ids are yielded once that is decided. What was yielded is never taken back.
"""


@dataclass
class Output:
    """The ids of a run as they are committed; stops before caps, and both before anything else sees an id.

    new: ids since the prompt. room: how many the length cap and the context leave. rounded: how many of `new` belong to
    rounds already made. taken: how many have been handed out with their rounds, which no stop rule takes back.
    """

    room: int
    end_ids: Collection[int]
    stop: StopRule | None = None
    new: list[int] = field(default_factory=list)
    rounded: int = 0
    taken: int = 0
    finish: Finish | None = None

    def admit(self, ids: Sequence[int]) -> None:
        """Commit `ids` as far as stop rules and caps allow; sets `finish` where the run ends."""
        for token in ids:
            if self.finish is not None:
                return
            self.new.append(token)
            keep = self.stop(list(self.new)) if self.stop else None
            if keep is not None:
                self._check_keep(keep)
                del self.new[max(keep, self.taken) :]
            if keep is not None or token in self.end_ids:
                self.finish = "stop"
            elif len(self.new) >= self.room:
                self.finish = "length"

    def take(self) -> tuple[int, ...]:
        """What was committed since the last call: a round's part."""
        fresh = tuple(self.new[self.rounded :])
        self.rounded = max(self.rounded, len(self.new))
        return fresh

    @property
    def decided(self) -> int:
        """How many of `new` no stop rule can take back any more."""
        undecided = getattr(self.stop, "undecided", None)
        if self.finish is not None or undecided is None:
            return len(self.new)
        return max(self.taken, len(self.new) - undecided(list(self.new)))

    def _check_keep(self, keep: object) -> None:
        if isinstance(keep, bool) or not hasattr(keep, "__index__"):
            raise TypeError(f"a stop rule must return None or how many ids to keep, not {keep!r}")
        if not 0 <= keep <= len(self.new):
            raise ValueError(
                f"the stop rule would keep {keep} of {len(self.new)} new ids; allowed is 0 to {len(self.new)}"
            )


def decode(target: Target, ids: Sequence[int], sampling: Sampling, output: Output) -> list[int]:
    """The ids the target alone would add to `ids`, end token included. A stop rule's cut is exact here."""
    cache = target.begin()
    _, logits = target.extend(cache, list(ids))
    while True:
        output.admit([drawer(logits[None], sampling, [cache.length])(0).token])
        if output.finish is not None:
            return output.new
        _, logits = target.extend(cache, output.new[-1:])
