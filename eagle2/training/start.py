"""How a head begins: with the best linear guess of the next feature, found in closed form, or with another's weights.

Of all initialisations that were tried this one helps most (see the README here): its first choice is the target's as
often as that of a head trained for many minutes from random weights, and guesses made from guesses stay sane.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from eagle2.loading import head_files, hub
from eagle2.models import draft_vocabulary
from eagle2.models.eagle_head import EagleHead, HeadConfig
from eagle2.training.options import TrainSettings

RIDGE = 1e-3
"""Strength of the regularisation, relative to each input's own scale."""
QUIET = 2e-3
"""Standard deviation of the two projections that write into the residual stream: near nothing, but not dead."""


ADVICE = "give a head made for this target, or none to begin with the linear start"


def new_head(model: PreTrainedModel, settings: TrainSettings, draft_ids: Tensor | None) -> EagleHead:
    """A head with the target's own sizes, over a draft vocabulary if one is given (target ids, ascending)."""
    config = model.config
    heads = config.num_attention_heads
    head = EagleHead(
        HeadConfig(
            hidden_size=config.hidden_size,
            intermediate_size=settings.intermediate_size or config.intermediate_size,
            heads=heads,
            kv_heads=config.num_key_value_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
            vocab_size=config.vocab_size,
            rms_norm_eps=config.rms_norm_eps,
            rope=dict(config.rope_parameters),
            max_positions=config.max_position_embeddings,
            draft_vocab_size=None if draft_ids is None else len(draft_ids),
        )
    )
    if draft_ids is not None:
        head.d2t.copy_(draft_vocabulary.offsets(draft_ids))
    return head


@torch.no_grad()
def linear_start(head: EagleHead, embedding: Tensor, chats: Iterable[tuple[np.ndarray, np.ndarray, int]]) -> None:
    """Set `head` to the ridge regression of the next feature on (embedding, feature); attention and MLP add noise only.

    chats: (ids [n], features [n, hidden], answer start); features before the answer are not learnt. Random numbers come
    from torch's global generator.
    """
    hidden = head.config.hidden_size
    gram = torch.zeros(2 * hidden + 1, 2 * hidden + 1, dtype=torch.float64)
    moment = torch.zeros(2 * hidden + 1, hidden, dtype=torch.float64)
    for ids, features, answer_start in chats:
        first = answer_start - 1  # the pair that the answer's first feature is guessed from
        tokens = torch.from_numpy(ids[1:].astype(np.int64)).to(embedding.device)
        feature = torch.from_numpy(features.astype(np.float32)).to(embedding.device)
        one = torch.ones(len(tokens), 1, device=embedding.device)
        pairs = torch.cat([embedding[tokens], feature[:-1], one], dim=1)[first:]
        gram += (pairs.T @ pairs).double().cpu()
        moment += (pairs.T @ feature[1:][first:]).double().cpu()
    scale = gram.diagonal().sqrt().clamp(min=1e-6)
    scaled = gram / scale[:, None] / scale + RIDGE * torch.eye(len(gram), dtype=torch.float64)
    solution = torch.linalg.solve(scaled, moment / scale[:, None]) / scale[:, None]
    for name, parameter in head.named_parameters():
        if name.endswith("layernorm.weight"):
            parameter.fill_(1.0)
        else:
            parameter.normal_(0.0, QUIET if name.endswith(("o_proj.weight", "down_proj.weight")) else 0.02)
    head.fc.weight.copy_(solution[:-1].T)
    head.fc.bias.copy_(solution[-1])


@torch.no_grad()
def take_over(head: EagleHead, given: EagleHead) -> None:
    """Copy all weights of another head. Raises ValueError, before anything is copied, where they would not fit."""
    for name in ("heads", "kv_heads", "head_dim", "rms_norm_eps"):
        theirs, mine = getattr(given.config, name), getattr(head.config, name)
        if theirs != mine:
            raise ValueError(f"the head to continue from has {name} {theirs}, the one to train {mine}; {ADVICE}")
    if not torch.equal(given.rotary.inv_freq.cpu(), head.rotary.inv_freq.cpu()):
        raise ValueError(f"the head to continue from has other rope settings; {ADVICE}")
    mine, theirs = dict(head.named_parameters()), dict(given.named_parameters())
    for name in sorted(mine.keys() | theirs.keys()):
        shapes = [list(found[name].shape) if name in found else "missing" for found in (mine, theirs)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"the head to continue from has {name} of {shapes[1]}, the one to train {shapes[0]}; {ADVICE}"
            )
    for name, parameter in mine.items():
        parameter.copy_(theirs[name])


def over_vocabulary(given: EagleHead, ids: Tensor) -> EagleHead:
    """The same weights over another draft vocabulary, int64 [D] target ids ascending: nothing in them depends on it."""
    head = EagleHead(replace(given.config, draft_vocab_size=len(ids)))
    head.d2t.copy_(draft_vocabulary.offsets(ids))
    take_over(head, given)
    return head


def begin_from(name: str, model: PreTrainedModel) -> EagleHead:
    """The head in a folder or on the hub, float32, on the target's device. Raises ValueError for an EAGLE-3 head."""
    folder, _ = hub.fetch_head(name)
    head = head_files.load_head(folder, model.config.hidden_size, model.config.vocab_size)
    if not isinstance(head, EagleHead):
        raise ValueError(f"{name} is an EAGLE-3 head; training goes on from EAGLE-1 and EAGLE-2 heads only")
    return head.to(model.device)
