"""A head's folder -> a head, strictly: every tensor is used, none is missing, all shapes fit the target.

The public layout is config.json beside model.safetensors (or pytorch_model.bin, read weights-only), whole or sharded.
What a head is and has is decided by its tensors; the config only gives sizes, and EAGLE-3's choices of features.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from eagle2.loading.head_config import flag, flat_config, rope, unknown_settings, window
from eagle2.loading.head_kinds import refuse_other_kinds
from eagle2.loading.weights import read_config, read_tensors, reason
from eagle2.models import draft_vocabulary
from eagle2.models.eagle3_head import Eagle3Config, Eagle3Head
from eagle2.models.eagle_head import EagleHead, HeadConfig
from eagle2.models.feature_layers import FEATURE, feature_states

COMPUTED = ("rotary_emb.inv_freq",)
"""Ends of the names of tensors that old checkpoints hold although they follow from the config."""


def load_head(
    folder: Path,
    hidden_size: int,
    vocab_size: int,
    dtype: torch.dtype = torch.float32,
    layers: int | None = None,
    reading: str | None = None,
) -> EagleHead | Eagle3Head:
    """Read a head for a target with these sizes. Raises ValueError naming what does not fit.

    layers: how many the target has, for an EAGLE-3 head, which sees hidden states between them. reading: how the
    config's ids of those are meant, "states" or "outputs", where the caller knows better (see `feature_layers`).
    """
    raw = flat_config(read_config(folder))
    tensors = read_tensors(folder, partial(refuse_other_kinds, folder, flat=raw))
    refuse_other_kinds(folder, tensors, raw)
    known = known_names(tensors)
    tensors = {known[name]: tensor for name, tensor in tensors.items() if not name.endswith(COMPUTED)}
    third = is_eagle3(tensors, hidden_size)
    if third:
        tensors = {_renamed(name, {"layers.0.": "midlayer."}): tensor for name, tensor in tensors.items()}
    tensors, notes = without_unused(raw, tensors)
    config = head_config(folder, raw, tensors, third)
    refuse_other_targets(folder, config, tensors, hidden_size, third)
    if config.own_embeddings and config.vocab_size != vocab_size:
        raise ValueError(
            f"the head in {folder} brings embeddings of {config.vocab_size} tokens, the target has {vocab_size}: "
            "they are no pair"
        )
    t2d = tensors.pop("t2d", None)  # says nothing that d2t does not
    if wrong := draft_vocabulary.fault(tensors.get("d2t"), t2d, raw.get("draft_vocab_size"), vocab_size):
        raise ValueError(f"the draft vocabulary of the head in {folder} is not usable: {wrong}")
    fused = eagle3_config(folder, raw, tensors, config, hidden_size, vocab_size, layers, reading) if third else None
    try:
        with torch.random.fork_rng(devices=[]):  # first weights are drawn only to be overwritten
            head = Eagle3Head(fused) if fused else EagleHead(config)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{folder / 'config.json'} sets a rope that is not understood: {config.rope} ({reason(error)})"
        ) from error
    refuse_misfits(folder, tensors, {name: t.shape for name, t in head.state_dict().items()})
    head.load_state_dict(tensors)
    for parameter in head.parameters():  # not head.to(dtype): rotary frequencies must stay float32 to tell positions
        parameter.data = parameter.data.to(dtype)
    head.notes = (*notes, *unknown_settings(raw))
    return head.eval()


def without_unused(raw: dict, tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The tensors without an fc that is never used: a head that takes no auxiliary states fuses none."""
    unused = [name for name in tensors if name.startswith("fc.") and raw.get("use_aux_hidden_state") is False]
    if not unused or not any("hidden_norm" in name for name in tensors):
        return tensors, ()
    notes = ("its fc is not used, since its config sets use_aux_hidden_state = false",)
    return {name: tensor for name, tensor in tensors.items() if name not in unused}, notes


SPECULATORS = {"fusion_fc.": "fc.", "transformer.": "layers.0."}
"""What speculators (vLLM) calls an EAGLE-1 head's modules, and the first public layout does."""


def known_names(names: Collection[str]) -> dict[str, str]:
    """Every tensor's name in the layout of the authors' own checkpoints, by the name it has."""
    told = any(name.startswith("fusion_fc.") for name in names)  # "transformer." alone may be a whole model's
    bare = "model.fc.weight" in names or "model.layers.0.hidden_norm.weight" in names  # NeMo's prefix
    return {name: _renamed(name, SPECULATORS if told else {"model.": ""} if bare else {}) for name in names}


def _renamed(name: str, prefixes: Mapping[str, str]) -> str:
    for theirs, ours in prefixes.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def is_eagle3(tensors: Mapping[str, Tensor], hidden_size: int) -> bool:
    """Whether these are an EAGLE-3 head's: its layer norms the feature, and it fuses three of them."""
    named = any(name.startswith("midlayer.") or name == "layers.0.hidden_norm.weight" for name in tensors)
    return named or ("fc.weight" in tensors and tensors["fc.weight"].shape[-1:] == (3 * hidden_size,))


