"""A Llama target from a GGUF file whose matrices stay in 4 bits: read once, unpacked in seconds.

The stock module is built around the packed matrices, so that everything that takes a transformers model takes this one;
`LeanLlama` computes the same function from the same matrices with fewer operations.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, ReaderTensor
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from eagle2.models.four_bit import GROUP, Blocks, EightBitLinear, FourBitLinear, parts_of
from eagle2.models.lean_llama import Layer, LeanLlama

KINDS = (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q4_1)
"""Block formats that torch's int4 product holds as they are."""


def four_bit_target(file: Path, config: PreTrainedConfig) -> tuple[PreTrainedModel, LeanLlama]:
    """The stock module around packed matrices, and the lean pass over it; norms and embeddings are bfloat16.

    config: the model's, from `AutoConfig`. Raises ValueError for a model that is no plain Llama, or whose matrices are
    in other formats than Q4_0 and Q4_1 (embeddings: Q8_0, half or single precision).
    """
    refuse_other_models(config)
    tensors = {tensor.name: tensor for tensor in GGUFReader(file).tensors}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    rotary = type(model.model.rotary_emb)(config=config)  # its tables are no weights of the file
    model.model.rotary_emb = rotary
    embedding = blocks(tensors["token_embd.weight"]) if _is_q8(tensors["token_embd.weight"]) else None
    dense = embedding.dense() if embedding else values(tensors["token_embd.weight"])
    model.model.embed_tokens.weight = _parameter(dense)
    output = tensors.get("output.weight")  # absent where the LM head is tied to the embeddings
    model.lm_head = lm_head(blocks(output) if output is not None else embedding, dense)
    model.model.norm.weight = _parameter(values(tensors["output_norm.weight"]))
    layers = [_fill(layer, tensors, f"blk.{index}.", config) for index, layer in enumerate(model.model.layers)]
    model.eval()
    return model, LeanLlama(model, layers)


def refuse_other_models(config: PreTrainedConfig) -> None:
    """Raise ValueError for models whose layers are not exactly Llama's, or whose rotary tables change as it runs."""
    rope = (config.rope_parameters or {}).get("rope_type", "default")
    for name, value, allowed in (
        ("the model type", config.model_type, ("llama",)),
        ("the activation", config.hidden_act, ("silu",)),
        ("attention_bias", config.attention_bias, (False,)),
        ("mlp_bias", config.mlp_bias, (False,)),
        ("the rope type", rope, ("default", "linear", "llama3")),
    ):
        if value not in allowed:
            raise ValueError(
                f"4-bit weights are kept for plain Llama models only, and {name} here is {value!r}; "
                "load it with --weights float32"
            )


def lm_head(stored: Blocks | None, embedding: Tensor) -> nn.Module:
    """The LM head: packed where the file's blocks allow it, else the embeddings' rows in bfloat16."""
    if stored is None:
        head = nn.Linear(embedding.shape[1], embedding.shape[0], bias=False, device="meta")
        head.weight = _parameter(embedding)
        return head
    return FourBitLinear(stored) if stored.codes.min() >= 0 else EightBitLinear(stored)


def blocks(tensor: ReaderTensor) -> Blocks:
    """A quantised tensor's blocks. Raises ValueError for formats other than Q4_0, Q4_1 and Q8_0."""
    inputs, outputs = (int(size) for size in tensor.shape)
    kind = tensor.tensor_type
    raw = np.asarray(tensor.data).reshape(outputs, inputs // GROUP, -1)
    halves = 2 if kind == GGMLQuantizationType.Q4_1 else 1  # how many 2-byte floats begin a block
    header = torch.from_numpy(raw[..., : 2 * halves].copy().view(np.float16).astype(np.float32))
    scale = header[..., 0]
    body = raw[..., 2 * halves :]
    if _is_q8(tensor):
        codes = torch.from_numpy(body.copy().view(np.int8).reshape(outputs, inputs).astype(np.int32))
        return Blocks(codes, scale, torch.zeros_like(scale))
    if kind not in KINDS:
        raise ValueError(
            f"tensor {tensor.name} is stored as {kind.name}; matrices stay packed for Q4_0 and Q4_1 only: "
            "load the model with --weights float32"
        )
    nibbles = np.concatenate([body & 15, body >> 4], axis=-1)  # the low halves of 16 bytes, then the high ones
    codes = torch.from_numpy(nibbles.reshape(outputs, inputs).astype(np.int32))
    return Blocks(codes, scale, header[..., 1] if halves == 2 else -8 * scale)


def values(tensor: ReaderTensor) -> Tensor:
    """A tensor that is stored unquantised, float32 in torch's order of dimensions."""
    array = np.asarray(tensor.data)
    if array.dtype not in (np.float16, np.float32):
        raise ValueError(f"tensor {tensor.name} is stored as {tensor.tensor_type.name}; it must be F16 or F32")
    return torch.from_numpy(array.astype(np.float32).reshape(tuple(int(n) for n in reversed(tensor.shape))))


def in_halves(stored: Blocks, heads: int) -> Blocks:
    """Rows of a query or key matrix in transformers' order: GGUF keeps the two halves of each head interleaved."""
    return Blocks(*(part.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2) for part in stored))


def _fill(layer: nn.Module, tensors: dict[str, ReaderTensor], prefix: str, config: PreTrainedConfig) -> Layer:
    """Put one layer's matrices into the stock module, and return them fused."""
    query, key, value, out, gate, up, down = (
        blocks(tensors[f"{prefix}{name}.weight"])
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    )
    query = in_halves(query, config.num_attention_heads)
    key = in_halves(key, config.num_key_value_heads)
    qkv, gate_up = FourBitLinear(query, key, value), FourBitLinear(gate, up)
    attention, mlp = layer.self_attn, layer.mlp
    attention.q_proj, attention.k_proj, attention.v_proj = parts_of(qkv, [len(m.codes) for m in (query, key, value)])
    attention.o_proj, mlp.down_proj = FourBitLinear(out), FourBitLinear(down)
    mlp.gate_proj, mlp.up_proj = parts_of(gate_up, [len(gate.codes), len(up.codes)])
    norms = []
    for module, name in ((layer.input_layernorm, "attn_norm"), (layer.post_attention_layernorm, "ffn_norm")):
        module.weight = _parameter(values(tensors[f"{prefix}{name}.weight"]))
        norms.append(module.weight.float())
    return Layer(norms[0], qkv, attention.o_proj, norms[1], gate_up, mlp.down_proj)


def _is_q8(tensor: ReaderTensor) -> bool:
    return tensor.tensor_type == GGMLQuantizationType.Q8_0


def _parameter(weights: Tensor) -> nn.Parameter:
    return nn.Parameter(weights.bfloat16(), requires_grad=False)
