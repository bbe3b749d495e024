"""The target's features of many chats, computed once and kept in one file, in half precision.

A feature is what the target's final norm gives its LM head. Chats on disk hold token ids only, so that nothing large
need be stored or shipped; this file is scratch and can be deleted at any time.
"""

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm
from transformers import PreTrainedModel

BLOCK = 128
"""Chats between two saves."""
PASS_TOKENS = 4096
"""At most so many tokens, padding included, go through the target at once."""


@torch.inference_mode()
def compute(model: PreTrainedModel, chats: Sequence[np.ndarray], path: Path) -> np.ndarray:
    """Features [tokens of all chats, hidden], float16, memory-mapped from `path`; what is missing there is computed.

    An interrupted run resumes after the last whole block. New chats may be appended to those the file was made from.
    Raises ValueError if it was made from other chats or by another target.
    """
    hidden, ends = model.config.hidden_size, np.cumsum([0, *map(len, chats)])
    state = path.with_suffix(".json")
    done, made_from = _done(path, state, chats, model)
    path.parent.mkdir(parents=True, exist_ok=True)
    patience = 1.0 if sys.stderr.isatty() else 60.0
    with (
        open(path, "r+b" if done else "wb") as file,
        tqdm(total=int(ends[-1]), initial=int(ends[done]), unit="tok", unit_scale=True, mininterval=patience) as bar,
    ):
        bar.set_description("features")
        for first in range(done, len(chats), BLOCK):
            block = chats[first : first + BLOCK]
            file.seek(int(ends[first]) * hidden * np.float16().itemsize)
            file.write(np.concatenate(_block(model, block)).tobytes())
            file.flush()
            os.fsync(file.fileno())
            done = first + len(block)
            made_from = _with(made_from, block)
            temporary = state.with_suffix(".tmp")
            temporary.write_text(json.dumps({"chats": done, "made_from": made_from.hexdigest()}), encoding="utf-8")
            os.replace(temporary, state)
            bar.update(int(ends[done] - ends[first]))
    return np.memmap(path, np.float16, "r", shape=(int(ends[-1]), hidden))


def digest(model: PreTrainedModel, chats: Sequence[np.ndarray]) -> "hashlib._Hash":
    """Identifies features by what determines them: the chats and, in place of all its weights, the target's embeddings.

    Those are rounded to bfloat16, so that features may be computed on one device and read beside a target on another.
    """
    rows = model.get_input_embeddings().weight[:64].detach().to(torch.bfloat16).float()
    return _with(hashlib.sha256(rows.cpu().numpy().tobytes()), chats)


def _with(found: "hashlib._Hash", chats: Sequence[np.ndarray]) -> "hashlib._Hash":
    for ids in chats:
        found.update(np.asarray(ids, dtype=np.uint32).tobytes())
    return found


def _done(path: Path, state: Path, chats: Sequence[np.ndarray], model: PreTrainedModel) -> tuple[int, "hashlib._Hash"]:
    """How many chats the file already holds, and their digest."""
    if not (state.is_file() and path.is_file()):
        return 0, digest(model, [])
    told = json.loads(state.read_text(encoding="utf-8"))
    made_from = digest(model, chats[: told["chats"]])
    if told["chats"] > len(chats) or told["made_from"] != made_from.hexdigest():
        raise ValueError(
            f"{path} holds features of other chats, or of another target, than were given; delete it to compute them "
            "again, or give the chats it was made from first and new ones behind them"
        )
    return told["chats"], made_from


def _block(model: PreTrainedModel, chats: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Features of each chat, [length, hidden] float16, in the order given."""
    order = sorted(range(len(chats)), key=lambda i: len(chats[i]))  # by length, so that little is padded
    found: list[np.ndarray] = [np.empty(0)] * len(chats)
    while order:
        longest = len(chats[order[-1]])
        rows = [order.pop() for _ in range(min(len(order), max(1, PASS_TOKENS // longest)))]
        ids = pad_sequence([torch.from_numpy(chats[i].astype(np.int64)) for i in rows], batch_first=True)
        # Padding stands behind, where causal attention never looks, so no mask is needed.
        out = model.base_model(input_ids=ids.to(model.device), use_cache=False).last_hidden_state
        for row, i in enumerate(rows):
            found[i] = out[row, : len(chats[i])].to("cpu", torch.float16).numpy()
    return found