def refuse_other_targets(
    folder: Path, config: HeadConfig, tensors: Mapping[str, Tensor], hidden_size: int, third: bool
) -> None:
    """Raise ValueError for a head of another width than the target, where it needs the target's own modules.

    An EAGLE-3 head with embeddings and LM head of its own may be narrower: its fc takes the target's features in.
    """
    self_sufficient = third and config.own_embeddings and "lm_head.weight" in tensors
    if config.hidden_size != hidden_size and not self_sufficient:
        raise ValueError(
            f"the head in {folder} has hidden size {config.hidden_size}, the target {hidden_size}: they are no pair"
        )


def eagle3_config(
    folder: Path,
    raw: dict,
    tensors: Mapping[str, Tensor],
    layer: HeadConfig,
    hidden_size: int,
    vocab_size: int,
    layers: int | None,
    reading: str | None,
) -> Eagle3Config:
    """What an EAGLE-3 head has beside its layer. Raises ValueError where its features are not the target's."""
    path = folder / "config.json"
    fuses = "fc.weight" in tensors
    taken = tensors["fc.weight"].shape[-1] if fuses else hidden_size
    if not fuses:
        if layer.hidden_size != hidden_size:
            raise ValueError(
                f"the head in {folder} has no fc, so its {layer.hidden_size} numbers must be the target's, which has "
                f"{hidden_size}: they are no pair"
            )
        states, source = FEATURE, "it has no fc, so it takes the target's feature"
    else:
        states, source = feature_states(path, raw, layers, taken // hidden_size, reading)
    if taken != len(states) * hidden_size:
        raise ValueError(
            f"the head in {folder} takes features of {taken} numbers; {len(states)} hidden states of the target have "
            f"{len(states) * hidden_size}: they are no pair"
        )
    for setting, tensor in (("norm_before_fc", "input_norm.weight"), ("fc_norm", "fc_norm.0.weight")):
        if flag(path, raw, setting) and tensor not in tensors:
            raise ValueError(f"{path} sets {setting}, but there is no tensor {tensor} to norm with")
    return Eagle3Config(
        replace(layer, vocab_size=vocab_size),
        states,
        hidden_size,
        source,
        norm_before_fc="input_norm.weight" in tensors,
        norm_before_residual=flag(path, raw, "norm_before_residual"),
        own_lm_head="lm_head.weight" in tensors,
        fc_norm="fc_norm.0.weight" in tensors,
        norm_output=flag(path, raw, "norm_output"),
        fuses=fuses,
    )


def head_config(folder: Path, raw: dict, tensors: dict[str, Tensor], third: bool) -> HeadConfig:
    """Sizes from the config, the rest from the tensors' names. Rope settings are found in their old and new places."""
    path = folder / "config.json"

    def size(key: str, default: int | None = None) -> int:
        value = default if raw.get(key) is None else raw[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{path} has {key} = {value!r}; an EAGLE head's must be an integer of at least 1")
        return value

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    kv_heads, head_dim = size("num_key_value_heads", heads), size("head_dim", max(1, hidden // heads))
    if heads % kv_heads or head_dim % 2:
        raise ValueError(
            f"{path} has {heads} heads of width {head_dim} over {kv_heads} key-value heads; "
            "the first must be a multiple of the last, and the width even"
        )
    if raw.get("hidden_act", "silu") not in ("silu", "swish"):
        raise ValueError(f"{path} has hidden_act = {raw['hidden_act']!r}; an EAGLE head's is silu")
    own = tensors.get("embed_tokens.weight")
    return HeadConfig(
        hidden_size=hidden,
        intermediate_size=size("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=size("vocab_size", 1) if own is None else own.shape[0],
        rms_norm_eps=raw.get("rms_norm_eps") or 1e-6,
        rope=rope(path, raw),
        max_positions=size("max_position_embeddings", 2048),
        fc_bias="fc.bias" in tensors,
        qkv_bias=any(name.endswith(".self_attn.q_proj.bias") for name in tensors),
        own_embeddings=own is not None,
        draft_vocab_size=tensors["d2t"].numel() if "d2t" in tensors else None,
        o_bias=any(name.endswith(".self_attn.o_proj.bias") for name in tensors),
        mlp_bias=any(name.endswith(".mlp.gate_proj.bias") for name in tensors),
        qk_norm=any(name.endswith(".self_attn.q_norm.weight") for name in tensors),
        window=window(path, raw),
        own_lm_head=not third and "lm_head.weight" in tensors,
    )


def refuse_misfits(folder: Path, found: dict[str, Tensor], expected: dict[str, torch.Size]) -> None:
    """Raise ValueError naming missing and left-over tensors, wrong shapes, and integers where weights should be."""
    faults = [f"missing {name}" for name in sorted(expected.keys() - found.keys())]
    faults += [f"left over {name}" for name in sorted(found.keys() - expected.keys())]
    faults += [
        f"{name} is {tuple(found[name].shape)} instead of {tuple(shape)}"
        for name, shape in expected.items()
        if name in found and found[name].shape != shape
    ]
    faults += [
        f"{name} is {str(tensor.dtype).removeprefix('torch.')}, not floating point"
        for name, tensor in found.items()
        if name in expected and name != "d2t" and not tensor.is_floating_point()
    ]
    if faults:
        raise ValueError(f"the head in {folder} does not load: {'; '.join(faults)}")
