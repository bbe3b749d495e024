"""Is a text what plain decoding would have written? Teacher-forced, position by position, with rounding told apart.

Tree passes and single-row passes multiply in another order, so at half precision, or where two tokens are all but
equally good, the two can differ without a fault. Each token is therefore scored where plain decoding would have drawn
it: it agrees if it is the choice there, or within rounding of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eagle2.decoding.clock import Clock
from eagle2.decoding.sampling import gumbel_noise, log_distribution
from eagle2.models.target import Target
from eagle2.settings import Sampling

ROUNDING = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1.5e-1}
"""How far two ways of computing one logit may lie apart, by dtype, in units of logits."""
TOP_P_EDGE, TOP_K_EDGE = 1e-5, 1e-4
AT_AN_EDGE = 1e-9
"""The gap of a token that is the draw only if rounding lets it in at the edge of top-k or top-p: small, not zero."""


@dataclass(frozen=True)
class Verdict:
    """positions: tokens checked. differing: places (from 0) where plain decoding chooses otherwise, rounding aside.

    near_ties: places where it chooses otherwise within rounding; gaps: by how much, in logits, for each of them.
    plain_ms: what plain decoding of all of them but the first took; that one comes from the prefill.
    """

    positions: int
    differing: tuple[int, ...]
    near_ties: tuple[int, ...]
    gaps: tuple[float, ...]
    plain_ms: float

    @property
    def lossless(self) -> bool:
        return not self.differing


def check(target: Target, prompt: Sequence[int], new_ids: Sequence[int], sampling: Sampling) -> Verdict:
    """Decode `new_ids` after `prompt` plainly, one pass a token, and compare what would have been drawn each time."""
    return verdict(list(steps(target, prompt, new_ids, sampling)), target.dtype)


def steps(
    target: Target, prompt: Sequence[int], new_ids: Sequence[int], sampling: Sampling
) -> Iterator[tuple[float, float]]:
    """One pair per new id: its shortfall in logits, and the milliseconds that drawing it and the pass before it took.

    The first id comes from the prefill, whose time is not counted: its milliseconds are 0. Two passes warm up.
    """
    slack = ROUNDING.get(target.dtype, 1e-4)
    cache = target.begin()
    for _ in range(2):
        target.extend(target.begin(), [prompt[0]])
    _, logits = target.extend(cache, list(prompt))
    for place, token in enumerate(new_ids):
        clock = Clock(target.device)
        if place:
            _, logits = target.extend(cache, [new_ids[place - 1]])
        gap = shortfall(logits, token, sampling, len(prompt) + place, slack)
        clock.lap("verify")
        yield gap, clock.spent_ms["verify_ms"] if place else 0.0


def verdict(checked: Sequence[tuple[float, float]], dtype: torch.dtype) -> Verdict:
    """What the steps come to."""
    slack = ROUNDING.get(dtype, 1e-4)
    near = [(place, gap) for place, (gap, _) in enumerate(checked) if 0 < gap <= slack]
    return Verdict(
        positions=len(checked),
        differing=tuple(place for place, (gap, _) in enumerate(checked) if gap > slack),
        near_ties=tuple(place for place, _ in near),
        gaps=tuple(gap for _, gap in near),
        plain_ms=sum(ms for _, ms in checked),
    )


def shortfall(logits: torch.Tensor, token: int, sampling: Sampling, position: int, slack: float) -> float:
    """By how many logits `token` misses being the draw at `position`: 0 if it is the draw, inf if it cannot be drawn.

    At the edge of top-k or top-p rounding decides who is in; the distribution is then taken on either side of the edge.
    """
    if sampling.greedy:
        row = logits.cpu().double().numpy()
        return 0.0 if int(row.argmax()) == token else float(row.max() - row[token])
    noise = gumbel_noise(sampling.seed, position, logits.shape[-1])
    gaps = []
    for place, distribution in enumerate(_distributions(logits, sampling, slack)):
        score = distribution + noise
        gap = float(score.max() - score[token]) * sampling.temperature if np.isfinite(score[token]) else math.inf
        gaps.append(gap if place == 0 else max(gap, AT_AN_EDGE))
    return min(gaps)


def _distributions(logits: torch.Tensor, sampling: Sampling, slack: float) -> list[np.ndarray]:
    """The distribution, then those with slightly more and fewer tokens where that is a matter of rounding."""
    others = []
    if sampling.top_p < 1:
        edge = max(TOP_P_EDGE, slack / 10)
        others += [{"top_p": top_p} for top_p in (sampling.top_p - edge, sampling.top_p + edge) if 0 < top_p <= 1]
    if 0 < sampling.top_k < logits.shape[-1]:
        last_in, first_out = logits.topk(sampling.top_k + 1).values[-2:].tolist()
        if last_in - first_out <= max(TOP_K_EDGE, slack):
            others += [{"top_k": top_k} for top_k in (sampling.top_k - 1, sampling.top_k + 1) if top_k]
    return [log_distribution(logits, sampling)] + [
        log_distribution(logits, replace(sampling, **other)) for other in others
    ]
