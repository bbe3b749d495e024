"""Tiny random models of every family, and random heads: losslessness must hold for any draft."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Qwen2Config,
    Qwen3Config,
)

from eagle2.decoding.engine import Engine
from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.draft_vocabulary import offsets
from eagle2.models.eagle3_head import Eagle3Config, Eagle3Head
from eagle2.models.eagle_head import EagleHead, HeadConfig
from eagle2.models.target import Target

VOCAB, HIDDEN, CONTEXT, WINDOW = 61, 32, 96, 7

COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,  # large, so that choices are not near-ties
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]

FAMILIES = {
    "llama": LlamaConfig(**COMMON),
    "qwen2": Qwen2Config(**COMMON),
    "qwen2 with a window": Qwen2Config(
        **COMMON, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=0, layer_types=MIXED
    ),
    "qwen3": Qwen3Config(**COMMON),
    "qwen3 with a window": Qwen3Config(
        **COMMON, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=0, layer_types=MIXED
    ),
    "mistral": MistralConfig(**COMMON, sliding_window=WINDOW),
    "mistral without a window": MistralConfig(**COMMON, sliding_window=None),
    "mixtral": MixtralConfig(**COMMON, num_local_experts=3, num_experts_per_tok=2, sliding_window=None),
    "mixtral with a window": MixtralConfig(**COMMON, num_local_experts=3, num_experts_per_tok=2, sliding_window=WINDOW),
    "gemma2": Gemma2Config(**{**COMMON, "tie_word_embeddings": True}, sliding_window=WINDOW, query_pre_attn_scalar=8),
}


def random_model(config, attention=None):
    torch.manual_seed(7)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=attention).eval()


def random_head(seed=3, hidden=HIDDEN, **changes):
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": 40,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 8,
        "vocab_size": VOCAB,
        "rms_norm_eps": 1e-6,
        "rope": {"rope_type": "default", "rope_theta": 10000.0},
        "max_positions": CONTEXT,
    }
    torch.manual_seed(seed)
    head = EagleHead(HeadConfig(**{**sizes, **changes}))
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return head.eval()


def random_eagle3_head(seed=4, hidden=HIDDEN, draft_ids=None, states=(0, 1, 2), **changes):
    """An EAGLE-3 head for the tiny families, whose draft vocabulary is `draft_ids`, if any."""
    layer = random_head(hidden=hidden, draft_vocab_size=None if draft_ids is None else len(draft_ids)).config
    sizes = {field.name for field in fields(HeadConfig)} - {"own_lm_head"}
    own = {name: changes.pop(name) for name in sizes & changes.keys()}
    torch.manual_seed(seed)
    layer = replace(layer, **{"fc_bias": False, **own})
    head = Eagle3Head(Eagle3Config(layer, tuple(states), HIDDEN, "named by the test", **changes))
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, mean=1.0 if parameter.dim() == 1 else 0.0, std=0.2)
    if draft_ids is not None:
        head.d2t.copy_(offsets(draft_ids))
    return head.eval()


def random_engine(config, **options):
    target = Target(random_model(config))
    return Engine(target, EagleDrafter(target, random_head()), **options)
