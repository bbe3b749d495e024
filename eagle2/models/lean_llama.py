"""A Llama target's forward pass with few operations, for one run on a CPU: what `Target` uses instead of the stock one.

It computes the stock module's function from the stock module's weights. Every step of it, attention included, gives a
row the same bits whatever other rows are in the pass and wherever in the cache its ancestors lie:

- products: the int4 kernel treats each row alone (`four_bit`);
- norms, rotary positions, activations: each row or element alone;
- attention: float32 matrix products sum over the columns in order, so that columns with weight 0 in between change
  nothing. That holds as long as the library takes the same path, which depends on the shape: rows are therefore filled
  up to a multiple of 4, columns to a multiple of 64 and at least 384. Beyond some 1,500 columns it has other paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

ROWS, COLUMNS, FEWEST_COLUMNS = 4, 64, 384
"""What attention's rows and columns are filled up to, and the fewest columns: below, products take another path."""


class LeanCache:
    """Keys and values float32 [layers, kv_heads, capacity, head_dim]; `length` rows are in use, zeros lie behind."""

    def __init__(self, layers: int, kv_heads: int, head_dim: int) -> None:
        self.shape = (layers, kv_heads, head_dim)
        self.length = 0
        self.keys = self.values = torch.zeros(layers, kv_heads, 0, head_dim)

    @property
    def columns(self) -> int:
        """How many columns attention works over: those in use, filled up."""
        return max(FEWEST_COLUMNS, -(-self.length // COLUMNS) * COLUMNS)

    def take(self, rows: int) -> slice:
        """Places for so many new rows, behind the others."""
        taken = slice(self.length, self.length + rows)
        self.length += rows
        if self.columns > self.keys.shape[2]:
            layers, kv_heads, head_dim = self.shape
            room = self.columns + self.columns // 2 - self.keys.shape[2]
            more = torch.zeros(layers, kv_heads, room, head_dim)
            self.keys, self.values = (torch.cat([old, more], dim=2) for old in (self.keys, self.values))
        return taken

    def keep(self, committed: int, rows: Tensor) -> None:
        """Of all after the first `committed` rows keep `rows` (int64 [a], counted from there, ascending) alone."""
        end = committed + len(rows)
        for buffer in (self.keys, self.values):
            buffer[:, :, committed:end] = buffer.index_select(2, rows + committed)
            buffer[:, :, end : self.length] = 0
        self.length = end


@dataclass(frozen=True)
class Layer:
    """One decoder layer: two norms' weights float32 [hidden], and four products, those of one input fused."""

    attention_norm: Tensor
    qkv: nn.Module
    attention_out: nn.Module
    mlp_norm: Tensor
    gate_up: nn.Module
    mlp_out: nn.Module


class LeanLlama:
    """The forward pass of a stock Llama module, whose layers' fused matrices are given as `Layer`s."""

    def __init__(self, model: PreTrainedModel, layers: Sequence[Layer]) -> None:
        config = model.config
        self.layers = tuple(layers)
        self.embedding, self.lm_head = model.model.embed_tokens, model.lm_head
        self.norm = model.model.norm.weight.float()
        self.eps = config.rms_norm_eps
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        self.scale = model.model.layers[0].self_attn.scaling
        positions = torch.arange(config.max_position_embeddings)[None]
        cos, sin = model.model.rotary_emb(torch.zeros(1, 1, 1), positions)  # float32 [1, positions, head_dim] each
        half = self.head_dim // 2
        self.cos = cos[0, :, None]  # [positions, 1, head_dim]
        self.sin = torch.cat([-sin[0, :, None, :half], sin[0, :, None, half:]], dim=-1)  # signed for `_rotate`

    def begin(self) -> LeanCache:
        return LeanCache(len(self.layers), self.kv_heads, self.head_dim)

    def __call__(
        self, cache: LeanCache, tokens: Tensor, positions: Tensor, seen: Tensor, states: Sequence[int], last: bool
    ) -> tuple[Tensor, Tensor]:
        """One pass over tokens, positions int64 [T], appended to the cache; seen bool [T, cached + T].

        Returns logits float32 [T, V], or [1, V] of the last row alone, and the hidden states named by `states`, side by
        side, [T, ...]: state i enters layer i or leaves layer i - 1; -1 is what the final norm gives the LM head.
        """
        place = cache.take(len(tokens))
        mask = self._mask(seen, cache.columns)
        cos, sin = self.cos[positions], self.sin[positions]
        hidden = self.embedding(tokens).float()
        wanted = {}
        for index, layer in enumerate(self.layers):
            if index in states:
                wanted[index] = hidden.bfloat16()
            normed = self._normed(hidden, layer.attention_norm)
            mixed = self._attend(layer.qkv(normed), cache.keys[index], cache.values[index], place, cos, sin, mask)
            hidden = hidden + layer.attention_out(mixed)
            gate, up = layer.gate_up(self._normed(hidden, layer.mlp_norm)).chunk(2, dim=-1)
            hidden = hidden + layer.mlp_out(F.silu(gate) * up)
        final = self._normed(hidden, self.norm)
        wanted |= {len(self.layers): hidden.bfloat16(), -1: final}
        features = [wanted[state] for state in states]
        logits = self.lm_head(final[-1:] if last else final).float()
        return logits, features[0] if len(features) == 1 else torch.cat(features, dim=-1)

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """RMSNorm in float32, for products in bfloat16."""
        return F.rms_norm(hidden, weight.shape, weight, self.eps).bfloat16()

    def _mask(self, seen: Tensor, columns: int) -> Tensor:
        """Additive float32 [1, rows * group, columns], rows filled up; what fills up sees the first column alone."""
        rows = -(-len(seen) // ROWS) * ROWS
        full = seen.new_zeros(rows, columns)
        full[: len(seen), : seen.shape[1]] = seen
        full[len(seen) :, 0] = True
        additive = torch.zeros(rows, columns).masked_fill_(~full, -torch.inf)
        return additive.repeat_interleave(self.heads // self.kv_heads, dim=0)[None]

    def _attend(
        self, qkv: Tensor, keys: Tensor, values: Tensor, place: slice, cos: Tensor, sin: Tensor, mask: Tensor
    ) -> Tensor:
        """Attention of new rows: qkv bfloat16 [T, (heads + 2 kv_heads) * head_dim] -> bfloat16 [T, heads * head_dim].

        keys, values [kv_heads, capacity, head_dim] take the new rows at `place`. Query heads that share a key head are
        rows of one product.
        """
        rows, group = len(qkv), self.heads // self.kv_heads
        qkv = qkv.float().unflatten(1, (-1, self.head_dim))  # [T, heads + 2 kv_heads, head_dim]
        turned = _rotate(qkv[:, : -self.kv_heads], cos, sin)
        keys[:, place] = turned[:, self.heads :].transpose(0, 1)
        values[:, place] = qkv[:, -self.kv_heads :].transpose(0, 1)
        columns = mask.shape[2]
        query = turned[:, : self.heads].unflatten(1, (self.kv_heads, group)).transpose(0, 1).flatten(1, 2)
        query = F.pad(query, (0, 0, 0, mask.shape[1] - rows * group))  # [kv_heads, rows filled up * group, head_dim]
        scores = torch.baddbmm(mask, query, keys[:, :columns].transpose(1, 2), alpha=self.scale)
        weights = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp_()
        total = torch.bmm(weights, weights.new_ones(1, 1, 16).expand(self.kv_heads, columns, 16))[..., :1]
        mixed = (torch.bmm(weights, values[:, :columns]) / total)[:, : rows * group]
        return mixed.unflatten(1, (rows, group)).transpose(0, 1).flatten(1).bfloat16()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: x [T, heads, head_dim], cos and sin [T, 1, head_dim]; sin is negative for the first halves."""
    half = x.shape[-1] // 2
    return torch.addcmul(x * cos, torch.cat([x[..., half:], x[..., :half]], dim=-1), sin)
