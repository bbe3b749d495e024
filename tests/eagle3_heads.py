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
    "each state normed before fc, output normed": {"draft_ids": IDS, "fc_norm": True, "norm_output": True},
    "norms on both sides of four states": {
        "draft_ids": IDS,
        "states": (2, 4, 6, 7),
        "norm_before_fc": True,
        "norm_before_residual": True,
        "norm_output": True,
        "window": 4,
    },
    "a window": {"draft_ids": IDS, "window": 3},
    "q and k normed": {"qk_norm": True, "own_embeddings": True, "states": (2, 3, 4, 5, 6)},
    "a part turned": {"rope": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
    "a part turned slowly": {
        "rope": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0, "partial_rotary_factor": 0.5}
    },
    "more biases": {"draft_ids": IDS, "o_bias": True, "mlp_bias": True},
    "the last layer's output": {"draft_ids": IDS, "states": (2, 4, 8)},
    "no fc": {"draft_ids": IDS, "states": (-1,), "fuses": False},
    "the target's LM head": {"draft_ids": IDS, "own_lm_head": False},
}


def paired(config, head):
    target = Target(random_model(config)).handing_out(head.states)
    return target, EagleDrafter(target, head)
