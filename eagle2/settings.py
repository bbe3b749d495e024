"""Settings a user can give, checked where they are given. Knows nothing of models or tensors.

Names follow the paper (sections 4.1 and 4.2, appendix A); `max_nodes` is its m without the root.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eagle2.methods import STATIC, Method, combine, method
from eagle2.tree_paths import checked


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
    return check_tokens(ids, vocabulary, "the prompt")


def check_tokens(ids: Iterable[int], vocabulary: int, where: str) -> list[int]:
    """Token ids as a list of ints. Raises TypeError or ValueError in one sentence; on a GPU a wrong one would end the
    process. where: what they are, for the sentence."""
    checked_ids = []
    for place, token in enumerate(ids):
        try:
            checked_ids.append(operator.index(None if isinstance(token, bool) else token))
        except TypeError as error:
            raise TypeError(f"id {place} of {where} is {token!r}; it must be an integer") from error
        if not 0 <= checked_ids[-1] < vocabulary:
            raise ValueError(f"id {place} of {where} is {token}; the vocabulary has ids 0 to {vocabulary - 1}")
    return checked_ids


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

    @classmethod
    def around(cls, paths: Iterable[Sequence[int]]) -> TreeShape:
        """What a checked static tree reaches: its largest rank + 1, its levels and its nodes."""
        paths = tuple(paths)
        return cls(1 + max(map(max, paths)), max(map(len, paths)), len(paths))


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


def pool_size(top_k: int, depth: int) -> int:
    """Nodes drafted before reranking: top_k in the first level, top_k x top_k in each one after it."""
    return top_k + (depth - 1) * top_k * top_k


def effective_shape(name: str, shape: TreeShape, vocabulary: int) -> TreeShape | None:
    """What a method makes of a shape: `top_k` clamped to the vocabulary, `max_nodes` to what can be kept.

    None for "plain"; a method with a static tree of its own brings its shape. Raises ValueError for an unknown method.
    """
    row = method(name)
    if not row.drafts:
        return None
    if row.paths is not None:
        return TreeShape.around(row.paths)
    top_k = min(1 if row.chain else shape.top_k, vocabulary)
    if not row.rerank:  # the best of every level stay, whatever was asked for
        return TreeShape(top_k, shape.depth, top_k * shape.depth)
    return TreeShape(top_k, shape.depth, min(shape.max_nodes, pool_size(top_k, shape.depth)))


@dataclass(frozen=True)
class Settings:
    """What a run was asked for. `paths`: a static tree's nodes as child ranks from the root, else None.

    drafter: one of `methods.DRAFTERS`, where it is not the policy's own; see `methods.combine`.
    """

    policy: str = "eagle2"
    shape: TreeShape = field(default_factory=TreeShape)
    sampling: Sampling = field(default_factory=Sampling)
    max_new_tokens: int = 64
    paths: tuple[tuple[int, ...], ...] | None = None
    drafter: str | None = None

    def __post_init__(self) -> None:
        policy, drafter = combine(self.policy, self.drafter)  # one combination has one name
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "drafter", drafter)
        if (self.policy == STATIC) != (self.paths is not None):
            raise ValueError(f"a tree of one's own is policy {STATIC!r} with paths; no other policy takes paths")
        if self.paths is not None:
            checked(self.paths)
        check_integer("max_new_tokens", self.max_new_tokens, 1)

    @property
    def method(self) -> Method:
        """The method's row of the table."""
        return method(self.policy)

    @property
    def tree(self) -> str | tuple[tuple[int, ...], ...]:
        """What an engine takes as its policy: the method's name, or the paths of a static tree."""
        return self.policy if self.paths is None else self.paths

    @property
    def fixed_paths(self) -> tuple[tuple[int, ...], ...] | None:
        """The static tree that is drafted in every round: the user's or the method's own; None for other trees."""
        return self.method.paths if self.paths is None else self.paths

    @property
    def rule(self) -> str:
        """How its drafts are verified unless told otherwise: one of `methods.RULES`."""
        return self.method.rule(self.sampling.greedy)
