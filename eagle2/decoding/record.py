"""The tensors of one round -> the plain columns of its `Round`. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eagle2.decoding.tree import Flat, Pool, top_children
from eagle2.decoding.verify import Walk
from eagle2.trace.rounds import ROOT, Check

TOP = 5
"""How many of the target's favourites a check names."""


def node_columns(pool: Pool, flat: Flat, logits: Tensor, fates: dict[int, str]) -> dict[str, tuple]:
    """`Round`'s node columns in pool order. logits: the target's, float32 [m + 1, V]; fates: of the accepted path."""
    slot: list[int | None] = [None] * len(pool)
    probability: list[float | None] = [None] * len(pool)
    rows = flat.parent[1:].to(logits.device)
    log_p = logits[rows, flat.token.to(logits.device)] - logits.logsumexp(dim=-1)[rows]
    kept = flat.index.tolist()
    for place, (node, p) in enumerate(zip(kept, _probabilities(log_p), strict=True), start=1):
        slot[node], probability[node] = place, p
    return {
        "token": tuple(pool.token.tolist()),
        "parent": tuple(pool.parent.tolist()),
        "depth": tuple(pool.depth.tolist()),
        "confidence": tuple(_probabilities(pool.log_confidence)),
        "value": tuple(_probabilities(pool.log_value)),
        "expanded": tuple(pool.expanded.tolist()),
        "slot": tuple(slot),
        "target_probability": tuple(probability),
        "fate": tuple(fates.get(i, "pruned" if s is None else "rejected") for i, s in enumerate(slot)),
    }


def path_fates(accepted: Sequence[int], committed: int) -> dict[int, str]:
    """Fates of the accepted path, of whose tokens only the first `committed` passed stops and caps."""
    return {node: "accepted" if step < committed else "cut" for step, node in enumerate(accepted)}


def checks(walk: Walk, accepted: Sequence[int], logits: Tensor) -> tuple[Check, ...]:
    """One `Check` per visited row. accepted: pool indices of the walk's slots; logits: float32 [m + 1, V]."""
    visited = torch.tensor([0, *walk.slots], device=logits.device)
    tokens, log_p = top_children(logits[visited].log_softmax(dim=-1), min(TOP, logits.shape[-1]))
    nodes, children = (ROOT, *accepted), (*accepted, None)
    return tuple(
        Check(node, draw.token, draw.probability, child, tuple(top), tuple(_probabilities(p)), draw.chance)
        for node, draw, child, top, p in zip(nodes, walk.draws, children, tokens.tolist(), log_p, strict=True)
    )


def _probabilities(log_p: Tensor) -> list[float]:
    """Probabilities as floats, taken from logarithms in float64 so that close ones stay apart."""
    return log_p.cpu().double().exp().clamp(max=1.0).tolist()
