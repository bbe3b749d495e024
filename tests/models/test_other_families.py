"""Families without a row among the proven ones: each passes the check at load, and no tree changes its text."""

import pytest
from tiny import COMMON, VOCAB, WINDOW, random_head, random_model
from transformers import AutoConfig

from eagle2.decoding.engine import Engine
from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.target import Target
from eagle2.settings import TreeShape

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]
EXPERTS = {"num_experts_per_tok": 2}
OTHERS = {
    "gemma3_text": {"sliding_window": WINDOW, "query_pre_attn_scalar": 8, "tie_word_embeddings": True},
    "phi3": {"sliding_window": None},
    "olmo2": {},
    "starcoder2": {"sliding_window": None},
    "cohere2": {"sliding_window": WINDOW, "tie_word_embeddings": True},
    "granite": {"logits_scaling": 2.0},
    "qwen3_moe": {**EXPERTS, "num_experts": 3, "moe_intermediate_size": 24},
    "gpt_oss": {**EXPERTS, "num_local_experts": 3, "sliding_window": WINDOW},
    "smollm3": {"no_rope_layers": [1, 0, 1]},
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 96},
    "gpt_neox": {"rotary_pct": 0.5},
}


@pytest.mark.parametrize("family", OTHERS)
def test_trees_give_the_text_of_plain_decoding(family):
    config = AutoConfig.for_model(family, **(COMMON | OTHERS[family]))
    target = Target(random_model(config))
    engine = Engine(target, EagleDrafter(target, random_head()))
    rounds = list(engine.rounds(PROMPT, TreeShape(4, 3, 12), max_new_tokens=30))
    assert [token for r in rounds for token in r.committed] == engine.plain(PROMPT, max_new_tokens=30)
