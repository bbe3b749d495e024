"""A head's config.json, wherever its project keeps a setting -> one flat dict, and what in it nobody here knows.

null means the default. What a head *has* is decided by its tensors, never here.
"""

from __future__ import annotations

from pathlib import Path

PLACES = ("text_config", "model", "transformer_layer_config", "eagle_config")
"""Objects in which projects keep a head's settings; a later one wins over an earlier one and the top level."""

_HONOURED = """
    hidden_size intermediate_size num_attention_heads num_key_value_heads head_dim vocab_size draft_vocab_size
    rms_norm_eps rope_theta rope_scaling rope_parameters partial_rotary_factor max_position_embeddings hidden_act
    sliding_window use_sliding_window layer_types norm_before_residual norm_before_fc fc_norm norm_output
    use_aux_hidden_state eagle_aux_hidden_state_layer_ids target_layer_ids aux_hidden_state_layer_ids
    target_hidden_size num_hidden_layers
"""
HONOURED = frozenset(_HONOURED.split())
_HARMLESS = """
    architectures model_type torch_dtype dtype transformers_version initializer_range use_cache pretraining_tp
    bos_token_id eos_token_id pad_token_id tie_word_embeddings attention_dropout attention_bias mlp_bias bias
    max_window_layers auto_map speculators_config speculators_model_type speculators_version embed_requires_grad
    eagle_fc_bias num_eagle_features num_aux_hidden_states num_target_layers target_model_name_or_path ttt_length
    draft_num_hidden_layers truncated_vocab_size num_lookahead_tokens _name_or_path name_or_path
    use_input_layernorm_in_first_layer use_last_layernorm use_mtp_layernorm output_attentions output_hidden_states
    return_dict is_encoder_decoder is_decoder chunk_size_feed_forward torchscript unsloth_version
    base_model_name_or_path num_local_experts num_experts_per_tok router_aux_loss_coef output_router_logits
    target_model_type
"""
HARMLESS = frozenset(_HARMLESS.split()) | frozenset(PLACES)
"""Settings that change nothing in what a head computes, or only what its tensors say already."""


def flat_config(raw: dict) -> dict:
    """All settings on top, those that are null left out."""
    flat = {key: value for key, value in raw.items() if value is not None}
    for place in PLACES:
        if isinstance(raw.get(place), dict):
            flat |= {key: value for key, value in raw[place].items() if value is not None}
    return flat


def unknown_settings(flat: dict) -> tuple[str, ...]:
    """A sentence for each setting that is set, and neither honoured nor known to change nothing."""
    odd = sorted(
        key for key, value in flat.items() if key not in HONOURED | HARMLESS and value not in (False, "", [], {})
    )
    return tuple(f"config.json sets {key} = {flat[key]!r}, which is not known here and changes nothing" for key in odd)


def flag(path: Path, flat: dict, key: str, default: bool = False) -> bool:
    """A setting that is true or false. Raises ValueError for anything else."""
    value = flat.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{path} has {key} = {value!r}; it must be true or false")
    return value


def window(path: Path, flat: dict) -> int | None:
    """Positions that a row of the head's layer sees, its own among them; None: all.

    A sliding_window counts only where the layer uses it: by its layer type or by use_sliding_window, which turns it
    off where it is false. Raises ValueError for a sliding layer without a window.
    """
    kinds, size = flat.get("layer_types"), flat.get("sliding_window")
    kind = kinds[0] if isinstance(kinds, list) and kinds else None
    if kind not in (None, "full_attention", "sliding_attention"):
        raise ValueError(f"{path} has layer_types = {kinds!r}; a head's layer is full_attention or sliding_attention")
    if kind is None:
        slides = flat.get("use_sliding_window", flat.get("model_type") == "mistral" and size is not None)
    else:
        slides = kind == "sliding_attention" and flat.get("use_sliding_window", True)
    if not slides:
        return None
    if type(size) is not int or size < 1:
        raise ValueError(f"{path} has a sliding layer with sliding_window = {size!r}; it must be at least 1")
    return size


def rope(path: Path, flat: dict) -> dict:
    """The rope's parameters: the new place holds all of them, the old ones are rope_theta and rope_scaling, whose
    rope_type was once "type". The multimodal kind is the plain one for text, whose three positions are equal."""
    scaling = flat.get("rope_parameters") or flat.get("rope_scaling") or {}
    if isinstance(scaling, dict) and "rope_type" not in scaling and isinstance(scaling.get("full_attention"), dict):
        kind = "sliding_attention" if window(path, flat) else "full_attention"  # one object for each type of layer
        scaling = scaling.get(kind) or {}
    if not isinstance(scaling, dict):
        raise ValueError(f"{path} sets a rope that is not understood: {scaling!r} is no object")
    scaling = {key: value for key, value in scaling.items() if value is not None and not key.startswith("mrope_")}
    settings = {"rope_type": "default", "rope_theta": flat.get("rope_theta") or 10000.0}
    if flat.get("partial_rotary_factor") is not None:
        settings["partial_rotary_factor"] = flat["partial_rotary_factor"]
    settings |= scaling
    if "type" in settings:
        kind = settings.pop("type")
        settings["rope_type"] = scaling.get("rope_type", kind)
    if settings["rope_type"] == "mrope":
        settings["rope_type"] = "default"
    part = settings.get("partial_rotary_factor", 1.0)
    if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part <= 1:
        raise ValueError(f"{path} has partial_rotary_factor = {part!r}; it must be over 0 and at most 1")
    return settings
