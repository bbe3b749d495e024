"""What a head brings along although its target has it: copies are dropped, and noted; what differs is counted."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from eagle2.models.eagle3_head import Eagle3Head
from eagle2.models.eagle_head import EagleHead
from eagle2.models.target import Target

ROWS = 4096
"""Rows compared at once, which bounds the memory it takes."""


@torch.inference_mode()
def without_copies(head: EagleHead | Eagle3Head, target: Target) -> EagleHead | Eagle3Head:
    """The same head, using the target's embeddings, and as an EAGLE-1/2 head its LM head, where its own equal them."""
    notes = list(head.notes)
    layer = head.layer
    if layer.own_embeddings and layer.hidden_size == target.hidden_size:
        own = head.embed_tokens.weight
        rows = torch.arange(len(own))
        equal = sum(same_rows(own[part], target.embed(part)) for part in rows.split(ROWS))
        if equal == len(own):
            del head.embed_tokens
            layer = replace(layer, own_embeddings=False)
            notes.append("its embeddings are a copy of the target's, which are used")
        else:
            notes.append(f"{equal:,} of {len(own):,} rows of its own embeddings equal the target's")
    if isinstance(head, EagleHead):
        if head.lm_head is not None:
            copied = is_target_lm_head(head.lm_head, target)
            if copied:
                head.lm_head = None
                layer = replace(layer, own_lm_head=False)
            notes.append(
                "its LM head is a copy of the target's, which is used"
                if copied
                else "its LM head differs from the target's and is used"
            )
        head.config = layer
    else:
        head.config = replace(head.config, layer=layer)
    head.notes = tuple(notes)
    return head


def same_rows(own: Tensor, theirs: Tensor) -> int:
    """How many rows [n, hidden] are equal in the head's dtype."""
    return int((own == theirs.to(own)).all(dim=-1).sum())


def is_target_lm_head(own: nn.Linear, target: Target) -> bool:
    """Whether an LM head without a bias is the target's, row by row."""
    theirs = target.model.get_output_embeddings()
    if getattr(theirs, "bias", None) is not None or theirs.weight.shape != own.weight.shape:
        return False
    pairs = zip(own.weight.split(ROWS), theirs.weight.split(ROWS), strict=True)
    return all(same_rows(a, b) == len(a) for a, b in pairs)
