"""What a head is trained for: the target's next feature and, through its LM head, the target's next distribution.

EAGLE's objective (EAGLE, section 4.2: SmoothL1 on features and cross-entropy), summed over several draft steps with the
head's own features (HASS, section 3.2).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from eagle2.head import EagleHead
from eagle2.training.corpus import Batch
from eagle2.training.unroll import unroll


@dataclass(frozen=True)
class Weights:
    """token: of the cross-entropy; feature: of SmoothL1; decay: of each further draft step against the one before."""

    token: float = 1.0
    feature: float = 1.0
    decay: float = 0.8


@dataclass(frozen=True)
class Objective:
    """embedding float32 [V, hidden]; lm_head float32 [D, hidden]: the rows over which distributions are compared."""

    embedding: Tensor
    lm_head: Tensor
    weights: Weights = Weights()

    def loss(self, head: EagleHead, batch: Batch, steps: int, noise: float = 0.0) -> tuple[Tensor, list[float]]:
        """The loss to minimise, and the cross-entropy of each draft step in nats.

        noise: half width of the uniform noise on the true features the head reads (EAGLE, section 4.2).
        """
        inputs = batch.features[:, :-1]
        if noise:
            inputs = inputs + (torch.rand_like(inputs) * 2 - 1) * noise
        goal, weight = batch.features[:, 1:], batch.weight[:, 1:]
        with torch.no_grad():
            law = (goal @ self.lm_head.T).softmax(dim=-1)
        total, told = torch.zeros((), device=goal.device), []
        for step, guess in enumerate(unroll(head, self.embedding[batch.ids[:, 1:]], inputs, steps)):
            counted = _without_first(weight, step)
            log_p = (guess @ self.lm_head.T).log_softmax(dim=-1)
            token = _mean(-(law * log_p).sum(dim=-1), counted)
            feature = _mean(F.smooth_l1_loss(guess, goal, reduction="none").mean(dim=-1), counted)
            step_loss = self.weights.token * token + self.weights.feature * feature
            total = total + self.weights.decay**step * step_loss
            told.append(float(token.detach()))
        return total, told

    @torch.no_grad()
    def agreement(self, head: EagleHead, batch: Batch, steps: int) -> tuple[Tensor, Tensor]:
        """For each draft step: the weight of positions where head and target have the same first choice, and of all.

        Each float32 [steps]. Along the text: step s is conditional on the s - 1 before it having been right.
        """
        weight = batch.weight[:, 1:]
        first = (batch.features[:, 1:] @ self.lm_head.T).argmax(dim=-1)
        agreed, counted = [], []
        guesses = unroll(head, self.embedding[batch.ids[:, 1:]], batch.features[:, :-1], steps)
        for step, guess in enumerate(guesses):
            here = _without_first(weight, step)
            agreed.append((((guess @ self.lm_head.T).argmax(dim=-1) == first) * here).sum())
            counted.append(here.sum())
        return torch.stack(agreed), torch.stack(counted)


def _without_first(weight: Tensor, step: int) -> Tensor:
    """`weight` [B, T] without the rows that draft step `step` (0-based) has no guesses for."""
    counted = weight.clone()
    counted[:, :step] = 0
    return counted


def _mean(loss: Tensor, weight: Tensor) -> Tensor:
    return (loss * weight).sum() / weight.sum().clamp(min=1)
