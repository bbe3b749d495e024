"""Settings of a head, wherever they stand."""

from pathlib import Path

import pytest

from eagle2.loading.head_config import flat_config, rope
from eagle2.loading.head_kinds import other_kind

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
ROPES = (
    ({}, PLAIN),
    ({"rope_theta": None, "rope_scaling": None}, PLAIN),
    (
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0},
    ),
    ({"rope_scaling": {"type": "mrope", "mrope_section": [1, 2, 1]}}, PLAIN),
    ({"rope_parameters": {"rope_type": "default", "rope_theta": None}}, PLAIN),
    ({"partial_rotary_factor": 0.5}, PLAIN | {"partial_rotary_factor": 0.5}),
    ({"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 7.0}}}, PLAIN | {"rope_theta": 7.0}),
)


@pytest.mark.parametrize(("config", "expected"), ROPES)
@pytest.mark.parametrize("place", [None, "model", "transformer_layer_config", "text_config"])
def test_a_rope_is_read_from_every_place(config, expected, place):
    raw = config if place is None else {place: config, "rope_theta": None}
    assert rope(Path("config.json"), flat_config(raw)) == expected


def test_a_whole_model_is_called_one_whatever_its_layers_are():
    names = ("model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.self_attn.kv_a_proj_with_mqa.weight")
    assert other_kind(names, {"kv_lora_rank": 8}) == "a whole language model"
    assert "mixture of experts" in other_kind(("fc.weight", "layers.0.mlp.experts.0.up_proj.weight"), {})
