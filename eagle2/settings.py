"""Settings a user can give, checked where they are given. Knows nothing of models or tensors.

Names follow the paper (sections 4.1 and 4.2, appendix A); `max_nodes` is its m without the root.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass


def check_integer(name: str, value: object, minimum: int) -> None:
    """Raise TypeError unless `value` is an int (bool is none), ValueError where it is under `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r} ({type(value).__name__})")
    if value < minimum:
        raise ValueError(f"{name} is {value}; it must be at least {minimum}")


def check_number(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a real number, ValueError where it is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r} ({type(value).__name__})")
    if not is_finite(value):
        raise ValueError(f"{name} is {value}; it must be finite")


def is_finite(value: float) -> bool:
    """Whether a number is one that a float can hold; JSON has integers that none can."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_ids(ids: Sequence[int], vocabulary: int, context_limit: int) -> list[int]:
    """The prompt as a list of ints. Raises TypeError or ValueError in one sentence, before any forward pass."""
    if isinstance(ids, str | bytes | set | frozenset | dict) or not hasattr(ids, "__len__"):
        raise TypeError(
            f"ids must be a list of token ids, not {type(ids).__name__}; encode text with encode_chat first"
        )
    if not len(ids):
        raise ValueError("the prompt is empty; give at least one token id")
    if len(ids) >= context_limit:
        raise ValueError(
            f"the prompt has {len(ids)} tokens and the model's context holds {context_limit}, new tokens included; "
            f"shorten it to {context_limit - 1} tokens or fewer"
        )
    prompt = []
    for place, token in enumerate(ids):
        try:
            prompt.append(operator.index(None if isinstance(token, bool) else token))
        except TypeError as error:
            raise TypeError(f"id {place} of the prompt is {token!r}; it must be an integer") from error
        if not 0 <= prompt[-1] < vocabulary:
            raise ValueError(f"id {place} of the prompt is {token}; the vocabulary has ids 0 to {vocabulary - 1}")
    return prompt


@dataclass(frozen=True)
class TreeShape:
    """How large a draft tree may grow (paper, appendix A).

    top_k: nodes expanded in each level, and children that each of them gets.
    depth: levels of draft tokens.
    max_nodes: nodes kept by reranking and verified; the root is not counted.

    The paper's "60 tokens, depth 6, 10 nodes" is TreeShape(10, 6, 59). The defaults are sized for a CPU, where 26
    rows cost the target more than twice one row, and 60 nearly four times. The root is a row too: sixteen nodes are 17
    rows, and where a pass over 16 is cheaper ("eagle2-auto" times both), 15 nodes cost less and accept nearly as much.
    """

    top_k: int = 8
    depth: int = 5
    max_nodes: int = 16

    def __post_init__(self) -> None:
        check_integer("top_k", self.top_k, 1)
        check_integer("depth", self.depth, 1)
        check_integer("max_nodes", self.max_nodes, 1)


@dataclass(frozen=True)
class Sampling:
    """The target's distribution: temperature, then top-k, then top-p over what top-k left, renormalised.

    temperature: 0 means greedy (argmax); otherwise logits are divided by it.
    top_p: in (0, 1]; 1 is off. top_k: 0 is off. seed: keys the noise together with each token's position.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature)
        if self.temperature < 0:
            raise ValueError(f"temperature is {self.temperature}; it must be 0 (greedy) or more")
        check_number("top_p", self.top_p)
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be above 0 and at most 1 (1 keeps every token)")
        check_integer("top_k of sampling", self.top_k, 0)
        check_integer("seed", self.seed, 0)

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


METHODS = (
    "plain",
    "chain",
    "eagle",
    "eagle2",
    "eagle2-auto",
    "eagle2-no-value",
    "eagle2-no-rerank",
    "eagle2-no-both",
    "ngram",
    "sps",
)
"""What `policy` may be by name. `plain` drafts nothing; `eagle` brings its own shape; `eagle2-auto` uses up to the one
given, as far as it pays on this machine; `ngram` and `sps` bring their own drafter: prompt lookup, and an independent
draft model."""

WALK, REJECTION = "walk", "rejection"
RULES = (WALK, REJECTION)
"""How the target's verdict on a draft comes about: one walk by its own keyed draws, whose output equals plain
decoding's token by token; or, of a chain that was sampled from its draft model, rejection sampling with min(1, p/q),
whose output has the same distribution."""


def rule_of(policy: str, sampling: Sampling) -> str:
    """The rule a method goes by unless told otherwise: above temperature 0 "sps" samples its drafts."""
    return REJECTION if policy == "sps" and not sampling.greedy else WALK


AUTO = "eagle2-auto"
"""The method that needs to know what rounds cost on this machine."""

CHAINS = ("chain", "ngram", "sps")
"""Methods that guess one token per level."""

STATIC = "static"
"""The name of a static tree of one's own, given as paths of child ranks."""

_EAGLE_TREE = """
    0 1 2 3
    00 01 02 10 11 20 21 30
    000 001 002 010 011 020 021 100
    0000 0001 0002
    00000 00001
"""
EAGLE_PATHS = tuple(tuple(map(int, path)) for path in _EAGLE_TREE.split())
"""EAGLE-1's static tree as child ranks from the root: 25 nodes, 4/8/8/3/2 over five levels."""

EAGLE_SHAPE = TreeShape(top_k=4, depth=5, max_nodes=25)
"""EAGLE-1's static tree: 4/8/8/3/2 nodes over five levels."""


def pool_size(top_k: int, depth: int) -> int:
    """Nodes drafted before reranking: top_k in the first level, top_k x top_k in each one after it."""
    return top_k + (depth - 1) * top_k * top_k


def effective_shape(method: str, shape: TreeShape, vocabulary: int) -> TreeShape | None:
    """What a method makes of a shape: `top_k` clamped to the vocabulary, `max_nodes` to what can be kept.

    None for "plain". Raises ValueError for an unknown method.
    """
    if method not in METHODS:
        raise ValueError(f"policy {method!r} is unknown; choose one of {', '.join(METHODS)}, or give a tree as paths")
    if method == "plain":
        return None
    if method == "eagle":
        return EAGLE_SHAPE
    top_k = min(1 if method in CHAINS else shape.top_k, vocabulary)
    if method in ("eagle2-no-rerank", "eagle2-no-both"):
        return TreeShape(
            top_k, shape.depth, top_k * shape.depth
        )  # the best of every level stay, whatever was asked for
    return TreeShape(top_k, shape.depth, min(shape.max_nodes, pool_size(top_k, shape.depth)))
