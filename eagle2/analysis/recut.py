"""A recorded pool -> the tree that other settings would have kept, without a model (paper, sections 4.1 and 4.2).

The policies are replayed over what was drafted, so `policy.py` has a second, independent form here: plain lists instead
of tensors. What a recorded pool cannot tell is said, not guessed: `Cut.missing` names the nodes whose children the
settings would have asked for and the recording does not hold. Pure Python; no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eagle2.analysis.target_choices import choices, descend
from eagle2.decoding.budget import Costs, best_budget, rows_fed, width
from eagle2.methods import AUTO, LOOKUP, POLICIES, STATIC
from eagle2.settings import Settings, TreeShape
from eagle2.trace.rounds import ROOT, Round, Trace
from eagle2.tree_paths import Path, Paths, checked, ordered

LIKELIEST = (*POLICIES, STATIC)
"""Methods whose pools hold the likeliest children of each expanded node: the ones that can be cut again."""


@dataclass(frozen=True)
class Cut:
    """A tree over a recorded pool. Everything is pool indices of the recorded round.

    drafted: the nodes that these settings would have drafted, of those recorded, in the order they would have them.
    expanded: those fed to the drafter. kept: those to verify. missing: fed nodes (-1: the root) of whose children some
    or all were not recorded.
    """

    drafted: tuple[int, ...]
    expanded: tuple[int, ...]
    kept: tuple[int, ...]
    missing: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether this is the tree a model would have grown; otherwise it is what the recording holds of it."""
        return not self.missing


def cut(round: Round, shape: TreeShape, by_value: bool = True, rerank: bool = True) -> Cut:
    """Cut a recorded round as EAGLE-2 would have at `shape`, or as one of its ablations (see `policy.Dynamic`).

    Exact for any `max_nodes`, with and without reranking, and for a smaller depth; for another `top_k`, or by
    confidence, as far as the nodes that would have been expanded were. Raises ValueError for a round whose nodes were
    not recorded.
    """
    children = _children(round)
    score = round.value if by_value else round.confidence
    drafted: list[int] = []
    expanded: list[int] = []
    missing: list[int] = []
    fed, best = [ROOT], []
    for depth in range(1, shape.depth + 1):
        found = [children.get(node, [])[: shape.top_k] for node in fed]
        missing += [node for node, those in zip(fed, found, strict=True) if len(those) < shape.top_k]
        level = [node for those in found for node in those]
        drafted += level
        best = sorted(level, key=lambda node: -score[node])[: shape.top_k]  # stable: among equals, as laid out
        if depth < shape.depth:
            fed = best
            expanded += fed
    ranked = sorted(drafted, key=lambda node: -round.value[node])
    kept = ranked[: shape.max_nodes] if rerank else [*expanded, *best]
    return Cut(*_in_pool_order(drafted, drafted, expanded, kept), tuple(missing))


def cut_auto(round: Round, shape: TreeShape, costs: Costs) -> Cut:
    """Cut a recorded round as "eagle2-auto" would have by these costs, `shape` at most (see `policy.Auto`).

    Raises ValueError for a round whose nodes were not recorded.
    """
    children = _children(round)
    drafted: list[int] = []
    expanded: list[int] = []
    missing: list[int] = []
    fed, rows = [ROOT], []
    while fed:
        found = [children.get(node, [])[: shape.top_k] for node in fed]
        missing += [node for node, those in zip(fed, found, strict=True) if len(those) < shape.top_k]
        level = [node for those in found for node in those]
        if not level:
            break  # nothing of it was recorded
        drafted += level
        rows.append(len(fed))
        values, depths = ([column[node] for node in drafted] for column in (round.value, round.depth))
        pays = width(values, depths, rows, shape.top_k, shape.max_nodes, costs) if len(rows) < shape.depth else 0
        fed = sorted(level, key=lambda node: -round.value[node])[:pays]
        expanded += fed
    kept = best_budget(values, rows, shape.max_nodes, costs).nodes
    ranked = sorted(drafted, key=lambda node: -round.value[node])
    return Cut(*_in_pool_order(drafted, drafted, expanded, ranked[:kept]), tuple(missing))


