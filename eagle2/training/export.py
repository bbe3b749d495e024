"""A head -> a folder in the public layout: config.json beside model.safetensors."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from eagle2.models.eagle_head import EagleHead


def save_head(head: EagleHead, folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """Write `head` so that `checkpoint.load_head` reads it back; weights in `dtype`, the vocabulary map as it is."""
    config = head.config
    told = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab_size,
        "rms_norm_eps": config.rms_norm_eps,
        **_rope(config.rope),
        "max_position_embeddings": config.max_positions,
        "bias": config.fc_bias,
        "qkv_bias": config.qkv_bias,
        "torch_dtype": str(dtype).removeprefix("torch."),
    }
    if config.draft_vocab_size is not None:
        told["draft_vocab_size"] = config.draft_vocab_size
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    tensors = {
        name: tensor.to(dtype if tensor.is_floating_point() else tensor.dtype).cpu().contiguous()
        for name, tensor in head.state_dict().items()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _rope(rope: dict) -> dict:
    """Rope settings in the place where tools of all ages look for them."""
    scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
    told = {"rope_theta": rope["rope_theta"]}
    return told if scaling.get("rope_type", "default") == "default" else {**told, "rope_scaling": scaling}
