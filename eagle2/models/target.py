"""The target model behind four verbs: extend, verify, commit, and its embedding and LM head for the drafter.

The only file, with cache.py, that knows transformers' caches, masks and windows. Tree attention needs nothing but a
4D mask and position ids, so any stock causal LM will do whose attention takes them (paper, section 4.2, figure 7).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from accelerate.utils import align_module_device
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from eagle2.decoding.tree import ancestor_mask
from eagle2.models.feature_layers import FEATURE
from eagle2.models.kv_cache import TreeCache
from eagle2.models.lean_llama import LeanCache, LeanLlama

PROVEN_FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "mixtral", "gemma2")
"""Model types with a test of their own; any other must pass `check_tree_attention` when it is loaded."""

MASK_BY_LAYER_TYPE = ("qwen2", "qwen3", "gemma2")
PREFILL_CHUNK = 512
"""Rows per prefill pass: bounds the mask's and the activations' memory."""


@dataclass
class TargetCache:
    """Keys and values of the committed tokens, the root not among them; `length` counts them.

    waiting: positions int64 [P] of the rows verified since the last commit, which lie behind the committed ones.
    """

    layers: TreeCache | LeanCache = field(default_factory=TreeCache)
    length: int = 0
    waiting: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))


class Target:
    """A causal LM as the engine needs it. Raises ValueError for models that cannot verify a tree.

    states: the hidden states, side by side, that it hands out as features: the last, unless a head wants others.
    lean: a pass that computes the model's function with fewer operations and runs instead of the model's own.
    """

    def __init__(self, model: PreTrainedModel, lean: LeanLlama | None = None) -> None:
        self.model = model.eval()
        self.lean = lean
        self.config = model.config.get_text_config()
        refuse_unfit(model)
        self.vocab_size: int = self.config.vocab_size
        self.hidden_size: int = self.config.hidden_size
        self.layers: int = self.config.num_hidden_layers
        self.states: tuple[int, ...] = FEATURE
        self.context_limit: int = getattr(self.config, "max_position_embeddings", None) or 2**31
        self.end_ids = frozenset(_ids(model.config.eos_token_id) + _ids(model.generation_config.eos_token_id))
        self._boundary = _longrope_boundary(self.config)
        self._sees_all = self.config.model_type in PROVEN_FAMILIES and not _windows(self.config)
        if self.config.model_type not in PROVEN_FAMILIES:
            check_tree_attention(self)

    def handing_out(self, states: Sequence[int]) -> Target:
        """The same model, whose features are these hidden states side by side (EAGLE-3), instead of the last one.

        State 0 enters the first layer, state i the layer after i others.
        """
        other = copy.copy(self)
        other.states = tuple(states)
        return other

    @property
    def device(self) -> torch.device:
        """Where tokens go in and logits and features come out, also of a spread model; the drafter lives there too."""
        embeddings = self.model.get_input_embeddings()
        hook = getattr(embeddings, "_hf_hook", None)  # accelerate's, on a spread model: weights may lie elsewhere
        place = getattr(hook, "execution_device", None)
        return embeddings.weight.device if place is None else torch.device(place)

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def embed(self, tokens: Tensor) -> Tensor:
        """Token embeddings [..., hidden] of ids [...], as the model's own embedding module gives them."""
        return self.model.get_input_embeddings()(tokens.to(self.device)).to(self.device)

    def lm_head(self, features: Tensor) -> Tensor:
        """Logits [..., V] of features [..., hidden]; what some families do to logits afterwards is left out."""
        return self.model.get_output_embeddings()(features).to(self.device)

    def lm_head_over(self, tokens: Tensor) -> nn.Linear:
        """The LM head of `tokens` int64 [D] alone: a copy of their rows, features [..., hidden] -> logits [..., D].

        Raises ValueError where the model's LM head has no plain rows to take.
        """
        full = self.model.get_output_embeddings()
        with torch.no_grad(), align_module_device(full):  # of a spread model its weights may lie elsewhere
            if self.lean is not None and self.config.tie_word_embeddings:
                full = self.model.get_input_embeddings()  # the packed LM head's rows, unpacked
            weight, bias = full.weight, getattr(full, "bias", None)
            if not weight.is_floating_point() or weight.shape[1:] != (self.hidden_size,):
                raise ValueError(
                    f"the LM head of {self.config.model_type} is stored as {str(weight.dtype).removeprefix('torch.')} "
                    f"{tuple(weight.shape)}, so the rows of a draft vocabulary cannot be taken from it; "
                    "load the target unquantised, or use a head without d2t"
                )
            part = nn.Linear(self.hidden_size, len(tokens), bias=bias is not None, device="meta")
            chosen = tokens.to(weight.device)
            part.weight = nn.Parameter(weight[chosen].to(self.device), requires_grad=False)
            if bias is not None:
                part.bias = nn.Parameter(bias[chosen].to(self.device), requires_grad=False)
        return part

    def begin(self) -> TargetCache:
        """An empty cache for one run."""
        return TargetCache() if self.lean is None else TargetCache(self.lean.begin())

    def depth_limit(self, committed: int) -> int:
        """Levels of draft tokens that fit after `committed` tokens, the root the last of them and the bonus to come.

        Rotary scaling of type "longrope" changes for a whole pass once a position reaches its original length, so no
        tree straddles that boundary either.
        """
        room = self.context_limit - committed - 1
        if self._boundary is not None and committed - 1 < self._boundary:
            room = min(room, self._boundary - committed)
        return max(room, 0)

    @torch.inference_mode()
    def extend(self, cache: TargetCache, ids: list[int]) -> tuple[Tensor, Tensor]:
        """Append committed tokens. Returns their features [n, hidden] and the last one's logits float32 [V]."""
        features = []
        for start, end in self._chunks(cache.length, len(ids)):
            tokens = torch.tensor(ids[start:end], device=self.device)
            positions = torch.arange(cache.length, cache.length + len(tokens), device=self.device)
            causal = torch.ones(len(tokens), len(tokens), dtype=torch.bool, device=self.device).tril()
            logits, hidden = self._forward(cache, tokens, positions, causal, logits_to_keep=1)
            cache.length += len(tokens)
            features.append(hidden)
        return torch.cat(features), logits[-1]

    @torch.inference_mode()
    def verify(self, cache: TargetCache, tokens: Tensor, positions: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """One pass over the flattened sequence: tokens, positions int64 [T], visible bool [T, T] (row sees column).

        Returns logits float32 [T, V] and features [T, hidden]. The cache then holds T rows too many until `commit`; a
        pass before that may see them too: its visible is [T, P + T] after P such rows (an independent draft model).
        """
        out = self._forward(cache, tokens, positions, visible, logits_to_keep=0)
        cache.waiting = torch.cat([cache.waiting.to(positions.device), positions])
        return out

    @torch.inference_mode()
    def commit(self, cache: TargetCache, slots: Tensor) -> None:
        """Of the rows verified since the last commit keep `slots` (int64 [a], ascending; 0 is the root) alone."""
        cache.layers.keep(cache.length, slots)
        cache.length += len(slots)
        cache.waiting = cache.waiting[:0]

    def _forward(
        self, cache: TargetCache, tokens: Tensor, positions: Tensor, visible: Tensor, logits_to_keep: int
    ) -> tuple[Tensor, Tensor]:
        if self.lean is not None:
            seen = torch.cat([visible.new_ones(len(positions), cache.length), visible], dim=1)
            return self.lean(cache.layers, tokens, positions, seen, self.states, last=logits_to_keep == 1)
        inner = [state for state in self.states if state != self.layers]
        with self._last_output() as last:
            out = self._pass(cache, tokens, positions, visible, logits_to_keep, inner)
        features = [out.hidden_states[s] if s in inner else last[0] for s in self.states]
        features = [state[0].to(self.device) for state in features]
        return out.logits[0].to(self.device).float(), features[0] if len(features) == 1 else torch.cat(features, dim=-1)

    def _pass(
        self,
        cache: TargetCache,
        tokens: Tensor,
        positions: Tensor,
        visible: Tensor,
        logits_to_keep: int,
        states: list[int],
    ) -> CausalLMOutputWithPast:
        return self.model(
            input_ids=tokens[None],
            attention_mask=self._mask(cache, positions, visible),
            position_ids=positions[None],
            cache=cache.layers,
            use_cache=True,
            output_hidden_states=states or False,
            logits_to_keep=logits_to_keep,
        )

    @contextmanager
    def _last_output(self) -> Iterator[list[Tensor]]:
        """Within it, the last layer's output [1, T, hidden] before the final norm is put in the list, if wanted: the
        stock model hands out its last state only after the norm."""
        caught: list[Tensor] = []
        if self.layers not in self.states:
            yield caught
            return
        blocks = next(m for m in self.model.modules() if isinstance(m, nn.ModuleList) and len(m) == self.layers)
        hook = blocks[-1].register_forward_hook(
            lambda _, __, out: caught.append(out[0] if isinstance(out, tuple) else out)
        )
        try:
            yield caught
        finally:
            hook.remove()

    def _chunks(self, length: int, new: int) -> list[tuple[int, int]]:
        """Pieces (start, end) in which `new` ids are fed after `length` cached ones."""
        if self._boundary is None:
            return [(start, min(start + PREFILL_CHUNK, new)) for start in range(0, new, PREFILL_CHUNK)]
        # Longrope: a prompt goes in one pass, as in stock transformers; what was decoded later crosses the boundary
        # between two passes, as it did then.
        cut = self._boundary - length
        return [(0, cut), (cut, new)] if length and 0 < cut < new else [(0, new)]

    def _mask(self, cache: TargetCache, positions: Tensor, visible: Tensor) -> Tensor | dict[str, Tensor] | None:
        """The additive 4D mask [1, 1, T, all rows], or one for each layer type where the model wants that.

        Additive and in the model's dtype: eager attention adds what it gets, so a bool mask would be silently wrong.
        A sliding window counts positions, not rows, since siblings share a position. A single row behind committed ones
        sees them all and needs none: without one the model takes the faster attention that its own decoding takes.
        """
        if len(positions) == 1 and not len(cache.waiting) and self._sees_all:
            return None
        seen = torch.cat([visible.new_ones(len(positions), cache.length), visible], dim=1)
        committed = torch.arange(cache.length, device=positions.device)
        keys = torch.cat([committed, cache.waiting.to(positions.device), positions])
        window = getattr(self.config, "sliding_window", None)
        near = seen if window is None else seen & (positions[:, None] - keys[None, :] < window)
        if self._by_layer_type():
            return {"full_attention": self._additive(seen), "sliding_attention": self._additive(near)}
        return self._additive(near)

    def _by_layer_type(self) -> bool:
        if self.config.model_type in PROVEN_FAMILIES:
            return self.config.model_type in MASK_BY_LAYER_TYPE
        return "sliding_attention" in (getattr(self.config, "layer_types", None) or ())

    def _additive(self, seen: Tensor) -> Tensor:
        mask = torch.zeros(seen.shape, dtype=self.dtype, device=seen.device)
        return mask.masked_fill(~seen, torch.finfo(self.dtype).min)[None, None]


def refuse_unfit(model: PreTrainedModel) -> None:
    """Raise ValueError, in one sentence, for a model that cannot branch or cannot take a tree mask."""
    config = model.config.get_text_config()
    family = config.model_type
    attention = config._attn_implementation
    kinds = set(getattr(config, "layer_types", None) or ())
    other = sorted(kinds - {"full_attention", "sliding_attention", "chunked_attention"})
    if model.config.is_encoder_decoder:
        raise ValueError(f"{family} is an encoder-decoder model; tree verification needs a decoder-only causal LM")
    if getattr(model, "_is_stateful", False) or other:
        what = f" ({', '.join(other)})" if other else ""
        raise ValueError(
            f"{family} has recurrent or compressed layers{what}; their state cannot branch, so no tree can be verified"
        )
    if "chunked_attention" in kinds:
        raise ValueError(f"{family} attends within fixed chunks of positions, which a tree mask here does not express")
    if attention not in ("sdpa", "eager"):
        raise ValueError(
            f"attention implementation {attention!r} cannot take a tree mask; load the model with 'sdpa' or 'eager'"
        )
    if "dynamic" in _rope_types(config):
        raise ValueError(
            f"{family} is configured with rope type 'dynamic', which changes with the length of a pass and so is not "
            "exact under tree verification; use a model with another rope type (linear, yarn, llama3)"
        )


@torch.inference_mode()
def check_tree_attention(target: Target) -> None:
    """Raise ValueError unless a small tree's logits equal those of its paths, fed as ordinary sequences.

    The paths go through the stock model without mask or cache of ours. The prefix is longer than any window the config
    names, and the nodes compared lie many rows from their parents: attention that counts rows would show.
    """
    family, siblings = target.config.model_type, 12
    prefix = min(8 + max(_windows(target.config), default=0), target.context_limit - siblings - 4)
    ids = [1 + (7 * i) % (target.vocab_size - 1) for i in range(prefix + siblings + 3)]
    parent = torch.tensor([0] * (siblings + 1) + [siblings, 1])  # the root, its children, a child of the last and first
    depth = torch.tensor([0] + [1] * siblings + [2, 2])
    try:
        cache = target.begin()
        target.extend(cache, ids[:prefix])
        tree, features = target.verify(
            cache,
            torch.tensor(ids[prefix:], device=target.device),
            (depth + prefix).to(target.device),
            ancestor_mask(parent).to(target.device),
        )
        error = 0.0 if features.shape[-1] == target.hidden_size else float("inf")
        for path in ([0, siblings, siblings + 1], [0, 1, siblings + 2], [0, siblings // 2]):
            stock_ids = ids[:prefix] + [ids[prefix + slot] for slot in path]
            stock = target.model(input_ids=torch.tensor([stock_ids], device=target.device)).logits[0, prefix:]
            error = max(error, float((tree[path] - stock.to(target.device).float()).abs().max()))
    except Exception as fault:  # whatever a family we do not know raises is a reason not to use it
        raise ValueError(f"{family} cannot verify a tree: its model refuses the pass ({fault})") from fault
    slack = (1e-3 if target.dtype == torch.float32 else 5e-2) * max(1.0, float(tree.abs().max()))
    if not error <= slack:
        raise ValueError(
            f"{family} gives tree nodes other logits than their paths (off by {error:.2g}), so it cannot be used as a "
            "target: its attention does not follow the mask or the positions it is given"
        )


def _windows(config: object) -> list[int]:
    """Lengths in which some layer of the model sees less than everything, under the names that configs use."""
    found = (getattr(config, name, None) for name in ("sliding_window", "window_size", "attention_chunk_size"))
    return [
        size for value in found for size in (value if isinstance(value, list) else [value]) if isinstance(size, int)
    ]


def _ids(value: int | list[int] | None) -> list[int]:
    return [] if value is None else [value] if isinstance(value, int) else list(value)


def _rope_types(config: object) -> set[str]:
    """Rope types in use; the parameters are one dict, or one for each layer type."""
    parameters = getattr(config, "rope_parameters", None) or {}
    groups = [group for group in parameters.values() if isinstance(group, dict)] or [parameters]
    return {group.get("rope_type", "default") for group in groups}


def _longrope_boundary(config: object) -> int | None:
    """The position from which "longrope" uses its long factors, None for other rope types."""
    if "longrope" not in _rope_types(config):
        return None
    own = getattr(config, "original_max_position_embeddings", None)
    return own or config.rope_parameters.get("original_max_position_embeddings", config.max_position_embeddings)
