"""A tiny model that ends turns now and then, and samplers of its chats."""

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from eagle2.training.chats import Chat, ChatFormat, ChatSampler
from eagle2.training.fast_llama import LeanLlama
from eagle2.training.options import ChatSettings

VOCAB, END = 32, 2
FORMAT = ChatFormat(prefix=(1, 5, 6), assistant=(1, 7), user=(1, 8), end=END, special=frozenset({0, 1, END}))
GREEDY = ((0.0, 1.0),)
ANSWER = 6
"""Where the answers of the tiny target's fifty texts begin."""


def tiny_llama(**changes) -> LlamaForCausalLM:
    """A random model that ends turns now and then, and that is far from ties."""
    torch.manual_seed(0)
    config = {
        "vocab_size": VOCAB,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,
    }
    model = LlamaForCausalLM(LlamaConfig(**config | changes)).eval()
    with torch.no_grad():
        for layer in model.model.layers:  # norms of one would hide a norm that is left out
            layer.input_layernorm.weight.uniform_(0.5, 1.5)
            layer.post_attention_layernorm.weight.uniform_(0.5, 1.5)
        model.lm_head.weight[[0, 1]] = 0.0  # control tokens stay possible, but rare
    return model


def make_sampler(model, prompts=None, **settings) -> ChatSampler:
    settings = ChatSettings(**{"slots": 3, "max_length": 40, "max_user": 12, "room": 10, "top_k": 8} | settings)
    return ChatSampler(LeanLlama(model, settings.slots, settings.max_length), FORMAT, settings, prompts)


def take(sampler: ChatSampler, count: int) -> list[Chat]:
    return [chat for chat, _ in zip(sampler, range(count), strict=False)]


def random_prompts(count: int, turns: int = 1) -> list[list[list[int]]]:
    """No two begin alike."""
    rng = np.random.default_rng(0)
    return [[[3 + i, *rng.integers(3, VOCAB, rng.integers(0, 5)).tolist()] for _ in range(turns)] for i in range(count)]


@torch.inference_mode()
def greedy_answer(model, ids: list[int], max_length: int) -> list[int]:
    """The oracle: the stock model, one sequence, no cache."""
    ids, start = list(ids), len(ids)
    while len(ids) < max_length and (len(ids) == start or ids[-1] != END):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[start:]
