"""Which draft tokens a tree has: EAGLE-2's dynamic trees, its ablations, EAGLE's static tree, a chain.

A policy answers two questions over a `Pool` and knows no model: which nodes to expand next (paper, section 4.1), and
which of all drafted nodes to keep (section 4.2). It never touches verification, so none can change the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from eagle2.decoding.budget import Costs, best_budget, rows_fed, width
from eagle2.decoding.tree import Pool, best
from eagle2.methods import STATIC, method
from eagle2.settings import TreeShape, effective_shape
from eagle2.tree_paths import Paths, as_paths, checked


class Policy(Protocol):
    """How a tree is grown and cut. `shape` is what it can reach at most, after clamping."""

    name: str
    shape: TreeShape

    def width(self, depth: int) -> int:
        """How many children an expanded node gets in level `depth` (1-based), at most."""

    def expand(self, pool: Pool) -> Tensor:
        """Pool indices of the newest level's nodes to feed to the drafter, in the order of expansion; none: no more
        levels."""

    def children(self, depth: int) -> Tensor | None:
        """Places (parent's place x width + rank) of the children that enter level `depth`; None: all of them."""

    def keep(self, pool: Pool) -> Tensor:
        """Pool indices of the nodes to verify, ascending, each one's parent among them."""


@dataclass(frozen=True)
class Dynamic:
    """EAGLE-2 (by_value and rerank), or one of its ablations.

    by_value: expand the nodes of highest value; otherwise those of highest confidence. rerank: keep the `max_nodes` of
    highest value of the whole pool; otherwise the `top_k` best of every level, the last included. The paper publishes
    no exact procedure for its ablations (table 3): these are ours.
    """

    name: str
    shape: TreeShape
    by_value: bool = True
    rerank: bool = True

    def width(self, depth: int) -> int:
        return self.shape.top_k

    def children(self, depth: int) -> None:
        return None

    def expand(self, pool: Pool) -> Tensor:
        return pool.level + best(self._score(pool)[pool.level :], self.shape.top_k)

    def keep(self, pool: Pool) -> Tensor:
        if self.rerank:
            return best(pool.log_value, self.shape.max_nodes).sort().values
        # Every level but the last was cut to `top_k` when it was expanded.
        return torch.cat([pool.expanded.nonzero().flatten(), self.expand(pool).sort().values])

    def _score(self, pool: Pool) -> Tensor:
        return pool.log_value if self.by_value else pool.log_confidence


@dataclass(frozen=True)
class Auto:
    """EAGLE-2 with a budget that knows the machine: as many levels and nodes as pay by `costs`, `shape` at most.

    Expansion goes by value and the nodes of highest value are kept, as in `Dynamic`; only how many is decided in each
    round. Not in the paper. Looking at the values waits for the drafter's device once a level.
    """

    name: str
    shape: TreeShape
    costs: Costs

    def width(self, depth: int) -> int:
        return self.shape.top_k

    def children(self, depth: int) -> None:
        return None

    def expand(self, pool: Pool) -> Tensor:
        values, depths, expanded = _read(pool)
        fed = rows_fed(depths, expanded)
        nodes = width(values, depths, fed, self.shape.top_k, self.shape.max_nodes, self.costs)
        return pool.level + best(pool.log_value[pool.level :], nodes)

    def keep(self, pool: Pool) -> Tensor:
        values, depths, expanded = _read(pool)
        budget = best_budget(values, rows_fed(depths, expanded), self.shape.max_nodes, self.costs)
        return best(pool.log_value, budget.nodes).sort().values


def _read(pool: Pool) -> tuple[list[float], list[int], list[bool]]:
    """Values, depths and which nodes were expanded, read from the device at once.

    Values are as a record holds them, so that a recorded pool leads to the same decisions.
    """
    log_value, depth, expanded = torch.stack([pool.log_value, pool.depth.float(), pool.expanded.float()]).cpu()
    return log_value.double().exp().tolist(), depth.int().tolist(), expanded.bool().tolist()


@dataclass(frozen=True)
class Static:
    """A fixed tree given as child ranks from the root, (0,) being the likeliest first token (EAGLE-1, appendix A.1).

    All of its places in the pool are known beforehand; the context only fills in tokens. Raises PathsError, a
    ValueError, for paths that are no tree.
    """

    name: str
    paths: tuple[tuple[int, ...], ...]
    shape: TreeShape = field(init=False)
    _levels: tuple[tuple[tuple[int, ...], ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        paths = checked(self.paths)
        object.__setattr__(self, "paths", paths)
        object.__setattr__(self, "_levels", tuple(tuple(level) for _, level in groupby(paths, key=len)))
        object.__setattr__(self, "shape", TreeShape.around(paths))

    def width(self, depth: int) -> int:
        return 1 + max(path[-1] for path in self._levels[depth - 1])

    def children(self, depth: int) -> Tensor:
        order = {parent: place for place, parent in enumerate(self._parents(depth))}
        width = self.width(depth)
        return torch.tensor([order[path[:-1]] * width + path[-1] for path in self._levels[depth - 1]])

    def expand(self, pool: Pool) -> Tensor:
        depth = self._depth(pool)
        place = {path: i for i, path in enumerate(self._levels[depth - 1])}
        return pool.level + torch.tensor([place[parent] for parent in self._parents(depth + 1)])

    def keep(self, pool: Pool) -> Tensor:
        return torch.arange(len(pool))

    def _parents(self, depth: int) -> list[tuple[int, ...]]:
        """The nodes of level depth - 1 that have children, in pool order."""
        return sorted({path[:-1] for path in self._levels[depth - 1]})

    def _depth(self, pool: Pool) -> int:
        """How many levels the pool holds: the static tree's levels have known sizes."""
        depth = held = 0
        while held < len(pool):
            held += len(self._levels[depth])
            depth += 1
        return depth


def make_policy(
    policy: str | Sequence[Sequence[int]], shape: TreeShape, vocabulary: int, costs: Costs | None = None
) -> Policy | None:
    """The policy of a method's name, or of a static tree's paths; None for "plain".

    vocabulary: how many tokens the drafter can propose. costs: the machine's, for "eagle2-auto" alone. Shapes are
    clamped by `effective_shape`; raises ValueError for unknown names, impossible paths and missing costs.
    """
    if not isinstance(policy, str):
        return _static(STATIC, as_paths(policy), vocabulary)
    effective, row = effective_shape(policy, shape, vocabulary), method(policy)
    if effective is None:
        return None
    if row.paths is not None:
        return _static(policy, row.paths, vocabulary)
    if row.needs_costs:
        if costs is None:
            raise ValueError(f"{policy} decides by what rounds cost; give costs (cost_timing.measure_costs takes them)")
        return Auto(policy, effective, costs)
    return Dynamic(policy, effective, row.by_value, row.rerank)


def _static(name: str, paths: Paths, vocabulary: int) -> Static:
    static = Static(name, paths)
    if static.shape.top_k > vocabulary:
        raise ValueError(
            f"the static tree asks for {static.shape.top_k} children, the drafter knows {vocabulary} tokens"
        )
    return static
