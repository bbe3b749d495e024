"""What the tests of EAGLE-3 share: a target of eight layers and the kinds of heads it is paired with."""

import torch
from tiny import COMMON, VOCAB, random_model
from transformers import LlamaConfig

from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.target import Target

IDS = torch.arange(1, VOCAB, 3)
"""A draft vocabulary of 20 of the tiny families' 61 tokens."""
DEEP = LlamaConfig(**COMMON | {"num_hidden_layers": 8})
LAYERS = 8
VARIANTS = {
    "as published": {"draft_ids": IDS},
    "all tokens": {},
    "own embeddings": {"draft_ids": IDS, "own_embeddings": True},
    "biases": {"draft_ids": IDS, "qkv_bias": True, "fc_bias": True},
    "normed features pass by": {"draft_ids": IDS, "norm_before_residual": True},
    "normed before fc": {"draft_ids": IDS, "norm_before_fc": True},
    "the target's LM head": {"draft_ids": IDS, "own_lm_head": False},
}


def paired(config, head):
    target = Target(random_model(config)).handing_out(head.states)
    return target, EagleDrafter(target, head)
