"""The table of methods: under each name a drafter (who proposes tokens) and a tree (which proposals are kept).

To add a method, add a row. A new kind of tree also needs a class in `decoding/policy.py`, a new drafter one in
`drafters/`. No torch, no models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

HEAD, DRAFT_MODEL, LOOKUP = "head", "draft-model", "ngram"
DRAFTERS = (HEAD, DRAFT_MODEL, LOOKUP)
"""The EAGLE head; an independent draft model; n-gram lookup in the text so far."""

WALK, REJECTION = "walk", "rejection"
RULES = (WALK, REJECTION)
"""How a draft is verified: one walk by the target's own keyed draws, whose output equals plain decoding's token by
token; or, for a chain sampled from its draft model, rejection sampling with min(1, p/q), whose output has the same
distribution."""

_EAGLE_TREE = """
    0 1 2 3
    00 01 02 10 11 20 21 30
    000 001 002 010 011 020 021 100
    0000 0001 0002
    00000 00001
"""
EAGLE_PATHS = tuple(tuple(map(int, path)) for path in _EAGLE_TREE.split())
"""EAGLE-1's static tree as child ranks from the root: 25 nodes, 4/8/8/3/2 over five levels."""


class Tree(Enum):
    """How a method's draft tree comes about."""

    NONE = "nothing is drafted"
    DYNAMIC = "expansion and reranking by what the drafter says (EAGLE-2, sections 4.1 and 4.2)"
    BUDGETED = "as dynamic, with as many levels and nodes in each round as pay on this machine"
    STATIC = "the same places in every round, given as paths"


@dataclass(frozen=True)
class Method:
    """One row. drafter: its own; None: the EAGLE head or, without one, the independent draft model.

    by_value: whether the nodes to expand are chosen by value, not confidence. rerank: whether the best of *all* drafted
    nodes are kept, not the best of every level. chain: one token per level. samples: whether above temperature 0 the
    draft is sampled, and verified by rejection sampling. paths: a static tree's, None where the user gives them.
    """

    name: str
    tree: Tree = Tree.DYNAMIC
    drafter: str | None = None
    by_value: bool = True
    rerank: bool = True
    chain: bool = False
    samples: bool = False
    paths: tuple[tuple[int, ...], ...] | None = None

    @property
    def drafts(self) -> bool:
        return self.tree is not Tree.NONE

    @property
    def static(self) -> bool:
        return self.tree is Tree.STATIC

    @property
    def needs_costs(self) -> bool:
        """Whether it decides by what passes and levels cost on this machine."""
        return self.tree is Tree.BUDGETED

    @property
    def uses(self) -> tuple[str, ...]:
        """Which fields of a `TreeShape` act."""
        if self.static or not self.drafts:
            return ()
        if self.chain:
            return "depth", "max_nodes"
        return ("top_k", "depth", "max_nodes") if self.rerank else ("top_k", "depth")

    def rule(self, greedy: bool) -> str:
        """How its drafts are verified unless told otherwise."""
        return REJECTION if self.samples and not greedy else WALK


_ROWS = (
    Method("plain", Tree.NONE),
    Method("chain", chain=True),
    Method("eagle", Tree.STATIC, paths=EAGLE_PATHS),
    Method("eagle2"),
    Method("eagle2-auto", Tree.BUDGETED),
    Method("eagle2-no-value", by_value=False),
    Method("eagle2-no-rerank", rerank=False),
    Method("eagle2-no-both", by_value=False, rerank=False),
    Method("ngram", drafter=LOOKUP, chain=True),
    Method("sps", drafter=DRAFT_MODEL, chain=True, samples=True),
)
METHODS: Mapping[str, Method] = MappingProxyType({row.name: row for row in _ROWS})
"""What can be asked for by name."""

OWN_TREE = Method("static", Tree.STATIC)
"""A static tree of the user's own, given as paths of child ranks."""

STATIC = OWN_TREE.name
AUTO = "eagle2-auto"

POLICIES = tuple(row.name for row in _ROWS if row.drafts and row.drafter is None)
"""Methods that take any drafter: the tree half of a free combination."""


def method(name: str) -> Method:
    """The row of a method's name, "static" included. Raises ValueError for an unknown one."""
    if name == STATIC:
        return OWN_TREE
    if name not in METHODS:
        raise ValueError(f"policy {name!r} is unknown; choose one of {', '.join(METHODS)}, or give a tree as paths")
    return METHODS[name]


def combine(policy: str, drafter: str | None = None) -> tuple[str, str | None]:
    """A combination by its one name: the method, and the drafter where that is not the method's own.

    policy: a method's name, or "static". drafter: one of `DRAFTERS`, or None for the method's own. Raises ValueError,
    in one sentence, for what is unknown or cannot be combined.
    """
    if policy not in (*METHODS, STATIC):
        raise ValueError(f"policy {policy!r} is unknown; choose one of {', '.join((*METHODS, STATIC))}")
    row = method(policy)
    if drafter is None:
        return policy, None
    if drafter not in DRAFTERS:
        raise ValueError(f"drafter {drafter!r} is unknown; choose one of {', '.join(DRAFTERS)}")
    if not row.drafts:
        raise ValueError(
            f"{policy} decoding drafts nothing, so it takes no drafter; choose another policy or leave it out"
        )
    if row.drafter not in (None, drafter):
        raise ValueError(
            f"method {policy} is a chain drafted by {row.drafter}; for one by {drafter} choose policy chain"
        )
    if drafter == LOOKUP and row.static:
        raise ValueError(
            "prompt lookup guesses one continuation, which fills no static tree; choose chain or an eagle2 policy"
        )
    if row.chain:
        own = next((other.name for other in _ROWS if other.drafter == drafter), None)
        if own is not None:
            return own, None
    return policy, drafter


def drafter_of(name: str, drafter: str | None = None) -> str | None:
    """Whose guesses a combination takes; None where it takes the head's or, without one, the draft model's."""
    return drafter or method(name).drafter
