"""The EAGLE-3 head (EAGLE-3 paper, section 3): three fused features, one wider decoder layer, its own norm and LM head.

Module names are those of the public checkpoints. What it predicts is no longer a feature of the target: its own output
goes in again when it drafts on, unnormed. Trees and verification are EAGLE-2's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from eagle2.models.draft_vocabulary import target_ids
from eagle2.models.eagle_head import Attention, GatedMLP, HeadConfig, rotary
from eagle2.models.kv_cache import KeyValueRows


@dataclass(frozen=True)
class Eagle3Config:
    """What an EAGLE-3 head is. layer: sizes of its layer, vocabulary and biases.

    states: the target's hidden states it fuses (see `states`), each `target_hidden_size` wide; states_source: where
    that is known from. norm_before_fc: they are normed together before fc. norm_before_residual: what passes by the
    attention is the normed feature. own_lm_head: else the target's serves. fc_norm: each state is normed by itself
    before fc. norm_output: what goes in again is its output after its own norm. fuses: whether it has an fc; one
    without takes the target's feature as it is.
    """

    layer: HeadConfig
    states: tuple[int, ...]
    target_hidden_size: int
    states_source: str
    norm_before_fc: bool = False
    norm_before_residual: bool = False
    own_lm_head: bool = True
    fc_norm: bool = False
    norm_output: bool = False
    fuses: bool = True

    @property
    def hidden_size(self) -> int:
        return self.layer.hidden_size

    @property
    def own_embeddings(self) -> bool:
        return self.layer.own_embeddings

    @property
    def max_positions(self) -> int:
        return self.layer.max_positions

    @property
    def draft_vocab_size(self) -> int | None:
        return self.layer.draft_vocab_size

    @property
    def rope(self) -> dict:
        return self.layer.rope


class Eagle3Head(nn.Module):
    """Guesses what follows from (token embedding, fused features) pairs, then from its own output."""

    notes: tuple[str, ...] = ()

    def __init__(self, config: Eagle3Config) -> None:
        super().__init__()
        self.config = config
        layer, fused = config.layer, len(config.states) * config.target_hidden_size
        if config.norm_before_fc:
            self.input_norm = nn.RMSNorm(fused, eps=layer.rms_norm_eps)
        if config.fc_norm:
            norms = (nn.RMSNorm(config.target_hidden_size, eps=layer.rms_norm_eps) for _ in config.states)
            self.fc_norm = nn.ModuleList(norms)
        if config.fuses:
            self.fc = nn.Linear(fused, layer.hidden_size, bias=layer.fc_bias)
        self.midlayer = Midlayer(config)
        self.norm = nn.RMSNorm(layer.hidden_size, eps=layer.rms_norm_eps)
        proposed = layer.draft_vocab_size or layer.vocab_size
        self.lm_head = nn.Linear(layer.hidden_size, proposed, bias=False) if config.own_lm_head else None
        if layer.own_embeddings:
            self.embed_tokens = nn.Embedding(layer.vocab_size, layer.hidden_size)
        if layer.draft_vocab_size is not None:
            self.register_buffer("d2t", torch.zeros(layer.draft_vocab_size, dtype=torch.int64))
        self.rotary = rotary(layer)  # buffers only, none of them saved

    @property
    def states(self) -> tuple[int, ...]:
        return self.config.states

    @property
    def layer(self) -> HeadConfig:
        """Sizes of its decoder layer."""
        return self.config.layer

    @property
    def draft_ids(self) -> Tensor | None:
        """The target's ids of the tokens it can propose, int64 [D] ascending; None: all."""
        return None if self.config.draft_vocab_size is None else target_ids(self.d2t)

    def fuse(self, features: Tensor) -> Tensor:
        """The target's states side by side [T, states x its hidden size] -> [T, hidden], which `forward` takes."""
        features = features.to(self.norm.weight.dtype)
        if self.config.fc_norm:
            states = features.split(self.config.target_hidden_size, dim=-1)
            features = torch.cat([norm(state) for norm, state in zip(self.fc_norm, states, strict=True)], dim=-1)
        if self.config.norm_before_fc:
            features = self.input_norm(features)
        return self.fc(features) if self.config.fuses else features

    def before_lm_head(self, predicted: Tensor) -> Tensor:
        """What the LM head takes of predicted [T, hidden]."""
        return predicted if self.config.norm_output else self.norm(predicted)

    def forward(
        self, embeddings: Tensor, features: Tensor, positions: Tensor, cache: KeyValueRows, visible: Tensor
    ) -> Tensor:
        """Predictions [T, hidden] after the pairs (embeddings, fused features or predictions), both [T, hidden].

        Positions, cache and mask are as in `EagleHead.forward`.
        """
        rope = self.rotary(features[None], positions[None])
        predicted = self.midlayer(embeddings[None].to(features.dtype), features[None], rope, cache, visible)[0]
        return self.norm(predicted) if self.config.norm_output else predicted


class Midlayer(nn.Module):
    """A LLaMA decoder layer whose attention takes [normed embedding, normed feature] at once."""

    def __init__(self, config: Eagle3Config) -> None:
        super().__init__()
        layer = config.layer
        self.norm_before_residual = config.norm_before_residual
        self.input_layernorm = nn.RMSNorm(layer.hidden_size, eps=layer.rms_norm_eps)
        self.hidden_norm = nn.RMSNorm(layer.hidden_size, eps=layer.rms_norm_eps)
        self.self_attn = Attention(layer, inputs=2 * layer.hidden_size)
        self.post_attention_layernorm = nn.RMSNorm(layer.hidden_size, eps=layer.rms_norm_eps)
        self.mlp = GatedMLP(layer)

    def forward(
        self, embeddings: Tensor, features: Tensor, rope: tuple[Tensor, Tensor], cache: KeyValueRows, visible: Tensor
    ) -> Tensor:
        normed = self.hidden_norm(features)
        hidden = normed if self.norm_before_residual else features
        both = torch.cat([self.input_layernorm(embeddings), normed], dim=-1)
        hidden = hidden + self.self_attn(both, rope, cache, visible)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))
