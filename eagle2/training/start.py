"""How a head begins: with the best linear guess of the next feature, found in closed form.

Of all starts that were tried this one is worth the most (see README.md here): its first choice is the target's as often
as that of a head trained for many minutes from random weights, and guesses made from guesses stay sane.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from eagle2.head import EagleHead

RIDGE = 1e-3
"""Strength of the regularisation, relative to each input's own scale."""
QUIET = 2e-3
"""Standard deviation of the two projections that write into the residual stream: near nothing, but not dead."""


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
