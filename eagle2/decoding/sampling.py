"""Logits -> the target's distribution -> a draw keyed by (seed, position). Pure; knows no model and no tree.

Keyed noise makes tree decoding and plain decoding draw the *same* tokens: what is drawn at a position depends on the
seed, the position and the distribution there, and on nothing that ran before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from eagle2.settings import Sampling

DRAFT, ACCEPTANCE, RESIDUAL = 1, 2, 3
"""Purposes of the random streams that classic speculative sampling needs beside the plain draw's, which has none."""


class Draw(NamedTuple):
    """A token and its probability under the target's distribution there (1.0 for a greedy choice).

    chance: with what probability the drafted token tested there was accepted; None where none was tested.
    """

    token: int
    probability: float
    chance: float | None = None


def log_distribution(logits: Tensor, sampling: Sampling) -> np.ndarray:
    """Log-probabilities float64 [V] of the distribution, -inf for removed tokens. logits: [V], temperature above 0.

    Temperature, then top-k (ties with the k-th stay), then the smallest set of the likeliest whose mass reaches top-p,
    then renormalised: the boundaries of transformers' logits processors.
    """
    scores = logits.detach().cpu().double().numpy()  # in this order: MPS has no float64
    with np.errstate(over="ignore"):  # at tiny temperatures all but the best go to -inf, which is their limit
        scores = (scores - scores.max()) / sampling.temperature
    if 0 < sampling.top_k < len(scores):
        kth = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores = np.where(scores >= kth, scores, -np.inf)
    if sampling.top_p < 1:
        order = np.argsort(-scores, kind="stable")  # among equals the lower id stays
        mass = np.exp(_normalised(scores)[order])
        above = np.cumsum(mass) - mass
        scores[order[above >= sampling.top_p]] = -np.inf
    return _normalised(scores)


def _normalised(scores: np.ndarray) -> np.ndarray:
    """Scores [V] whose highest is 0, less the logarithm of their summed exponentials."""
    return scores - np.log(np.exp(scores).sum())


def stream(seed: int, position: int, *purpose: int) -> np.random.Generator:
    """The random numbers of one position (prompt included), the same whenever and wherever they are asked for."""
    return np.random.default_rng(np.random.SeedSequence([seed, position, *purpose]))


def gumbel_noise(seed: int, position: int, size: int, *purpose: int) -> np.ndarray:
    """Gumbel noise float64 [size] of one position."""
    return stream(seed, position, *purpose).gumbel(size=size)


def draw_from(distribution: np.ndarray, seed: int, position: int, *purpose: int) -> int:
    """A token drawn from probabilities float64 [V] by the position's noise."""
    with np.errstate(divide="ignore"):
        return int(np.argmax(np.log(distribution) + gumbel_noise(seed, position, len(distribution), *purpose)))


def drawer(logits: Tensor, sampling: Sampling, positions: Sequence[int]) -> Callable[[int], Draw]:
    """A function that draws the token after any row of `logits` [T, V]; `positions` [T] are those of the drawn tokens.

    The draw is argmax(log p + Gumbel noise), argmax alone if greedy (among equals the lower id). One transfer serves
    all greedy rows; a sampled row is worked out when asked for. Drawing raises FloatingPointError where a row's logits
    hold no number to choose by.
    """
    best = logits.max(dim=-1)
    highest, choice = torch.stack([best.values, best.indices.to(logits.dtype)]).tolist()  # ids are exact in float32

    def draw_at(row: int) -> Draw:
        check_finite(highest[row], "the target", positions[row])
        if sampling.greedy:
            return Draw(int(choice[row]), 1.0)
        log_p = log_distribution(logits[row], sampling)
        token = int(np.argmax(log_p + gumbel_noise(sampling.seed, positions[row], len(log_p))))
        return Draw(token, float(np.exp(log_p[token])))

    return draw_at


def distribution(logits: Tensor, sampling: Sampling, whose: str, position: int) -> np.ndarray:
    """The probabilities float64 [V] that one row of logits [V] gives the token at `position`; temperature above 0.

    whose: "the target" or "the draft model", for the FloatingPointError where the logits hold no number to choose by.
    """
    check_finite(float(logits.max()), whose, position)
    return np.exp(log_distribution(logits, sampling))


def check_finite(highest: float, whose: str, position: int) -> None:
    """Raise FloatingPointError for logits whose `highest` is no number to choose by."""
    if not math.isfinite(highest):
        raise FloatingPointError(
            f"{whose}'s logits for position {position} are not finite (highest: {highest}); "
            "try another dtype: float32, or bfloat16 instead of float16"
        )
