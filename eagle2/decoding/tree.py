"""Draft trees as tensors: the candidate pool, selection, ancestor mask, positions (paper, sections 4.1 and 4.2).

Pure tensor functions; knows neither models nor policies. Pool order is level by level; in a level, parents in the order
they were expanded; each one's children by confidence, descending. The total order of both phases is value descending,
then depth ascending, then pool order, so a *stable* sort of the pool as laid out is all it takes, and every chosen
node's parent is chosen with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

ROOT = -1


@dataclass(frozen=True)
class Pool:
    """All nodes drafted so far, in pool order.

    token, parent, depth: int64 [n]; `parent` indexes the pool, -1 is the root; `depth` is 1 under the root.
    log_confidence, log_value: float32 [n], natural logarithms; a value is the sum of confidences from the root down.
    expanded: bool [n], fed to the drafter. level: where the newest level begins.
    """

    token: Tensor
    parent: Tensor
    depth: Tensor
    log_confidence: Tensor
    log_value: Tensor
    expanded: Tensor
    level: int = 0

    @classmethod
    def empty(cls, device: torch.device | str = "cpu") -> Pool:
        ints = torch.empty(0, dtype=torch.int64, device=device)
        floats = torch.empty(0, dtype=torch.float32, device=device)
        return cls(ints, ints, ints, floats, floats, torch.empty(0, dtype=torch.bool, device=device))

    def __len__(self) -> int:
        return self.token.shape[0]

    def within(self, vocabulary: int) -> Pool:
        """The same pool with every token one that the target knows; a drafter may name ids that do not exist."""
        return replace(self, token=self.token.clamp(0, vocabulary - 1))

    @property
    def newest(self) -> Tensor:
        """Pool indices of the newest level, int64 [w]."""
        return torch.arange(self.level, len(self), device=self.token.device)

    def grow(self, parents: Tensor, tokens: Tensor, log_confidence: Tensor) -> Pool:
        """Add a level: `parents` (pool indices; the first: all -1), `tokens`, `log_confidence`: each [w].

        Whatever a drafter says, confidences are probabilities: NaN counts as 0, more than 1 as 1. So a value never
        exceeds its parent's, and every kept node's parent is kept.
        """
        log_confidence = log_confidence.to(torch.float32).nan_to_num(nan=-torch.inf, posinf=0, neginf=-torch.inf)
        log_confidence = log_confidence.clamp(max=0)
        if len(self):
            depth, log_value = self.depth[parents] + 1, self.log_value[parents] + log_confidence
            expanded = self.expanded.index_fill(0, parents, True)
        else:
            depth, log_value, expanded = torch.ones_like(parents), log_confidence, self.expanded
        return Pool(
            token=torch.cat([self.token, tokens]),
            parent=torch.cat([self.parent, parents]),
            depth=torch.cat([self.depth, depth]),
            log_confidence=torch.cat([self.log_confidence, log_confidence]),
            log_value=torch.cat([self.log_value, log_value]),
            expanded=torch.cat([expanded, torch.zeros_like(parents, dtype=torch.bool)]),
            level=len(self),
        )


def top_children(log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` likeliest tokens of every row, likeliest first; among equals the lower id. NaN is the least likely.

    log_probs: float32 [r, V]. Returns tokens int64 [r, k], log-probabilities float32 [r, k].

    `torch.topk` breaks ties at random. Where the k + 1 best of each row all differ there are none to break, and its
    answer is the only one; a GPU would have to be waited for to know that. Otherwise it is given keys without ties: a
    float's bits, read as an integer that sorts like the float, above the negated token id. That takes thrice as long.
    """
    if log_probs.device.type == "cpu":
        highest, tokens = log_probs.topk(min(k + 1, log_probs.shape[-1]), dim=-1)
        if bool((highest[:, 1:] < highest[:, :-1]).all()):
            return tokens[:, :k], highest[:, :k]
    log_probs = log_probs.nan_to_num(nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    ids = torch.arange(log_probs.shape[-1], device=log_probs.device)
    bits = (log_probs.to(torch.float32) + 0.0).contiguous().view(torch.int32)  # + 0.0 turns -0.0 into 0.0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.to(torch.int64) << 32) - ids
    tokens = keys.topk(k, dim=-1).indices
    return tokens, log_probs.gather(-1, tokens)


def best(scores: Tensor, k: int) -> Tensor:
    """Indices of the `k` highest of `scores` [n], highest first; among equals the earlier one. int64 [min(k, n)]."""
    return torch.sort(scores, descending=True, stable=True).indices[:k]


@dataclass(frozen=True)
class Flat:
    """The flattened sequence: root (slot 0) and the kept nodes in pool order.

    token int64 [m]: the kept nodes' tokens, the root's not among them. parent int64 [m + 1]: slots, 0 for the root too.
    depth int64 [m + 1]: 0 for the root. index int64 [m]: pool indices. visible bool [m + 1, m + 1]: the tree attention
    mask among these rows; row i may attend to column j.
    """

    token: Tensor
    parent: Tensor
    depth: Tensor
    index: Tensor
    visible: Tensor

    def positions(self, root_position: int) -> Tensor:
        """Sequence positions int64 [m + 1]: siblings share one."""
        return self.depth + root_position

    def lists(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """token, parent, depth and index as lists, read from the device at once. Raises ValueError for no tree."""
        kept = len(self.token)
        ints = torch.cat([self.token, self.parent, self.depth, self.index]).tolist()
        token, parent = ints[:kept], ints[kept : 2 * kept + 1]
        depth, index = ints[2 * kept + 1 : 3 * kept + 2], ints[3 * kept + 2 :]
        for node, above, level in zip(index, parent[1:], depth[1:], strict=True):
            if depth[above] != level - 1:
                raise ValueError(f"node {node} is kept at depth {level}, its parent is not; a policy must keep both")
        return token, parent, depth, index


def flatten(pool: Pool, kept: Tensor) -> Flat:
    """Lay out root and kept nodes (`kept`: pool indices [m], ascending, parents included) for one target pass.

    Raises ValueError for a node whose parent is not kept; on an accelerator, where looking would mean waiting, only
    `Flat.lists` does.
    """
    device = pool.token.device
    slot_of = torch.zeros(len(pool) + 1, dtype=torch.int64, device=device)  # the extra last entry, index -1: the root
    slot_of[kept] = torch.arange(1, len(kept) + 1, device=device)
    root = torch.zeros(1, dtype=torch.int64, device=device)
    parent = torch.cat([root, slot_of[pool.parent[kept]]])
    depth = torch.cat([root, pool.depth[kept]])
    flat = Flat(pool.token[kept], parent, depth, kept, ancestor_mask(parent))
    if device.type == "cpu":
        flat.lists()
    return flat


def ancestor_mask(parent: Tensor) -> Tensor:
    """Tree attention mask bool [n, n] from parent rows int64 [n] (parents come first, row 0 is its own).

    A row sees itself and its ancestors. Each step doubles how far up every row has looked, so log2(n) steps are enough.
    """
    rows = parent.shape[0]
    visible = torch.eye(rows, dtype=torch.bool, device=parent.device)
    up = parent
    reach = 1
    while reach < rows:
        visible = visible | visible[up]
        up = up[up]
        reach *= 2
    return visible
