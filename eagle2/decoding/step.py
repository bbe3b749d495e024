"""One round: prefill if need be, grow, keep, verify, walk, commit (paper, section 4). Ids and tensors; no text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eagle2.decoding import record as recorder
from eagle2.decoding import tree
from eagle2.decoding.cache_pool import LiveCaches
from eagle2.decoding.clock import Clock
from eagle2.decoding.plain import Output
from eagle2.decoding.policy import Policy
from eagle2.decoding.sampling import ACCEPTANCE, RESIDUAL, distribution, draw_from, drawer, stream
from eagle2.decoding.verify import Walk, accept_or_replace, walk
from eagle2.drafters.base import Draft, Drafter
from eagle2.methods import REJECTION, WALK
from eagle2.models.target import Target, TargetCache
from eagle2.settings import Sampling
from eagle2.trace.rounds import Round


@dataclass
class Caches:
    """fresh: committed tokens int64 [n] new to the drafter, and the features [n, hidden] before them.

    root: the last committed token.
    """

    target: TargetCache
    draft: Draft | None
    fresh: tuple[Tensor, Tensor]
    root: int


@dataclass(eq=False)
class Run:
    """What one run was asked for and has committed. Its caches live in the engine, where they may be dropped."""

    prompt: list[int]
    sampling: Sampling
    policy: Policy | None
    drafter: Drafter | None
    output: Output
    record: bool
    rule: str = WALK
    index: int = 0

    @property
    def ids(self) -> list[int]:
        return self.prompt + self.output.new


@dataclass
class Stepper:
    """Takes runs forward, one round a call. live: the caches of the runs under way."""

    target: Target
    live: LiveCaches

    @torch.inference_mode()
    def step(self, run: Run) -> Round:
        """One round: prefill if need be, grow and keep, verify, walk, commit."""
        clock = Clock(self.target.device)
        caches = self.live.get(run) or self._prefill(run)
        root = caches.root
        clock.lap("prefill")
        if run.output.finish is not None:  # the token drawn from the prefill has ended the run
            return self._finished_by_prefill(run, root, clock)

        committed = len(run.ids)  # the root included; the caches hold one token less
        if caches.draft is not None:
            caches.draft.extend(*caches.fresh)
        depth = min(run.policy.shape.depth, self.target.depth_limit(committed)) if run.policy else 0
        distributions: list[np.ndarray] = []  # of a sampled chain's tokens, what they were drawn from
        if depth and run.rule == REJECTION:
            pool, distributions = caches.draft.sample(depth, run.sampling)
        else:
            pool = caches.draft.grow(run.policy, depth) if depth else tree.Pool.empty(self.target.device)
        pool = pool.within(self.target.vocab_size)
        kept = run.policy.keep(pool) if depth else pool.parent
        flat = tree.flatten(pool, kept.to(pool.parent.device))
        clock.lap("draft")

        logits, features = self._verify(caches.target, root, flat, committed - 1)
        tokens, parents, depths, nodes = flat.lists()
        positions = [committed + depth for depth in depths]
        if run.rule == REJECTION:
            verdict = _speculative(tokens, distributions[: len(kept)], logits, run.sampling, positions)
        else:
            verdict = walk(tokens, parents, drawer(logits, run.sampling, positions))
        clock.lap("verify")

        run.output.admit(verdict.tokens)
        if run.output.finish is None:
            slots = torch.tensor([0, *verdict.slots], device=self.target.device)
            self.target.commit(caches.target, slots)
            caches.fresh = (torch.tensor(verdict.tokens, device=features.device), features[slots.to(features.device)])
            caches.root = verdict.tokens[-1]
            self.live.put(run, caches)
        else:
            self.live.drop(run)

        first = run.index == 0
        new = run.output.take()
        accepted = tuple(nodes[slot - 1] for slot in verdict.slots)
        columns = {}
        if run.record:
            fates = recorder.path_fates(accepted, len(new) - first)
            columns = recorder.node_columns(pool, flat, logits, fates)
            columns["checks"] = recorder.checks(verdict, accepted, logits)
        run.index += 1
        clock.lap("rest")
        return Round(
            index=run.index - 1,
            prefix_length=committed - 1,
            root=root,
            accepted=accepted,
            bonus=verdict.tokens[-1],
            committed=new,
            finish=run.output.finish,
            drafted=len(pool),
            kept=len(kept),
            rule=run.rule,
            **columns,
            **clock.spent_ms,
        )

    def _prefill(self, run: Run) -> Caches:
        """Caches of all committed tokens but the last; a new run also draws its first token here."""
        cache = self.target.begin()
        features, logits = self.target.extend(cache, run.prompt)
        if run.index == 0:
            token = drawer(logits[None], run.sampling, [cache.length])(0).token
            run.output.admit([token])
            following = [*run.prompt[1:], token]
        else:
            following = run.ids[1:]
            if len(run.output.new) > 1:
                features = torch.cat([features, self.target.extend(cache, run.output.new[:-1])[0]])
        draft = run.drafter.begin(run.prompt[0]) if run.policy else None
        return Caches(cache, draft, (torch.tensor(following, device=features.device), features), following[-1])

    def _verify(self, cache: TargetCache, root: int, flat: tree.Flat, root_position: int) -> tuple[Tensor, Tensor]:
        device = self.target.device
        tokens = torch.cat([torch.tensor([root], device=device), flat.token.to(device)])
        return self.target.verify(cache, tokens, flat.positions(root_position).to(device), flat.visible.to(device))

    def _finished_by_prefill(self, run: Run, root: int, clock: Clock) -> Round:
        run.index += 1
        return Round(
            index=0,
            prefix_length=len(run.prompt),
            root=root,
            accepted=(),
            bonus=None,
            committed=run.output.take(),
            finish=run.output.finish,
            rule=run.rule,
            **clock.spent_ms,
        )


def _speculative(
    tokens: list[int], distributions: list[np.ndarray], logits: Tensor, sampling: Sampling, positions: list[int]
) -> Walk:
    """Rejection sampling of a sampled chain, its random numbers keyed by (seed, position, purpose)."""
    seed = sampling.seed
    return accept_or_replace(
        tokens,
        distributions,
        distribution_at=lambda row: distribution(logits[row], sampling, "the target", positions[row]),
        number_at=lambda row: stream(seed, positions[row], ACCEPTANCE).random(),
        draw_at=lambda row, rest: draw_from(rest, seed, positions[row], RESIDUAL),
    )
