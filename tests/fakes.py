"""Scripted targets and drafters over a handful of tokens, small enough to enumerate.

A script is a function from all tokens so far (the first prompt token left out: a drafter never sees it) to a
probability for each token. The scripted target reads each row's path off mask and positions, as a model would, so a
wrong mask or a wrong commit shows up as wrong tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import Policy
from eagle2.decoding.sampling import DRAFT, distribution, draw_from
from eagle2.decoding.tree import Pool
from eagle2.drafters.base import grow_tree
from eagle2.settings import Sampling

Script = Callable[[tuple[int, ...]], Sequence[float]]


class ScriptedCache:
    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.verified: list[int] = []

    @property
    def length(self) -> int:
        return len(self.tokens)


class ScriptedTarget:
    """What `Engine` needs of a target; counts its passes."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(
        self, script: Script, vocab_size: int, context_limit: int = 10_000, end_ids: Sequence[int] = ()
    ) -> None:
        self.script = script
        self.vocab_size = vocab_size
        self.context_limit = context_limit
        self.end_ids = frozenset(end_ids)
        self.passes = 0
        self.fed: list[list[int]] = []

    def begin(self) -> ScriptedCache:
        return ScriptedCache()

    def depth_limit(self, committed: int) -> int:
        return max(0, self.context_limit - committed - 1)

    def extend(self, cache: ScriptedCache, ids: list[int]) -> tuple[Tensor, Tensor]:
        self.fed.append(list(ids))
        cache.tokens += ids
        return torch.zeros(len(ids), 1), self._logits(tuple(cache.tokens))

    def verify(self, cache: ScriptedCache, tokens: Tensor, positions: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        self.passes += 1
        cache.verified = tokens.tolist()
        rows = []
        for row in range(len(tokens)):
            seen = visible[row].nonzero().flatten()
            seen = seen[positions[seen].argsort()]
            assert positions[seen].tolist() == list(range(cache.length, cache.length + len(seen)))
            rows.append(self._logits((*cache.tokens, *tokens[seen].tolist())))
        return torch.stack(rows), torch.zeros(len(tokens), 1)

    def commit(self, cache: ScriptedCache, slots: Tensor) -> None:
        cache.tokens += [cache.verified[slot] for slot in slots.tolist()]

    def _logits(self, tokens: tuple[int, ...]) -> Tensor:
        return torch.tensor(self.script(tokens[1:]), dtype=torch.float64).log().float()


class ScriptedDrafter:
    """Proposes by a script of its own."""

    def __init__(self, script: Script, vocabulary: int) -> None:
        self.script = script
        self.vocabulary = vocabulary

    def begin(self, first: int) -> ScriptedDraft:
        return ScriptedDraft(self.script)


class ScriptedDraft:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.tokens: tuple[int, ...] = ()

    def extend(self, tokens: Tensor, features: Tensor) -> None:
        assert len(tokens) == len(features)
        self.tokens += tuple(tokens.tolist())

    def grow(self, policy: Policy, depth: int) -> Pool:
        def distribution_after(pool: Pool, node: int) -> Tensor:
            path: list[int] = []
            while node >= 0:
                path.insert(0, int(pool.token[node]))
                node = int(pool.parent[node])
            return torch.tensor(self.script((*self.tokens, *path)), dtype=torch.float64).log().float()

        def expand(pool: Pool, nodes: Tensor, rows: Tensor) -> Tensor:
            return torch.stack([distribution_after(pool, node) for node in nodes.tolist()])

        return grow_tree(policy, depth, distribution_after(Pool.empty(), -1)[None], expand)

    def sample(self, depth: int, sampling: Sampling) -> tuple[Pool, list[np.ndarray]]:
        pool, distributions, path = Pool.empty(), [], ()
        for level in range(depth):
            log_q = torch.tensor(self.script((*self.tokens, *path)), dtype=torch.float64).log().float()
            distributions.append(distribution(log_q, sampling, "the draft", level))
            position = 1 + len(self.tokens) + level  # the first prompt token is not among `tokens`
            path += (draw_from(distributions[-1], sampling.seed, position, DRAFT),)
            pool = pool.grow(torch.tensor([level - 1]), torch.tensor(path[-1:]), log_q[list(path[-1:])])
        return pool, distributions


def counting(vocabulary: int, sure: float = 0.9) -> Script:
    """After a token t the next is t + 1 (mod vocabulary) with probability `sure`; the others share the rest."""

    def script(tokens: tuple[int, ...]) -> list[float]:
        following = (tokens[-1] + 1) % vocabulary if tokens else 0
        rest = (1 - sure) / (vocabulary - 1)
        return [sure if token == following else rest for token in range(vocabulary)]

    return script


def backwards(vocabulary: int) -> Script:
    """Always certain, always wrong about `counting`: after t comes t - 1."""

    def script(tokens: tuple[int, ...]) -> list[float]:
        following = (tokens[-1] - 1) % vocabulary if tokens else 0
        return [0.97 if token == following else 0.03 / (vocabulary - 1) for token in range(vocabulary)]

    return script


def wavering(vocabulary: int, right: Script, wrong: Script, every: int) -> Script:
    """Follows `right`, except at every `every`-th position."""

    def script(tokens: tuple[int, ...]) -> Sequence[float]:
        return wrong(tokens) if len(tokens) % every == 0 else right(tokens)

    return script


def hashed(vocabulary: int, salt: int) -> Script:
    """An arbitrary distribution that depends on the last three tokens: drafts can be partly right about it."""

    def script(tokens: tuple[int, ...]) -> list[float]:
        state = salt
        for token in tokens[-3:]:
            state = (state * 31 + token + 7) % 1009
        weights = [1 + (state * (token + 3) * 17) % 23 for token in range(vocabulary)]
        return [weight / sum(weights) for weight in weights]

    return script


def likelihood(script: Script, text: Sequence[int], after: tuple[int, ...] = (0,)) -> float:
    """The probability that a script's distribution gives a whole text behind `after`."""
    tokens, p = after, 1.0
    for token in text:
        p *= script(tokens)[token]
        tokens = (*tokens, token)
    return p


def scripted_engine(draft=None, target=None, live_runs=4, **options):
    target = ScriptedTarget(target or counting(10), 10, **options)
    drafter = ScriptedDrafter(draft or counting(10), 10)
    return Engine(target, drafter, live_runs=live_runs, draft_model=drafter)


def committed(rounds):
    return [token for r in rounds for token in r.committed]