def cut_static(round: Round, paths: Sequence[Sequence[int]], own: Sequence[Sequence[int]] | None = None) -> Cut:
    """The part of a static tree (paths of child ranks from the root) that a recorded pool holds.

    own: as for `places`. Raises ValueError for a round whose nodes were not recorded, and for paths that are no tree.
    """
    node_at = {place: node for node, place in enumerate(places(round, own))} | {(): ROOT}
    wanted = checked(paths)
    held = [path for path in wanted if path in node_at]
    drafted = [node_at[path] for path in held]
    missing = {node_at[path[:-1]] for path in wanted if path not in node_at and path[:-1] in node_at}
    expanded = {node_at[path[:-1]] for path in held if len(path) > 1} | (missing - {ROOT})
    return Cut(*_in_pool_order(drafted, drafted, expanded, drafted), tuple(sorted(missing)))


def places(round: Round, own: Sequence[Sequence[int]] | None = None) -> Paths:
    """Where each recorded node stands, as child ranks from the root: (0, 1) is the second child of the likeliest token.

    own: the paths of the static tree that drafted the round, if one did: it may have skipped ranks. Otherwise the pool
    must hold the likeliest children of each expanded node (`LIKELIEST`). Raises ValueError for a round without nodes.
    """
    _check_recorded(round)
    if own is not None:
        return ordered(own)[: len(round.token)]
    found: list[Path] = []
    ranks: dict[int, int] = {}
    for parent in round.parent:
        rank = ranks[parent] = ranks.get(parent, -1) + 1
        found.append((*(found[parent] if parent != ROOT else ()), rank))
    return tuple(found)


def cut_again(trace: Trace, index: int, settings: Settings) -> Cut:
    """Cut one round of a run as `settings` would have: their policy, with their shape or paths.

    The drafter is the run's. Shapes are clamped to what the recorded run allowed (`effective`) where it met the
    vocabulary, and to the depth that the end of the context left to the round. "eagle2-auto" decides by the run's
    recorded costs. Raises ValueError where the recording cannot tell.
    """
    r, asked = trace.rounds[index], trace.settings
    for policy in (asked.policy, settings.policy):
        if policy not in LIKELIEST:
            raise ValueError(f"a round of policy {policy!r} cannot be cut again from a recorded pool; grow it again")
    if asked.drafter == LOOKUP or settings.drafter not in (None, asked.drafter):
        raise ValueError(
            "a pool holds one drafter's likeliest guesses, not prompt lookup's or another's; grow it again"
        )
    row = settings.method
    if row.needs_costs and trace.costs is None:
        raise ValueError(f"this run recorded no costs for {AUTO} to decide by, so it can only be grown again")
    deepest = max(r.depth, default=0)
    clipped = trace.effective is not None and deepest < trace.effective.depth and not _stopped_itself(trace, r)
    limit = deepest if clipped else settings.shape.depth
    if row.static:
        return cut_static(r, [path for path in settings.fixed_paths if not clipped or len(path) <= limit], asked.paths)
    if asked.paths is not None and any(
        rank and (*path[:-1], rank - 1) not in asked.paths for *path, rank in asked.paths
    ):
        raise ValueError("this run's static tree skips child ranks, so its rounds cannot be cut again; grow them again")
    top_k = 1 if row.chain else settings.shape.top_k
    if "top_k" in asked.method.uses and trace.effective.top_k < asked.shape.top_k:
        top_k = min(top_k, trace.effective.top_k)  # that is all the tokens the drafter knows
    shape = TreeShape(top_k, min(settings.shape.depth, limit), settings.shape.max_nodes)
    if row.needs_costs:
        return cut_auto(r, shape, trace.costs)
    return cut(r, shape, row.by_value, row.rerank)


def _stopped_itself(trace: Trace, r: Round) -> bool:
    """Whether "eagle2-auto" ended a round's tree where it did because no further level paid."""
    if not trace.settings.method.needs_costs or not r.depth:
        return False
    shape, fed = trace.effective, rows_fed(r.depth, r.expanded)
    return not width(r.value, r.depth, fed, shape.top_k, shape.max_nodes, trace.costs)


