"""The EAGLE head (EAGLE paper, section 4.1): fc over [embedding, feature], then one decoder layer -> next feature.

Module names are those of the public checkpoints, so a state dict loads strictly. It has no embeddings (unless a
checkpoint brings some), no LM head and no final norm: the target's serve. The decoder layer has no input norm. A head
may propose only a part of the target's tokens, its draft vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from eagle2.models.draft_vocabulary import target_ids
from eagle2.models.feature_layers import FEATURE
from eagle2.models.kv_cache import KeyValueRows


@dataclass(frozen=True)
class HeadConfig:
    """Sizes of an EAGLE-1/2 head. rope: transformers' rope parameters (rope_type, rope_theta, ...).

    fc_bias, qkv_bias, own_embeddings: whether the checkpoint holds those tensors. draft_vocab_size: how many tokens it
    can propose, named by its tensor d2t (see `vocabulary`); None: all of the target's. qk_norm: each head's queries and
    keys are normed before they are turned (as in Qwen3). window: positions a row sees, its own among them; None: all.
    """

    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float
    rope: dict
    max_positions: int
    fc_bias: bool = True
    qkv_bias: bool = False
    own_embeddings: bool = False
    draft_vocab_size: int | None = None
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    window: int | None = None
    own_lm_head: bool = False


class EagleHead(nn.Module):
    """Guesses the feature of the next position from (token embedding, feature) pairs.

    states: which of the target's hidden states it takes. lm_head: its own, or None, as in most. notes: what its users
    should know of it.
    """

    states = FEATURE
    notes: tuple[str, ...] = ()

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=config.fc_bias)
        self.layers = nn.ModuleList([DecoderLayer(config)])
        proposed = config.draft_vocab_size or config.vocab_size
        self.lm_head = nn.Linear(config.hidden_size, proposed, bias=False) if config.own_lm_head else None
        if config.own_embeddings:
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        if config.draft_vocab_size is not None:
            self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))
        self.rotary = rotary(config)  # buffers only, none of them saved

    @property
    def layer(self) -> HeadConfig:
        """Sizes of its decoder layer."""
        return self.config

    @property
    def draft_ids(self) -> Tensor | None:
        """The target's ids of the tokens it can propose, int64 [D] ascending; None: all."""
        return None if self.config.draft_vocab_size is None else target_ids(self.d2t)

    def fuse(self, features: Tensor) -> Tensor:
        """The target's features as `forward` takes them: as they are."""
        return features

    def before_lm_head(self, predicted: Tensor) -> Tensor:
        """What the LM head takes of predicted features: all of it, since the target's were normed."""
        return predicted

    def forward(
        self, embeddings: Tensor, features: Tensor, positions: Tensor, cache: KeyValueRows, visible: Tensor
    ) -> Tensor:
        """Predicted features [T, hidden] after the pairs (embeddings, features), both [T, hidden], at `positions` [T].

        The pair at position i is (embedding of token i + 1, feature of token i). Their keys and values are appended to
        `cache`; `visible` bool [T, cached + T] says which columns each row may attend to.
        """
        hidden = self.fc(torch.cat([embeddings, features.to(embeddings.dtype)], dim=-1))[None]
        rope = self.rotary(hidden, positions[None])
        return self.layers[0](hidden, rope, cache, visible)[0]


class DecoderLayer(nn.Module):
    """A LLaMA decoder layer without its input norm: EAGLE's first and only one."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = GatedMLP(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden: Tensor, rope: tuple[Tensor, Tensor], cache: KeyValueRows, visible: Tensor) -> Tensor:
        hidden = hidden + self.self_attn(hidden, rope, cache, visible)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Attention(nn.Module):
    """Grouped-query attention with rotary positions over the cached rows and its own."""

    def __init__(self, config: HeadConfig, inputs: int | None = None) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        inputs = inputs or config.hidden_size  # EAGLE-3's is twice as wide
        width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.q_proj = nn.Linear(inputs, width, bias=config.qkv_bias)
        self.k_proj = nn.Linear(inputs, kv_width, bias=config.qkv_bias)
        self.v_proj = nn.Linear(inputs, kv_width, bias=config.qkv_bias)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=config.o_bias)
        self.q_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps) if config.qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps) if config.qk_norm else nn.Identity()

    def forward(self, hidden: Tensor, rope: tuple[Tensor, Tensor], cache: KeyValueRows, visible: Tensor) -> Tensor:
        query, key, value = (
            project(hidden).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # [1, heads, T, head_dim]
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = turned(self.q_norm(query), self.k_norm(key), rope)
        keys, values = cache.append(key, value)
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=visible, enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class GatedMLP(nn.Module):
    """SwiGLU, as in LLaMA."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


def turned(query: Tensor, key: Tensor, rope: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Queries and keys [1, heads, T, head_dim] turned by their positions, in as many of their first dimensions as
    cos and sin [1, T, turned] have."""
    width = rope[0].shape[-1]
    rotated = apply_rotary_pos_emb(query[..., :width], key[..., :width], *rope)
    return tuple(torch.cat([new, old[..., width:]], dim=-1) for new, old in zip(rotated, (query, key), strict=True))


def rotary(config: HeadConfig) -> LlamaRotaryEmbedding:
    """transformers' rotary embedding; it computes any position, also past `max_positions`.

    A partial_rotary_factor narrows it, whatever the rope's type ("proportional" alone keeps the width and turns the
    first dimensions faster than the rest).
    """
    rope, width = dict(config.rope), config.head_dim
    if rope["rope_type"] != "proportional":
        width = int(width * rope.pop("partial_rotary_factor", 1.0))
    return LlamaRotaryEmbedding(
        LlamaConfig(
            hidden_size=config.hidden_size,
            num_attention_heads=config.heads,
            head_dim=width,
            max_position_embeddings=config.max_positions,
            rope_parameters=rope,
        )
    )
