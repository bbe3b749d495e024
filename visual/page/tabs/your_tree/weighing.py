"""What static trees, and EAGLE-2's beside them, would have brought: in one round, and over a whole run. No Gradio.

Everything comes from recorded pools, so nothing here needs a model; where a recording does not hold all that a tree
would have drafted, its number is a lower bound or none, and says so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from eagle2.analysis import static_trees
from eagle2.analysis.recut import cut_again, outcome, places
from eagle2.analysis.target_choices import choices
from eagle2.methods import STATIC
from eagle2.settings import Settings, TreeShape
from eagle2.trace.rounds import Round, Trace
from eagle2.tree_paths import Paths, ordered
from visual.server.conversation import Turn

ROWS = ("own", "eagle", "same", "recorded")
"""What is compared: one's own tree, EAGLE's static one, EAGLE-2's of as many nodes, and of the run's size."""
REMEMBERED = 256
"""Means over whole runs that are kept; each costs a cut of every round."""


@dataclass(frozen=True)
class Brought:
    """Tokens a round, the bonus included. exact: otherwise it might have been more, had all its nodes been drafted."""

    tokens: float
    exact: bool


@dataclass(frozen=True)
class Row:
    """One tree of a comparison. key: one of `ROWS`.

    predicted: 1 + the sum of its values, as far as `whole`: whether all its nodes are known. here: what it brings in
    the round. mean: over the run; None where unknown.
    """

    key: str
    settings: Settings
    nodes: int
    depth: int
    predicted: float
    whole: bool
    here: Brought
    mean: Brought | None = None


def compared(own: Settings, tree: Paths) -> dict[str, Settings]:
    """The settings to compare for a run of settings `own`."""
    dynamic = replace(own, policy="eagle2", paths=None)
    own_tree, eagle = replace(own, policy=STATIC, paths=tree), replace(own, policy="eagle", paths=None)
    as_many = replace(dynamic, shape=replace(own.shape, max_nodes=len(tree)))
    return dict(zip(ROWS, (own_tree, eagle, as_many, dynamic), strict=True))


class Weighing:
    """Remembers what it has worked out for whole runs, which grow while one draws."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple, object] = OrderedDict()

    def rows(self, turn: Turn, index: int, tree: Paths) -> list[Row]:
        """The comparison in round `index`; trees of which its recording tells nothing are left out."""
        trace = _bare(turn)
        rows = []
        for key, settings in compared(turn.settings, tree).items():
            row = _row(trace, index, key, settings)
            if row is not None:
                rows.append(replace(row, mean=self._mean(turn, trace, settings)))
        return rows

    def grown(self, turn: Turn, tree: Paths, grow: Callable[[Settings], Round]) -> list[Row]:
        """The same with trees that a model grows: exact, in this round."""
        trace, rows = _bare(turn), []
        for key, settings in compared(turn.settings, tree).items():
            r = grow(settings)
            here = Brought(len(r.accepted) + 1, True)
            mean = self._mean(turn, trace, settings)
            rows.append(Row(key, settings, r.kept, max(r.depth, default=0), r.predicted, True, here, mean))
        return rows

    def ways(self, turn: Turn) -> list[static_trees.Way]:
        """The target's way through each recorded round."""
        own, rounds = turn.settings.paths, tuple(turn.rounds)
        drafted = (index for index, r in enumerate(rounds) if r.token)
        return self._once((turn.run, len(rounds)), lambda: [static_trees.way(rounds, index, own) for index in drafted])

    def _mean(self, turn: Turn, trace: Trace, settings: Settings) -> Brought | None:
        if settings.method.static:
            found = static_trees.mean(set(settings.fixed_paths), self.ways(turn))
            return found and Brought(found.tokens, found.settled)
        key = (turn.run, len(trace.rounds), settings.policy, settings.shape)
        return self._once(key, lambda: _dynamic_mean(trace, settings))

    def _once(self, key: tuple, work: Callable[[], object]) -> object:
        if key not in self._known:
            self._known[key] = work()
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]


def kept_places(turn: Turn, index: int) -> Paths:
    """The nodes that a round verified, as a static tree. Raises ValueError where none were recorded."""
    r = turn.rounds[index]
    place = places(r, turn.settings.paths)
    return ordered(place[node] for node in r.flattened)


def _bare(turn: Turn) -> Trace:
    """The run without texts, which no cut reads."""
    return Trace((), turn.settings, turn.effective, turn.pair, {}, tuple(turn.rounds))


def _row(trace: Trace, index: int, key: str, settings: Settings) -> Row | None:
    """None where the recording does not tell: EAGLE-2 chooses among nodes, so none of them may be missing."""
    r = trace.rounds[index]
    try:
        made = cut_again(trace, index, settings)
    except ValueError:
        return None
    if settings.method.static:
        tree = settings.fixed_paths
        length, settled = static_trees.accepted(set(tree), static_trees.way(trace.rounds, index, trace.settings.paths))
        shape, predicted = TreeShape.around(tree), 1 + sum(r.value[node] for node in made.kept)
        here = Brought(length + 1, settled)
        return Row(key, settings, shape.max_nodes, shape.depth, predicted, made.exact, here)
    if not made.exact:
        return None
    found = outcome(r, made, choices(trace.rounds, index))
    depth = max((r.depth[node] for node in made.kept), default=0)
    return Row(key, settings, len(made.kept), depth, found.predicted, True, Brought(found.tokens, found.settled))


def _dynamic_mean(trace: Trace, settings: Settings) -> Brought | None:
    rows = [_row(trace, index, "", settings) for index, r in enumerate(trace.rounds) if r.token]
    found = [row.here for row in rows if row is not None]
    if not found or len(found) < len(rows):
        return None
    return Brought(sum(here.tokens for here in found) / len(found), all(here.exact for here in found))
