"""What one benchmark run notes down. Plain values; no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timed:
    """One answer. ids: all new ones, the one drawn from the prefill first. tokens: those decoded after it.

    passes: target passes after the prefill. nodes: draft tokens verified in all of them. draft_ms + verify_ms + rest_ms
    make the decoding time; methods without rounds of ours have it all in verify_ms.
    """

    ids: tuple[int, ...]
    tokens: int
    passes: int
    nodes: int
    prefill_ms: float
    draft_ms: float
    verify_ms: float
    rest_ms: float

    @property
    def decode_ms(self) -> float:
        return self.draft_ms + self.verify_ms + self.rest_ms


@dataclass(frozen=True)
class Trial:
    """Which prompt, at which temperature, in which pass over it."""

    question: str
    family: str
    turn: int
    temperature: float
    repeat: int


@dataclass(frozen=True)
class Measurement:
    """lossless: whether the answer is plain decoding's, rounding aside. near_ties: places where rounding decided."""

    trial: Trial
    method: str
    timed: Timed
    lossless: bool
    near_ties: int
