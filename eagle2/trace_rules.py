"""What must hold inside a round and between rounds, whoever made them. No torch, no files.

Used on every trace that is read, and by the tests on every round the engine yields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eagle2.trace import NODE_COLUMNS, ROOT, Round, Trace


def contradictions(trace: Trace) -> Iterator[str]:
    """Every way in which the trace contradicts itself, as sentences; none if it is sound."""
    if unspelled := trace.used_ids() - trace.tokens.keys():
        yield f'"tokens" of the trace lacks the bytes of id {min(unspelled)}'
    committed = len(trace.prompt_ids)
    for index, r in enumerate(trace.rounds):
        yield from (f"round {index} contradicts itself: {fault}" for fault in faults(r))
        root_at = committed if r.first else committed - 1  # round 0 commits its own root
        if r.index != index or r.prefix_length != root_at:
            yield f"round {index} does not follow from the rounds before it"
        if r.finish is not None and index < len(trace.rounds) - 1:
            yield f"round {index} ends the run, and yet more rounds follow"
        committed += len(r.committed)


def faults(r: Round) -> Iterator[str]:
    """Every way in which one round contradicts itself."""
    sizes = {len(getattr(r, column)) for column in NODE_COLUMNS}
    if len(sizes) > 1:
        yield "its node columns differ in length"
        return
    recorded = len(r.token)
    if recorded and (recorded != r.drafted or sum(slot is not None for slot in r.slot) != r.kept):
        yield "it counts other nodes than it holds"
    if r.kept > r.drafted or len(r.accepted) > r.kept or (r.bonus is None and (r.drafted or not r.first)):
        yield "its counts cannot be"
    if any(node >= recorded for node in r.accepted) and recorded:
        yield "its accepted path leaves the pool"
        return
    if recorded:
        tree = list(_tree_faults(r))
        yield from tree
        if tree:
            return
        yield from _verdict_faults(r)
    yield from _committed_faults(r)


def _tree_faults(r: Round) -> Iterator[str]:
    slots = 0
    for node, (parent, depth, value, slot) in enumerate(zip(r.parent, r.depth, r.value, r.slot, strict=True)):
        if parent >= node or depth != (1 if parent == ROOT else r.depth[parent] + 1):
            yield f"node {node} has parent {parent} and depth {depth}"
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
    if any(r.parent[node] != parent for parent, node in zip((ROOT, *r.accepted), r.accepted, strict=False)):
        yield "its accepted nodes are no path from the root"
    for node, (slot, fate) in enumerate(zip(r.slot, r.fate, strict=True)):
        possible = ("pruned",) if slot is None else ("accepted", "cut") if node in r.accepted else ("rejected",)
        if fate not in possible:
            yield f"node {node} cannot be {fate}"
    if r.checks:
        walked = [(check.node, check.child) for check in r.checks]
        drawn = [check.drawn for check in r.checks]
        if walked != list(zip((ROOT, *r.accepted), (*r.accepted, None), strict=True)) or drawn != [*_path(r), r.bonus]:
            yield "its checks are not those of its accepted path"
        if any(len(check.top_tokens) != len(check.top_probabilities) for check in r.checks):
            yield "a check names tokens without probabilities"


def _committed_faults(r: Round) -> Iterator[str]:
    most = r.first + len(r.accepted) + (r.bonus is not None)
    if len(r.committed) > most or (r.finish is None and len(r.committed) < most):
        yield f"it commits {len(r.committed)} ids where {most} were drawn"
    everything: Sequence[int | None] = (r.root,) * r.first + (tuple(_path(r)) if r.token else (None,) * len(r.accepted))
    everything = (*everything, r.bonus)
    if any(want not in (None, got) for want, got in zip(everything, r.committed, strict=False)):
        yield "it commits other ids than it accepted"


def _path(r: Round) -> list[int]:
    return [r.token[node] for node in r.accepted]
