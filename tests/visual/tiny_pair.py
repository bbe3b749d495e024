"""A whole pair in a folder, made in a second: a random Llama with a real byte-level tokenizer and chat template, and a
random head in the public layout. The page runs for real on it.

The target's layers only disturb what its embeddings say, and the head guesses from the embeddings: the two agree often
enough that rounds have accepted paths of every length.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny import random_eagle3_head
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HIDDEN, VOCABULARY, CONTEXT = 32, 300, 2048
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = ("the tree of the target and the draft", "user assistant system", "one two three four five six seven eight")


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE: 256 bytes, two special tokens, and merges learned from a few words."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=1,
        show_progress=False,
    )
    bpe.train_from_iterator(TEXT, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=END)
    made.chat_template = TEMPLATE
    return made


def write_target(folder: Path, layers: int = 2) -> LlamaForCausalLM:
    words = tokenizer()
    words.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        tie_word_embeddings=False,
    )
    torch.manual_seed(5)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(10)
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_(0.4)
            layer.mlp.down_proj.weight.mul_(0.4)
        model.lm_head.weight[words.eos_token_id] = 0  # its logit is always 0, never the largest: runs end by length
    model.save_pretrained(folder)
    return model


def write_head(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(9)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape) * 0.1

    layer = "layers.0."
    tensors = {
        "fc.weight": torch.cat([torch.eye(HIDDEN) / 3, 0.3 * noise(HIDDEN, HIDDEN)], dim=1),
        f"{layer}self_attn.q_proj.weight": noise(32, HIDDEN),
        f"{layer}self_attn.k_proj.weight": noise(16, HIDDEN),
        f"{layer}self_attn.v_proj.weight": noise(16, HIDDEN),
        f"{layer}self_attn.o_proj.weight": noise(HIDDEN, 32),
        f"{layer}mlp.gate_proj.weight": noise(48, HIDDEN),
        f"{layer}mlp.up_proj.weight": noise(48, HIDDEN),
        f"{layer}mlp.down_proj.weight": noise(HIDDEN, 48),
        f"{layer}post_attention_layernorm.weight": torch.ones(HIDDEN),
    }
    save_file(tensors, folder / "model.safetensors")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "bias": False,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def write_eagle3(folder: Path) -> tuple[str, str]:
    """A deeper target and an EAGLE-3 head for it, untrained, whose config does not say which hidden states it takes."""
    write_target(folder / "target", layers=8)
    write_head(folder / "head")  # for its config
    head = random_eagle3_head(hidden=HIDDEN, own_lm_head=False, states=(2, 4, 5))
    config = json.loads((folder / "head" / "config.json").read_text(encoding="utf-8")) | {"intermediate_size": 40}
    (folder / "head" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(head.state_dict(), folder / "head" / "model.safetensors")
    return str(folder / "target"), str(folder / "head")


def write(folder: Path) -> tuple[str, str]:
    """Both halves under `folder`; the paths to give as target and head."""
    write_target(folder / "target")
    write_head(folder / "head")
    return str(folder / "target"), str(folder / "head")
