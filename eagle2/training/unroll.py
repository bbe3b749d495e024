"""The head over whole chats at once, for several draft steps with its own guesses (HASS, section 3.2; EAGLE-3, 3.2).

Step 1 sees true features everywhere, as after a verification. In step s every row sees what it will see s levels deep
in a tree: true features up to where the draft began, and for the last s - 1 positions what the head itself guessed.
All rows of a step are computed together; only the last s - 1 columns differ from plain causal attention.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from eagle2.models.eagle_head import EagleHead


def unroll(head: EagleHead, embeddings: Tensor, features: Tensor, steps: int, first: int = 0) -> Iterator[Tensor]:
    """Yield, for each draft step, guessed features [B, T - first, hidden]; row i guesses the feature of position i + 1.

    Row i holds the pair (embedding of token i + 1, feature of token i): embeddings, features [B, T, hidden]. The rows
    before `first` are attended to, and guess nothing: for a prompt, keys and values are all that its rows have to give.
    In step s the s - 1 rows from `first` on have no guesses to stand on: they repeat what step 1 gives the first of
    them, and no loss should count them. Chats shorter than T are padded behind, where nothing looks.
    """
    length = features.shape[1]
    cos, sin = head.rotary(features, torch.arange(length, device=features.device)[None])
    keys: list[Tensor] = []  # of each step so far: [B, kv_heads, T, head_dim], in further steps [.., T - first, ..]
    values: list[Tensor] = []
    for step in range(steps):
        hidden = head.fc(torch.cat([embeddings, features], dim=-1))
        layer = head.layers[0]
        mixed = _attend(layer.self_attn, hidden, (cos, sin), keys, values, first)
        hidden = (hidden if step else hidden[:, first:]) + mixed
        hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        yield hidden
        if not step:
            embeddings, features, cos, sin = (rows[:, first:] for rows in (embeddings, features, cos, sin))
        features = torch.cat([features[:, :1], hidden[:, :-1]], dim=1)


def _attend(
    attention, hidden: Tensor, cos_sin: tuple[Tensor, Tensor], keys: list[Tensor], values: list[Tensor], first: int
) -> Tensor:
    """One step's attention, for the rows from `first` on; its keys and values are added to the earlier steps'."""
    query = hidden if keys else hidden[:, first:]
    query, key, value = (
        project(rows).unflatten(-1, (-1, attention.head_dim)).transpose(1, 2)
        for project, rows in ((attention.q_proj, query), (attention.k_proj, hidden), (attention.v_proj, hidden))
    )
    cos, sin = cos_sin
    query, _ = apply_rotary_pos_emb(query, query, cos[:, -query.shape[2] :], sin[:, -query.shape[2] :])
    _, key = apply_rotary_pos_emb(key, key, cos, sin)
    keys.append(key)
    values.append(value)
    later, rows, length = len(keys) - 1, query.shape[2], keys[0].shape[2]
    seen = torch.ones(rows, length, dtype=torch.bool, device=hidden.device).tril(first - later)  # true features
    if not later:
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, enable_gqa=True)
        return attention.o_proj(mixed.transpose(1, 2).flatten(-2))
    group = query.shape[1] // key.shape[1]
    query = query.unflatten(1, (-1, group)) * attention.head_dim**-0.5  # [B, kv_heads, group, rows, head_dim]
    true = query @ keys[0].unsqueeze(2).transpose(-1, -2)  # [B, kv_heads, group, rows, T]
    true = true.masked_fill(~seen, float("-inf"))
    # Of the keys made from guesses a row sees one of each step, the newest its own, the one before a row back, ...
    own = [(query * _back(k, later - t).unsqueeze(2)).sum(-1, keepdim=True) for t, k in enumerate(keys) if t]
    weights = torch.cat([true, *own], dim=-1).softmax(dim=-1)
    mixed = weights[..., :length] @ values[0].unsqueeze(2)
    for t, v in enumerate(values):
        if t:
            mixed = mixed + weights[..., length + t - 1, None] * _back(v, later - t).unsqueeze(2)
    return attention.o_proj(mixed.flatten(1, 2).transpose(1, 2).flatten(-2))


def _back(rows: Tensor, places: int) -> Tensor:
    """Row i of the result is row i - places of [B, kv_heads, T, head_dim]; the first rows repeat row 0."""
    if not places:
        return rows
    return torch.cat([rows[:, :, :1].expand(-1, -1, places, -1), rows[:, :, :-places]], dim=2)
