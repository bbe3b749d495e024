"""What each step of a round looks like: one letter per drafted node and per mask row, over points that never move.

expand level 1…d, rerank, flatten & mask, verify, accept. Decided here once; figures and the browser only apply it. The
letters' looks are in `theme`. Knows nothing of Plotly, positions or words.
"""

from __future__ import annotations

from dataclasses import dataclass

from eagle2.trace.rounds import ROOT, Round

HIDDEN, DRAFTED, NEW, FED, KEPT, PRUNED, VISITED, ACCEPTED, REJECTED, CUT = "-dnxkpvarc"
FATE_LETTERS = {"accepted": ACCEPTED, "cut": CUT, "rejected": REJECTED, "pruned": PRUNED}
ROW_HIDDEN, ROW_MASK, ROW_VISITED, ROW_ACCEPTED = "-mva"


@dataclass(frozen=True)
class Phase:
    """One step. key: "expand", "rerank", "flatten", "verify", "accept" or "prefill".

    level: which level an "expand" step adds, else None. nodes: a letter per pool index. rows: a letter per row of the
    mask, the root's first. bonus: whether the bonus token is seen. note: what stands behind a label: the "value", the
    "slot", or the "target"'s probability. cut: whether the top-m cut is drawn. focus: pool indices (-1 the root) that a
    scrolled picture should show.
    """

    key: str
    level: int | None
    nodes: str
    rows: str
    bonus: bool
    note: str
    cut: bool
    focus: tuple[int, ...]

    @property
    def name(self) -> str:
        """Unique within a round: "expand-2", "verify"."""
        return self.key if self.level is None else f"{self.key}-{self.level}"


def walk(round: Round) -> tuple[int, ...]:
    """The nodes the target agreed with, in order: the accepted path before any cut."""
    return tuple(check.child for check in round.checks if check.child is not None) or round.accepted


def phases(round: Round) -> tuple[Phase, ...]:
    """All steps of a round. Without drafted nodes only those that still mean something."""
    if round.bonus is None:
        return (Phase("prefill", None, "", "", False, "value", False, (ROOT,)),)
    if not round.token:
        return (
            Phase("verify", None, "", ROW_VISITED, False, "target", False, (ROOT,)),
            Phase("accept", None, "", ROW_ACCEPTED, True, "target", False, (ROOT,)),
        )
    steps = [expand(round, level) for level in range(1, max(round.depth) + 1)]
    kept = "".join(PRUNED if slot is None else KEPT for slot in round.slot)
    flattened = round.flattened
    rows = 1 + len(flattened)
    path = walk(round)
    seen = set(path)
    best = max(range(len(round.value)), key=lambda i: (round.value[i], -i))
    root_and_best = (ROOT, best)
    steps.append(Phase("rerank", None, kept, ROW_HIDDEN * rows, False, "value", True, root_and_best))
    steps.append(Phase("flatten", None, kept, ROW_MASK * rows, False, "slot", True, root_and_best))
    steps.append(
        Phase(
            "verify",
            None,
            "".join(VISITED if i in seen else letter for i, letter in enumerate(kept)),
            ROW_VISITED + "".join(ROW_VISITED if i in seen else ROW_MASK for i in flattened),
            False,
            "target",
            True,
            (ROOT, *path),
        )
    )
    steps.append(
        Phase(
            "accept",
            None,
            "".join(FATE_LETTERS[fate] for fate in round.fate),
            ROW_ACCEPTED + "".join(ROW_ACCEPTED if i in seen else ROW_MASK for i in flattened),
            True,
            "value",
            True,
            (ROOT, *path),
        )
    )
    return tuple(steps)


def expand(round: Round, level: int) -> Phase:
    """The step that adds a level: what was fed to the drafter, and the children this gave."""

    def letter(index: int) -> str:
        depth = round.depth[index]
        if depth > level:
            return HIDDEN
        if depth == level:
            return NEW
        return FED if depth == level - 1 and round.expanded[index] else DRAFTED

    nodes = "".join(letter(index) for index in range(len(round.token)))
    fed = tuple(i for i, state in enumerate(nodes) if state == FED) or (ROOT,)
    rows = ROW_HIDDEN * (1 + len(round.flattened))
    return Phase("expand", level, nodes, rows, False, "value", False, (ROOT, fed[0]))
