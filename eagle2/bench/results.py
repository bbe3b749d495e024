"""Measurements -> the numbers of a table: tau, tokens per second, speedup, losslessness. Pure Python; no torch.

Speed is decoding alone, prefill apart. A question's speedup is taken against plain decoding of the same trial, which
ran side by side with it; medians over repeats, then over a family's questions. tau is that of all the family's passes
together, bonus included, the prefill's token not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from eagle2.bench.records import Measurement


@dataclass(frozen=True)
class Result:
    """One cell of the table. speedup: against plain decoding in this engine."""

    method: str
    family: str
    temperature: float
    tau: float
    tokens_per_s: float
    speedup: float
    lossless: bool


def results(measurements: Sequence[Measurement]) -> list[Result]:
    """One result for each method, family and temperature, in the order measured.

    Answers that the token drawn from the prefill already ended hold no decoding; a family that has none but those is
    left out.
    """
    plain = {m.trial: m for m in measurements if m.method == "plain"}
    cells: dict[tuple[float, str, str], list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        trial = measurement.trial
        cells[trial.temperature, trial.family, measurement.method].append(measurement)
    made = []
    for (temperature, family, method), cell in cells.items():
        decoded = [m for m in cell if m.timed.tokens and plain[m.trial].timed.tokens]
        if decoded:
            made.append(
                Result(
                    method=method,
                    family=family,
                    temperature=temperature,
                    tau=sum(m.timed.tokens for m in decoded) / sum(m.timed.passes for m in decoded),
                    tokens_per_s=_typical(decoded, rate),
                    speedup=_typical(decoded, lambda m: rate(m) / rate(plain[m.trial])),
                    lossless=all(m.lossless for m in cell),
                )
            )
    return made


def rate(measurement: Measurement) -> float:
    """Tokens per second of decoding."""
    return 1e3 * measurement.timed.tokens / measurement.timed.decode_ms


def _typical(cell: Iterable[Measurement], value: Callable[[Measurement], float]) -> float:
    """Median over a family's prompts of the median over each prompt's repeats."""
    by_prompt = defaultdict(list)
    for measurement in cell:
        by_prompt[measurement.trial.question, measurement.trial.turn].append(value(measurement))
    return median(median(values) for values in by_prompt.values())


@dataclass(frozen=True)
class Phases:
    """Of all answers of one method at one temperature. Milliseconds are medians over answers; per pass, but prefill.

    outside: share of the decoding time spent outside drafting and verifying. nodes: verified in a pass, on average.
    """

    method: str
    temperature: float
    prefill_ms: float
    draft_ms: float
    verify_ms: float
    rest_ms: float
    outside: float
    nodes: float
    near_ties: int
    differing: int


def phases(measurements: Sequence[Measurement]) -> list[Phases]:
    """Where the time of each method's rounds went; `differing` counts its answers that were not plain decoding's."""
    groups: dict[tuple[float, str], list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        groups[measurement.trial.temperature, measurement.method].append(measurement)
    made = []
    for (temperature, method), group in groups.items():
        decoded = [m.timed for m in group if m.timed.passes]
        if not decoded:
            continue
        made.append(
            Phases(
                method=method,
                temperature=temperature,
                prefill_ms=median(m.timed.prefill_ms for m in group),
                draft_ms=median(t.draft_ms / t.passes for t in decoded),
                verify_ms=median(t.verify_ms / t.passes for t in decoded),
                rest_ms=median(t.rest_ms / t.passes for t in decoded),
                outside=sum(t.rest_ms for t in decoded) / sum(t.decode_ms for t in decoded),
                nodes=sum(t.nodes for t in decoded) / sum(t.passes for t in decoded),
                near_ties=sum(m.near_ties for m in group),
                differing=sum(not m.lossless for m in group),
            )
        )
    return made


@dataclass(frozen=True)
class Overhead:
    """Of one method. outside: share of the decoding time in which no model was at work, recording on.

    recording: by how much recording lengthens decoding, as a share; the median over prompts, so noise may bring it
    below 0.
    """

    method: str
    outside: float
    recording: float


def overall(made: Sequence[Result], method: str, temperature: float) -> tuple[float, float] | None:
    """Mean speedup and mean tau over families, as the paper's last column has them; None where there is no cell."""
    row = [r for r in made if (r.method, r.temperature) == (method, temperature)]
    return (mean(r.speedup for r in row), mean(r.tau for r in row)) if row else None
