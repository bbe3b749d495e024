"""An independent draft model: any smaller causal LM with the target's tokenizer (paper, sections 2.1 and 5, "SpS").

It reads tokens, never the target's features, and grows whatever tree a policy asks for out of its likeliest tokens, as
every other drafter does. It can also sample a chain from its own distribution, as classic speculative sampling does
(method "sps" above temperature 0); `verify.py` has the two ways of verifying.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from eagle2.decoding.policy import Policy
from eagle2.decoding.sampling import DRAFT, distribution, draw_from
from eagle2.decoding.tree import Pool
from eagle2.drafters.base import grow_tree
from eagle2.models.target import Target
from eagle2.settings import Sampling


class IndependentDrafter:
    """A causal LM that proposes tokens for `target`.

    Models often pad their vocabularies differently: only ids that both know are proposed.
    """

    def __init__(self, model: Target, target: Target) -> None:
        self.model = model
        self.vocabulary = min(model.vocab_size, target.vocab_size)

    def begin(self, first: int) -> IndependentDraft:
        return IndependentDraft(self, first)

    def log_probs(self, logits: Tensor) -> Tensor:
        """The draft's distribution float32 [T, vocabulary] from logits [T, V], at temperature 1."""
        log_probs = logits[:, : self.vocabulary].log_softmax(dim=-1)
        return log_probs.cpu() if log_probs.device.type == "mps" else log_probs  # as in draft.py


class IndependentDraft:
    """One run's draft cache: between rounds it holds committed tokens only, at most all but the root."""

    def __init__(self, drafter: IndependentDrafter, first: int) -> None:
        self._drafter = drafter
        self._cache = drafter.model.begin()
        self._unread = [first]  # committed tokens that the model has not been fed; the root comes last
        self._logits: Tensor | None = None  # [V], after the last token fed: the root's

    def extend(self, tokens: Tensor, features: Tensor) -> None:
        self._unread += tokens.tolist()

    @torch.inference_mode()
    def grow(self, policy: Policy, depth: int) -> Pool:
        """As `Draft.grow`; empty once the text outgrows the draft model's own context."""
        model, cache = self._drafter.model, self._cache
        depth = self._read(depth)
        if depth == 0:
            return Pool.empty(model.device)
        committed = cache.length
        visible = torch.zeros(1, 0, dtype=torch.bool, device=model.device)  # [r, waiting]: drafted rows they attend to

        def expand(pool: Pool, nodes: Tensor, rows: Tensor) -> Tensor:
            nonlocal visible
            nodes = nodes.to(pool.token.device)
            own = torch.eye(len(nodes), dtype=torch.bool, device=model.device)
            visible = torch.cat([visible[rows.to(model.device)], own], dim=1)
            positions = (pool.depth[nodes] + (committed - 1)).to(model.device)
            logits, _ = model.verify(cache, pool.token[nodes].to(model.device), positions, visible)
            return self._drafter.log_probs(logits)

        pool = grow_tree(policy, depth, self._drafter.log_probs(self._logits[None]), expand)
        model.commit(cache, torch.empty(0, dtype=torch.int64, device=model.device))  # drafted rows go
        return pool

    @torch.inference_mode()
    def sample(self, depth: int, sampling: Sampling) -> tuple[Pool, list[np.ndarray]]:
        """A chain of `depth` tokens sampled from the model under `sampling`, and the distribution of each of them.

        Distributions are float64 [vocabulary]; draws are keyed by (seed, position). Confidences are those of
        temperature 1, as everywhere. The chain is shorter, or empty, where the draft model's own context ends.
        """
        model, cache, vocabulary = self._drafter.model, self._cache, self._drafter.vocabulary
        pool, distributions = Pool.empty(), []
        depth = self._read(depth)
        committed, logits = cache.length, self._logits
        for level in range(depth):
            distributions.append(distribution(logits[:vocabulary], sampling, "the draft model", committed + level))
            token = draw_from(distributions[-1], sampling.seed, committed + level, DRAFT)
            log_confidence = self._drafter.log_probs(logits[None])[:, token].cpu()
            pool = pool.grow(torch.tensor([level - 1]), torch.tensor([token]), log_confidence)  # the first's is ROOT
            if level + 1 < depth:
                fed = torch.tensor([token], device=model.device)
                seen = torch.ones(1, level + 1, dtype=torch.bool, device=model.device)
                logits = model.verify(cache, fed, torch.full_like(fed, committed + level), seen)[0][0]
        model.commit(cache, torch.empty(0, dtype=torch.int64, device=model.device))  # drafted rows go
        return pool, distributions

    def _read(self, depth: int) -> int:
        """Feed what is unread, unless the text outgrows the model's context; how many levels of `depth` fit there."""
        model = self._drafter.model
        depth = min(depth, model.depth_limit(self._cache.length + len(self._unread)))
        if depth and self._unread:
            # An id beyond the draft model's vocabulary can only be one of the target's padding rows; any stand-in does.
            _, self._logits = model.extend(self._cache, [min(token, model.vocab_size - 1) for token in self._unread])
            self._unread = []
        return depth
