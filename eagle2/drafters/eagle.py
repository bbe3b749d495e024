"""The EAGLE and EAGLE-3 heads as drafters: they guess features, and tokens from those (EAGLE, section 4.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from eagle2.decoding.policy import Policy
from eagle2.decoding.tree import Pool
from eagle2.drafters.base import grow_tree
from eagle2.models import cpu_linear
from eagle2.models.eagle3_head import Eagle3Head
from eagle2.models.eagle_head import EagleHead
from eagle2.models.kv_cache import KeyValueRows
from eagle2.models.target import Target
from eagle2.progress import Watch, unwatched

CHUNK = 512
"""Rows of a prompt that the head reads in one pass: bounds the mask's and the attention's memory."""


class EagleDrafter:
    """An EAGLE head with its target's embeddings and LM head, or its own where it brings some.

    draft_ids: the target's ids of the tokens it can propose, int64 [D] ascending, None for all. Of the LM head only
    their rows are computed, so confidences are shares of these tokens alone. Raises ValueError for a target that does
    not hand out the features the head takes.
    """

    def __init__(self, target: Target, head: EagleHead | Eagle3Head) -> None:
        if target.states != head.states:
            raise ValueError(
                f"the head takes hidden states {head.states} of its target, which hands out {target.states}; "
                "give it target.handing_out(head.states)"
            )
        self.target = target
        self.head = head.eval()
        self.draft_ids = head.draft_ids
        if head.lm_head is not None:
            self.lm_head = head.lm_head
        else:
            self.lm_head = target.lm_head if self.draft_ids is None else target.lm_head_over(self.draft_ids)
        self.vocabulary = target.vocab_size if self.draft_ids is None else len(self.draft_ids)
        if target.device.type == "mps" and self.draft_ids is not None:
            self.draft_ids = self.draft_ids.cpu()  # where `log_probs` are

    @property
    def device(self) -> torch.device:
        return next(self.head.parameters()).device

    def near(self, visible: Tensor, positions: Tensor, keys: Tensor) -> Tensor:
        """visible bool [T, S] within the head's window: rows at `positions` [T], keys at positions `keys` [S]."""
        window = self.head.layer.window
        return visible if window is None else visible & (positions[:, None] - keys[None, :] < window)

    def choose_products(self, watch: Watch = unwatched) -> None:
        """Multiply in the order that is faster on this CPU, also in the LM head it uses."""
        cpu_linear.choose_products(self.head, watch)
        if self.head.lm_head is not None:
            self.lm_head = self.head.lm_head
        elif self.draft_ids is not None:  # a copy of some of the target's rows
            self.lm_head = cpu_linear.faster(self.lm_head)

    def begin(self, first: int) -> EagleDraft:  # no feature lies before the first id, so no pair holds it
        return EagleDraft(self)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings [..., hidden] of ids [...], from the head's own table or the target's, where the head lies."""
        embed = self.head.embed_tokens if self.head.config.own_embeddings else self.target.embed
        return embed(tokens).to(self.device)

    def log_probs(self, features: Tensor) -> Tensor:
        """The draft's distribution float32 [T, D] after features [T, hidden]: always at temperature 1.

        On MPS it comes back to the CPU, whose sorts are stable and whose integers have 64 bits; so does the pool.
        """
        log_probs = self.lm_head(self.head.before_lm_head(features)).float().log_softmax(dim=-1)
        return log_probs.cpu() if log_probs.device.type == "mps" else log_probs


class EagleDraft:
    """One run's draft cache: a row for each pair (embedding of token i + 1, the *target's* feature of token i).

    With N tokens committed, the root included, it holds N - 1 rows. Rows that `grow` adds are computed from guessed
    features; they are dropped before it returns, so nothing guessed outlives a round.
    """

    def __init__(self, drafter: EagleDrafter) -> None:
        self._drafter = drafter
        self.cache = KeyValueRows()
        self._feature: Tensor | None = None  # [1, hidden]: the head's guess for the root's feature

    @torch.inference_mode()
    def extend(self, tokens: Tensor, features: Tensor) -> None:
        head, device = self._drafter.head, self._drafter.device
        for ids, fresh in zip(tokens.to(device).split(CHUNK), features.to(device).split(CHUNK), strict=True):
            past, new = self.cache.length, len(ids)
            positions = torch.arange(past, past + new, device=device)
            visible = torch.ones(new, past + new, dtype=torch.bool, device=device).tril(past)
            visible = self._drafter.near(visible, positions, torch.arange(past + new, device=device))
            predicted = head(self._drafter.embed(ids), head.fuse(fresh), positions, self.cache, visible)
        self._feature = predicted[-1:]

    @torch.inference_mode()
    def grow(self, policy: Policy, depth: int) -> Pool:
        committed = self.cache.length
        features = self._feature  # [r, hidden] of the rows fed last, now the root's
        visible = torch.ones(1, committed, dtype=torch.bool, device=features.device)  # [r, cached]: what they attend to
        keys = torch.arange(committed, device=features.device)  # [cached]: positions of the cached rows

        def expand(pool: Pool, nodes: Tensor, rows: Tensor) -> Tensor:
            nonlocal features, visible, keys
            nodes, rows = nodes.to(pool.token.device), rows.to(features.device)
            own = torch.eye(len(nodes), dtype=torch.bool, device=features.device)
            visible = torch.cat([visible[rows], own], dim=1)
            positions = (pool.depth[nodes] + (committed - 1)).to(features.device)
            embeddings = self._drafter.embed(pool.token[nodes])
            keys = torch.cat([keys, positions])
            seen = self._drafter.near(visible, positions, keys)
            features = self._drafter.head(embeddings, features[rows], positions, self.cache, seen)
            return self._drafter.log_probs(features)

        pool = grow_tree(policy, depth, self._drafter.log_probs(features), expand, self._drafter.draft_ids)
        self.cache.truncate(committed)
        return pool