@dataclass(frozen=True)
class Outcome:
    """What a cut would have brought. accepted: pool indices of its accepted path. verified: rows of the target's pass.

    predicted: 1 + the sum of its kept values. settled: False where the target's known choices ran out inside the tree,
    so that more might have been accepted.
    """

    accepted: tuple[int, ...]
    verified: int
    predicted: float
    settled: bool

    @property
    def tokens(self) -> int:
        """Tokens the round would have brought, bonus included, before stops and caps."""
        return len(self.accepted) + 1


def outcome(round: Round, tree: Cut, chosen: Sequence[int]) -> Outcome:
    """How far the target's choices after the root (see `choices`) would have followed `tree`."""
    kept = set(tree.kept)
    descent = descend(round, chosen)
    accepted = []
    for node in descent.path:
        if node not in kept:
            break
        accepted.append(node)
    last = accepted[-1] if accepted else ROOT
    more = any(round.parent[node] == last for node in kept)
    settled = descent.settled or len(accepted) < len(descent.path) or not more
    return Outcome(tuple(accepted), len(kept) + 1, 1 + sum(round.value[node] for node in kept), settled)


def as_round(rounds: Sequence[Round], index: int, tree: Cut) -> Round:
    """The round as it would have been recorded with `tree`, for the figures; times are left out.

    What the recording does not know stays None: the target's probabilities of nodes it never verified, and the bonus
    token where the known choices ran out. Checks are the recorded walk's, or none where this walk goes further.
    """
    r = rounds[index]
    chosen = choices(rounds, index)
    accepted = outcome(r, tree, chosen).accepted
    place = {ROOT: ROOT} | {node: at for at, node in enumerate(tree.drafted)}
    kept, expanded = set(tree.kept), set(tree.expanded)
    slots = {node: slot for slot, node in enumerate((n for n in tree.drafted if n in kept), start=1)}
    path = (ROOT, *accepted)
    checks = [
        replace(check, node=place[check.node], child=place[child] if child is not None else None)
        for check, at, child in zip(r.checks, path, (*accepted, None), strict=False)
        if check.node == at
    ]
    bonus = chosen[len(accepted)] if len(accepted) < len(chosen) else None
    committed = (*(r.token[node] for node in accepted), *(() if bonus is None else (bonus,)))

    def column(values: Sequence) -> tuple:
        return tuple(values[node] for node in tree.drafted)

    return Round(
        index=r.index,
        prefix_length=r.prefix_length,
        root=r.root,
        accepted=tuple(place[node] for node in accepted),
        bonus=bonus,
        committed=((r.root,) if r.first else ()) + committed,
        finish=None,
        drafted=len(tree.drafted),
        kept=len(tree.kept),
        token=column(r.token),
        parent=tuple(place[r.parent[node]] for node in tree.drafted),
        depth=column(r.depth),
        confidence=column(r.confidence),
        value=column(r.value),
        expanded=tuple(node in expanded for node in tree.drafted),
        slot=tuple(slots.get(node) for node in tree.drafted),
        target_probability=tuple(r.target_probability[n] if n in kept else None for n in tree.drafted),
        fate=tuple(
            "pruned" if node not in kept else "accepted" if node in accepted else "rejected" for node in tree.drafted
        ),
        checks=tuple(checks) if len(checks) == len(path) else (),
    )


def _children(round: Round) -> dict[int, list[int]]:
    """Each expanded node's recorded children, likeliest first."""
    _check_recorded(round)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(round.parent):
        children.setdefault(parent, []).append(node)
    return children


def _check_recorded(round: Round) -> None:
    if not round.token:
        raise ValueError(f"round {round.index + 1} has no recorded nodes, so there is nothing to cut again")


def _in_pool_order(drafted: Sequence[int], *groups: Sequence[int] | set[int]) -> list[tuple[int, ...]]:
    place = {node: at for at, node in enumerate(drafted)}
    return [tuple(sorted(group, key=place.__getitem__)) for group in groups]
