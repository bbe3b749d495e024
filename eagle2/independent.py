"""An independent draft model: any smaller causal LM with the target's tokenizer (paper, sections 2.1 and 5, "SpS").

It reads tokens, never the target's features, and grows whatever tree a policy asks for; with method "sps" that is the
chain of classic speculative decoding. It drafts its likeliest tokens at every temperature, and the walk verifies them
by the target's own keyed draws, so its output equals plain decoding's token by token, as with every other drafter.
"""

from __future__ import annotations

import torch
from torch import Tensor

from eagle2.draft import grow_tree
from eagle2.policy import Policy
from eagle2.target import Target
from eagle2.tree import Pool


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
        committed = cache.length + len(self._unread)
        depth = min(depth, model.depth_limit(committed))
        if depth == 0:
            return Pool.empty(model.device)
        if self._unread:
            # An id beyond the draft model's vocabulary can only be one of the target's padding rows; any stand-in does.
            _, self._logits = model.extend(cache, [min(token, model.vocab_size - 1) for token in self._unread])
            self._unread = []
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
