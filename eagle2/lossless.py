"""Is a text what plain decoding would have written? Teacher-forced, position by position, with rounding told apart.

Tree passes and single-row passes multiply in another order, so at half precision, or where two tokens are all but
equally good, the two can differ without a fault. Each token is therefore scored where plain decoding would have drawn
it: it agrees if it is the choice there, or within rounding of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eagle2.config import Sampling
from eagle2.sampling import gumbel_noise, log_law
from eagle2.target import Target

ROUNDING = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1.5e-1}
"""How far two ways of computing one logit may lie apart, by dtype, in units of logits."""
TOP_P_EDGE, TOP_K_EDGE = 1e-5, 1e-4
AT_AN_EDGE = 1e-9
"""The gap of a token that is the draw only if rounding lets it in at the edge of top-k or top-p: small, not zero."""


@dataclass(frozen=True)
class Verdict:
    """positions: tokens checked. differing: places (from 0) where plain decoding chooses otherwise, rounding aside.

    near_ties: places where it chooses otherwise within rounding; gaps: by how much, in logits, for each of them.
    plain_ms: what plain decoding of these tokens took, the prefill left out.
    """

    positions: int
    differing: tuple[int, ...]
    near_ties: tuple[int, ...]
    gaps: tuple[float, ...]
    plain_ms: float

    @property
    def lossless(self) -> bool:
        return not self.differing


@torch.inference_mode()
def check(target: Target, prompt: Sequence[int], new_ids: Sequence[int], sampling: Sampling) -> Verdict:
    """Decode `new_ids` after `prompt` plainly, one pass a token, and compare what would have been drawn each time."""
    cache = target.begin()
    _, logits = target.extend(cache, list(prompt))
    differing, near, gaps, plain_ms = [], [], [], 0.0
    slack = ROUNDING.get(target.dtype, 1e-4)
    for place, token in enumerate(new_ids):
        start = time.perf_counter()
        gap = shortfall(logits, token, sampling, len(prompt) + place, slack)
        if gap > slack:
            differing.append(place)
        elif gap > 0:
            near.append(place)
            gaps.append(gap)
        if place + 1 < len(new_ids):
            _, logits = target.extend(cache, [token])
            plain_ms += 1e3 * (time.perf_counter() - start)
    return Verdict(len(new_ids), tuple(differing), tuple(near), tuple(gaps), plain_ms)


def shortfall(logits: torch.Tensor, token: int, sampling: Sampling, position: int, slack: float) -> float:
    """By how many logits `token` misses being the draw at `position`: 0 if it is the draw, inf if it cannot be drawn.

    At the edge of top-k or top-p rounding decides who is in; the law is then taken on either side of the edge.
    """
    if sampling.greedy:
        row = logits.double().cpu().numpy()
        return 0.0 if int(row.argmax()) == token else float(row.max() - row[token])
    noise = gumbel_noise(sampling.seed, position, logits.shape[-1])
    gaps = []
    for place, law in enumerate(_laws(logits, sampling, slack)):
        score = law + noise
        gap = float(score.max() - score[token]) * sampling.temperature if np.isfinite(score[token]) else math.inf
        gaps.append(gap if place == 0 else max(gap, AT_AN_EDGE))
    return min(gaps)


def _laws(logits: torch.Tensor, sampling: Sampling, slack: float) -> list[np.ndarray]:
    """The law, then the laws with slightly more and fewer tokens where that is a matter of rounding."""
    others = []
    if sampling.top_p < 1:
        edge = max(TOP_P_EDGE, slack / 10)
        others += [{"top_p": top_p} for top_p in (sampling.top_p - edge, sampling.top_p + edge) if 0 < top_p <= 1]
    if 0 < sampling.top_k < logits.shape[-1]:
        last_in, first_out = logits.topk(sampling.top_k + 1).values[-2:].tolist()
        if last_in - first_out <= max(TOP_K_EDGE, slack):
            others += [{"top_k": top_k} for top_k in (sampling.top_k - 1, sampling.top_k + 1) if top_k]
    return [log_law(logits, sampling)] + [log_law(logits, replace(sampling, **other)) for other in others]
