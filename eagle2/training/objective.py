"""What a head is trained for: the target's next feature and, through its LM head, the target's next distribution.

EAGLE's objective (EAGLE, section 4.2: SmoothL1 on features and cross-entropy), summed over several draft steps with the
head's own features (HASS, section 3.2).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from eagle2.models.eagle_head import EagleHead
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
    """embedding and lm_head float32 [V, hidden]. common, rest: ids that together are the draft vocabulary.

    Distributions are compared over the common ids, those in the batch, and a random sample of the rest, half as many as
    the common ones and new for each batch: a third of the rows, and still every token is pushed down at times.
    """

    embedding: Tensor
    lm_head: Tensor
    common: Tensor
    rest: Tensor
    weights: Weights = Weights()

    def loss(self, head: EagleHead, batch: Batch, steps: int, noise: float = 0.0) -> tuple[Tensor, list[float]]:
        """The loss to minimise, and the cross-entropy of each draft step in nats.

        noise: half width of the uniform noise on the true features the head reads (EAGLE, section 4.2).
        """
        inputs = batch.features[:, :-1]
        if noise:
            drawn = torch.rand(inputs.shape, generator=_draws(batch)).to(inputs)
            inputs = inputs + (drawn * 2 - 1) * noise
        first = batch.first_row(steps)
        weight = batch.weight[:, first + 1 :]
        learnt = weight > 0
        goal, rows = batch.features[:, first + 1 :][learnt], self.lm_head[self.compared(batch)]
        with torch.no_grad():
            distribution = (goal @ rows.T).softmax(dim=-1)
        total, told = torch.zeros((), device=goal.device), []
        for step, guess in enumerate(unroll(head, self.embedding[batch.ids[:, 1:]], inputs, steps, first)):
            counted, guess = _without_first(weight, step)[learnt], guess[learnt]
            log_p = (guess @ rows.T).log_softmax(dim=-1)
            token = _mean(-(distribution * log_p).sum(dim=-1), counted)
            feature = _mean(F.smooth_l1_loss(guess, goal, reduction="none").mean(dim=-1), counted)
            step_loss = self.weights.token * token + self.weights.feature * feature
            total = total + self.weights.decay**step * step_loss
            told.append(float(token.detach()))
        return total, told

    def compared(self, batch: Batch) -> Tensor:
        """The ids that distributions over this batch are compared over, ascending."""
        few = torch.randperm(len(self.rest), generator=_draws(batch))[: len(self.common) // 2].to(self.rest.device)
        return torch.cat([self.common, self.rest[few], batch.ids[batch.weight > 0]]).unique()

    @torch.no_grad()
    def agreement(self, head: EagleHead, batch: Batch, steps: int) -> tuple[Tensor, Tensor]:
        """For each draft step: the weight of positions where head and target have the same first choice of the draft
        vocabulary, and of all.

        Each float32 [steps]. Along the text: step s is conditional on the s - 1 before it having been right.
        """
        first = batch.first_row(steps)
        weight = batch.weight[:, first + 1 :]
        learnt = weight > 0
        rows = self.lm_head[torch.cat([self.common, self.rest])]
        choice = (batch.features[:, first + 1 :][learnt] @ rows.T).argmax(dim=-1)
        agreed, counted = [], []
        guesses = unroll(head, self.embedding[batch.ids[:, 1:]], batch.features[:, :-1], steps, first)
        for step, guess in enumerate(guesses):
            here = _without_first(weight, step)[learnt]
            agreed.append((((guess[learnt] @ rows.T).argmax(dim=-1) == choice) * here).sum())
            counted.append(here.sum())
        return torch.stack(agreed), torch.stack(counted)


def _draws(batch: Batch) -> torch.Generator:
    """Random numbers determined by the batch, so that a resumed run continues exactly as it would have."""
    return torch.Generator().manual_seed(int(batch.ids.sum()))


def _without_first(weight: Tensor, step: int) -> Tensor:
    """`weight` [B, T] without the rows that draft step `step` (0-based) has no guesses for."""
    counted = weight.clone()
    counted[:, :step] = 0
    return counted


def _mean(loss: Tensor, weight: Tensor) -> Tensor:
    return (loss * weight).sum() / weight.sum().clamp(min=1)
