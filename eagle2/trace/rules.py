"""What must hold inside a round and between rounds, whoever made them. No torch, no files.

Used on every trace that is read, and by the tests on every round the engine yields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from eagle2.methods import AUTO, REJECTION, WALK
from eagle2.settings import TreeShape, pool_size
from eagle2.trace.rounds import NODE_COLUMNS, ROOT, Round, Trace

MOST_TOP_TOKENS = 64
"""Of the target's likeliest tokens that are recorded at one node."""


def excess(trace: Trace, most: TreeShape) -> Iterator[str]:
    """Every way in which a round is larger than a tree of shape `most`, as sentences; cheap, so checked first."""
    pool = pool_size(most.top_k, most.depth)
    for index, r in enumerate(trace.rounds):
        sizes = {
            "drafted nodes": (max(len(r.token), len(r.parent), len(r.depth)), pool),
            "kept nodes": (len(r.slot) - r.slot.count(None), most.max_nodes),
            "levels": (max(r.depth, default=0), most.depth),
            "children of one node": (max(Counter(r.parent).values(), default=0), most.top_k),
            "checks": (len(r.checks), most.depth + 1),
            "likeliest tokens in one check": (max((len(c.top_tokens) for c in r.checks), default=0), MOST_TOP_TOKENS),
        }
        for name, (size, limit) in sizes.items():
            if size > limit:
                yield f"round {index} has {_short(size)} {name}; at most {limit} are read"


def _short(size: int) -> str:
    """A file can give a depth of any number of digits."""
    return str(size) if size < 10**18 else "more than 10^18"


def contradictions(trace: Trace) -> Iterator[str]:
    """Every way in which the trace contradicts itself, as sentences; none if it is sound."""
    if trace.settings.method.needs_costs != (trace.costs is not None):
        yield f"a run with policy {AUTO!r} has the costs it decided by, and no other run has any"
    if trace.effective is None and trace.settings.method.drafts:
        yield "only a run with policy 'plain' has no effective shape"
    if unspelled := trace.used_ids() - trace.tokens.keys():
        yield f'"tokens" of the trace lacks the bytes of id {min(unspelled)}'
    committed = list(trace.prompt_ids)
    rules = (WALK, trace.settings.rule)
    for index, r in enumerate(trace.rounds):
        if r.rule not in rules:
            yield f"round {index} was verified by {r.rule} sampling, which its run's settings do not lead to"
        yield from (f"round {index} contradicts itself: {fault}" for fault in faults(r))
        root_at = len(committed) if r.first else len(committed) - 1  # round 0 commits its own root
        if r.index != index or r.prefix_length != root_at or (index and [r.root] != committed[-1:]):
            yield f"round {index} does not follow from the rounds before it"
        if r.finish is not None and index < len(trace.rounds) - 1:
            yield f"round {index} ends the run, and yet more rounds follow"
            return
        committed += r.committed


def faults(r: Round) -> Iterator[str]:
    """Every way in which one round contradicts itself; what later rules build on is checked before them."""
    for check in (_count_faults, _tree_faults, _verdict_faults, _committed_faults):
        found = list(check(r))
        yield from found
        if found:
            return


def _count_faults(r: Round) -> Iterator[str]:
    if len({len(getattr(r, column)) for column in NODE_COLUMNS}) > 1:
        yield "its node columns differ in length"
        return
    if r.token and (len(r.token) != r.drafted or sum(slot is not None for slot in r.slot) != r.kept):
        yield "it counts other nodes than it holds"
    if r.kept > r.drafted or len(r.accepted) > r.kept or (r.bonus is None and (r.drafted or not r.first)):
        yield "its counts cannot be"
    if any(node >= r.drafted for node in r.accepted):
        yield "its accepted path leaves the pool"


def _tree_faults(r: Round) -> Iterator[str]:
    slots = 0
    for node, (parent, depth, value, slot) in enumerate(zip(r.parent, r.depth, r.value, r.slot, strict=True)):
        shallower = r.depth[node - 1] if node else 1
        if parent >= node or depth != (1 if parent == ROOT else r.depth[parent] + 1) or depth < shallower:
            yield f"node {node} has parent {parent} and depth {depth}, which its place in the pool does not allow"
            return
        if parent != ROOT and (value > r.value[parent] or not r.expanded[parent]):
            yield f"node {node} is worth more than its parent, or that was never expanded"
        if slot is not None:
            slots += 1
            if slot != slots or (parent != ROOT and r.slot[parent] is None):
                yield f"node {node} is kept out of order or without its parent"
        if (slot is None) != (r.target_probability[node] is None):
            yield f"node {node} was kept and not verified, or verified and not kept"


def _verdict_faults(r: Round) -> Iterator[str]:
    if r.token:
        if any(r.parent[node] != parent for parent, node in zip((ROOT, *r.accepted), r.accepted, strict=False)):
            yield "its accepted nodes are no path from the root"
            return
        last = r.accepted[-1] if r.accepted else ROOT
        if any(r.parent[node] == last and r.token[node] == r.bonus for node in r.flattened):
            yield "its walk stopped above a node that holds the token drawn"
        committed = len(r.committed) - r.first
        fates = {node: "accepted" if step < committed else "cut" for step, node in enumerate(r.accepted)}
        for node, slot in enumerate(r.slot):
            fate = fates.get(node, "pruned" if slot is None else "rejected")
            if r.fate[node] != fate or (slot is None and node in fates):
                yield f"node {node} cannot be {r.fate[node]}"
    if r.rule == REJECTION and r.parent != tuple(range(ROOT, len(r.parent) - 1)):
        yield "its draft was verified as a sampled chain and is none"
    if r.rule != REJECTION and any(check.chance is not None for check in r.checks):
        yield "a check names a chance of acceptance where the walk draws by none"
    if r.checks:
        walked = [(check.node, check.child) for check in r.checks]
        drawn = [check.drawn for check in r.checks]
        path = [r.token[node] for node in r.accepted] if r.token else []
        if walked != list(zip((ROOT, *r.accepted), (*r.accepted, None), strict=True)) or drawn != [*path, r.bonus]:
            yield "its checks are not those of its accepted path"
        if any(len(check.top_tokens) != len(check.top_probabilities) for check in r.checks):
            yield "a check names tokens without probabilities"


def _committed_faults(r: Round) -> Iterator[str]:
    drawn: list[int | None] = [r.root] if r.first else []  # None: drawn, and not recorded
    drawn += [r.token[node] if r.token else None for node in r.accepted]
    drawn += [] if r.bonus is None else [r.bonus]
    if len(r.committed) > len(drawn) or (r.finish is None and len(r.committed) < len(drawn)):
        yield f"it commits {len(r.committed)} ids where {len(drawn)} were drawn"
    if any(want not in (None, got) for want, got in zip(drawn, r.committed, strict=False)):
        yield "it commits other ids than it accepted"
