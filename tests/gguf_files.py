"""A tiny random Llama as a GGUF file of 4-bit blocks, with a tokenizer, as llama.cpp's converter would write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quants
from transformers import LlamaConfig, LlamaForCausalLM

VOCAB, HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 96, 64, 96, 2, 4, 2, 16
MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def config(**other: object) -> LlamaConfig:
    sizes = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "eos_token_id": 1,
    }
    return LlamaConfig(**{**sizes, **other})


def write(path: Path, kind: GGMLQuantizationType = GGMLQuantizationType.Q4_1, seed: int = 0) -> Path:
    """The model's file. Matrices are stored as `kind`, embeddings as Q8_0, norms in float32."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config()).float()
    weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*(chr(33 + token) for token in range(VOCAB - 1)), "ab"])
    writer.add_token_types([1] * VOCAB)
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(1)
    _add(writer, "token_embd.weight", weights["model.embed_tokens.weight"], GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"])
    for layer in range(LAYERS):
        for name, module in MATRICES.items():
            matrix = weights[f"model.layers.{layer}.{module}.weight"]
            if name in ("attn_q", "attn_k"):
                matrix = interleaved(matrix, HEADS if name == "attn_q" else KV_HEADS)
            _add(writer, f"blk.{layer}.{name}.weight", matrix, kind)
        for name, module in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights[f"model.layers.{layer}.{module}.weight"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key matrix in GGUF's order: the two halves of each head take turns."""
    halves = matrix.reshape(heads, 2, len(matrix) // heads // 2, -1)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(matrix.shape))


def _add(writer: GGUFWriter, name: str, matrix: np.ndarray, kind: GGMLQuantizationType) -> None:
    writer.add_tensor(name, quants.quantize(matrix, kind), raw_dtype=kind)
