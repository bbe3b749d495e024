"""A draft vocabulary: the part of the target's tokens a head can propose. Lossless, since the target still decides.

Heads hold it as EAGLE-3's tensor d2t, int64 [D]: draft token i is the target's token i + d2t[i]. Draft tokens stand in
the order of the target's ids, so "among equals the lower id" means the same in both numberings. Public heads may add
its inverse, t2d bool [V]: which of the target's tokens are among them.
"""

from __future__ import annotations

import torch
from torch import Tensor


def target_ids(d2t: Tensor) -> Tensor:
    """The target's ids of all draft tokens, int64 [D], from their offsets `d2t`, int64 [D]."""
    return torch.arange(len(d2t), device=d2t.device) + d2t


def offsets(ids: Tensor) -> Tensor:
    """`d2t`, int64 [D], of a draft vocabulary given as the target's ids, int64 [D] ascending."""
    return ids - torch.arange(len(ids), device=ids.device)


def fault(d2t: Tensor | None, t2d: Tensor | None, stated: object, vocab_size: int) -> str | None:
    """What is wrong with a head's draft vocabulary for a target of `vocab_size` tokens; None if nothing is.

    stated: "draft_vocab_size" of the head's config, None where it says nothing.
    """
    if stated is not None and (isinstance(stated, bool) or not isinstance(stated, int) or stated < 1):
        return f"config.json has draft_vocab_size = {stated!r}; it must be an integer of at least 1"
    if d2t is None:
        return _fault_without(t2d, stated, vocab_size)
    if d2t.dtype != torch.int64 or d2t.dim() != 1:
        return f"d2t is {_told(d2t)}; it must be int64, one offset for each draft token"
    if not len(d2t):
        return "d2t is empty, so nothing could be drafted; it must name at least one token"
    if stated is not None and stated != len(d2t):
        return f"config.json has draft_vocab_size = {stated}, but d2t holds {len(d2t)} tokens"
    if t2d is None and len(d2t) < vocab_size and not d2t.any():
        return f"d2t is all zeros and there is no t2d: that these are just the first {len(d2t)} ids is not believable"
    return _fault_of_ids(target_ids(d2t), vocab_size) or _fault_of_inverse(target_ids(d2t), t2d, vocab_size)


def _fault_without(t2d: Tensor | None, stated: int | None, vocab_size: int) -> str | None:
    if t2d is not None:
        return "there is a tensor t2d without d2t, which would say what each draft token stands for"
    if stated not in (None, vocab_size):
        return f"config.json has draft_vocab_size = {stated}, but no tensor d2t says which tokens these are"
    return None


def _fault_of_ids(ids: Tensor, vocab_size: int) -> str | None:
    outside = ((ids < 0) | (ids >= vocab_size)).nonzero().flatten()
    if len(outside):
        i = int(outside[0])
        return f"d2t maps draft token {i} to id {int(ids[i])}; the target has ids 0 to {vocab_size - 1}"
    if len(ids.unique()) < len(ids):
        seen, counts = ids.unique(return_counts=True)
        return f"d2t maps several draft tokens to id {int(seen[counts > 1][0])}; each must stand for another token"
    falling = (ids.diff() < 0).nonzero().flatten()
    if len(falling):
        i = int(falling[0])
        return f"d2t maps draft token {i} to id {int(ids[i])} and {i + 1} to {int(ids[i + 1])}; target ids must ascend"
    return None


def _fault_of_inverse(ids: Tensor, t2d: Tensor | None, vocab_size: int) -> str | None:
    if t2d is None:
        return None
    if t2d.dtype != torch.bool or t2d.dim() != 1:
        return f"t2d is {_told(t2d)}; it must be bool ({vocab_size},), one for each of the target's tokens"
    if t2d[vocab_size:].any():
        return f"t2d names tokens beyond the target's {vocab_size}"
    t2d = torch.nn.functional.pad(t2d[:vocab_size], (0, max(0, vocab_size - len(t2d))))  # where it was padded, or not
    named = torch.zeros(vocab_size, dtype=torch.bool).index_fill(0, ids, True)
    differing = (named != t2d).nonzero().flatten()
    if len(differing):
        return (
            f"d2t and t2d disagree about {len(differing)} of the target's tokens, the first of them {int(differing[0])}"
        )
    return None


def _told(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
