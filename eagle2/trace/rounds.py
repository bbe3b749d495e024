"""What happened: rounds as columns of plain Python values, nodes as views on them. No torch, no text, no models.

The engine yields one `Round` per draft-and-verify cycle; pictures, metrics and files read nothing else.
`files.py` writes and reads whole runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from eagle2.decoding.budget import Costs
from eagle2.methods import HEAD, WALK, drafter_of
from eagle2.settings import Settings, TreeShape

ROOT = -1
"""The parent of the first level: the last committed token, which is no draft token."""

Fate = Literal["accepted", "cut", "rejected", "pruned"]
FATES = ("accepted", "cut", "rejected", "pruned")
Finish = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Node:
    """One draft token, as it ended up.

    index: its place in the pool. parent: the pool index of its parent, -1 for the root. depth: 1 under the root.
    confidence: the drafter's probability of it given its parent. value: the product of confidences from the root.
    expanded: whether it was fed to the drafter. slot: 1…m in the flattened sequence (0 is the root), None if not kept.
    target_probability: the target's softmax at temperature 1 under its parent; kept nodes only.
    fate: "accepted"; "cut" (accepted, then dropped by a stop or the length cap); "rejected" (kept, not on the accepted
    path); "pruned" (not kept).
    """

    index: int
    token: int
    parent: int
    depth: int
    confidence: float
    value: float
    expanded: bool
    slot: int | None
    target_probability: float | None
    fate: Fate


@dataclass(frozen=True, slots=True)
class Check:
    """One step of the walk: what the target said at one visited node.

    node: the node visited, -1 for the root. drawn: the token emitted there, drawn from the target's distribution or, by
    rejection sampling, accepted or put in a rejected one's place; `probability`: its probability there. child: the pool
    index of the child that holds it, None if it became the bonus token. top_tokens, top_probabilities: the target's
    five best there, softmax at temperature 1. chance: by rejection sampling, min(1, p/q) of the token proposed there,
    None where none was.
    """

    node: int
    drawn: int
    probability: float
    child: int | None
    top_tokens: tuple[int, ...]
    top_probabilities: tuple[float, ...]
    chance: float | None = None


NODE_COLUMNS = ("token", "parent", "depth", "confidence", "value", "expanded", "slot", "target_probability", "fate")


@dataclass(frozen=True)
class Round:
    """One draft-and-verify cycle. Node columns are in pool order and equally long; all are empty if none was drafted.

    index: 0-based. prefix_length: committed ids before the root, prompt included; the root's position.
    drafted, kept: how many nodes were drafted and verified, also where the columns were not recorded.
    accepted: pool indices of the accepted path, before any cut. bonus: the target's own token at its end; None in the
    one kind of round that verifies nothing (the token drawn from the prefill already ended the run).
    committed: ids this round adds, after stop and cap. Round 0's begins with the token drawn from the prefill.
    finish: why the run ended with this round, else None. Times are in milliseconds; `rest_ms` is what is neither
    prefill, draft nor verify. rule: how the draft was verified (`methods.RULES`).
    """

    index: int
    prefix_length: int
    root: int
    accepted: tuple[int, ...]
    bonus: int | None
    committed: tuple[int, ...]
    finish: Finish | None
    drafted: int = 0
    kept: int = 0
    token: tuple[int, ...] = ()
    parent: tuple[int, ...] = ()
    depth: tuple[int, ...] = ()
    confidence: tuple[float, ...] = ()
    value: tuple[float, ...] = ()
    expanded: tuple[bool, ...] = ()
    slot: tuple[int | None, ...] = ()
    target_probability: tuple[float | None, ...] = ()
    fate: tuple[Fate, ...] = ()
    checks: tuple[Check, ...] = ()
    prefill_ms: float = 0.0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    rest_ms: float = 0.0
    rule: str = WALK

    @property
    def nodes(self) -> Nodes:
        return Nodes(self)

    @property
    def flattened(self) -> tuple[int, ...]:
        """Pool indices of the kept nodes by slot; slot 0, the root, is left out. Pool order is slot order."""
        return tuple(i for i, slot in enumerate(self.slot) if slot is not None)

    @property
    def first(self) -> bool:
        """Whether `committed` begins with the token drawn from the prefill, which no draft proposed."""
        return self.index == 0

    @property
    def origins(self) -> tuple[Literal["prefill", "draft", "bonus"], ...]:
        """Where each id in `committed` came from."""
        everything = ("prefill",) * self.first + ("draft",) * len(self.accepted) + ("bonus",)
        return everything[: len(self.committed)]

    @property
    def predicted(self) -> float:
        """1 + the sum of the kept values: the tokens this round would add on average if values were probabilities."""
        return 1 + sum(value for value, slot in zip(self.value, self.slot, strict=True) if slot is not None)

    def ending(self, keep: int, finish: Finish) -> Round:
        """The same round as the last of its run, of whose committed ids only the first `keep` stay."""
        accepted = {node: place + self.first < keep for place, node in enumerate(self.accepted)}
        fate = tuple(
            was if node not in accepted else "accepted" if accepted[node] else "cut"
            for node, was in enumerate(self.fate)
        )
        return replace(self, committed=self.committed[:keep], finish=finish, fate=fate)

    def path(self, node: int) -> tuple[int, ...]:
        """Pool indices from the first level down to `node`, itself included; () for the root."""
        steps = []
        while node != ROOT:
            steps.append(node)
            node = self.parent[node]
        return tuple(reversed(steps))


@dataclass(frozen=True)
class Nodes(Sequence):
    """The nodes of one round, in pool order, made when asked for."""

    round: Round

    def __len__(self) -> int:
        return len(self.round.token)

    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"node {index} of {len(self)}")
        index %= len(self)
        return Node(index, *(getattr(self.round, column)[index] for column in NODE_COLUMNS))


@dataclass(frozen=True)
class Pair:
    """Which models made a run: names as the user gave them, revisions where a hub gave one.

    vocabulary: how many tokens the target knows, None where a file does not say. draft_vocabulary: how many of them the
    drafter can propose, and confidences are shares of; None: all.
    draft_model: the independent one of method "sps", if any was loaded. head_positions: how many positions the head was
    made for; past them drafts get worse, and the text stays the target's.
    """

    target: str
    head: str | None = None
    target_revision: str | None = None
    head_revision: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    vocabulary: int | None = None
    draft_vocabulary: int | None = None
    draft_model: str | None = None
    head_positions: int | None = None

    def head_drafts(self, settings: Settings) -> bool:
        """Whether the EAGLE head makes the guesses of a run."""
        drafter = drafter_of(settings.policy, settings.drafter) or HEAD
        return self.head is not None and settings.method.drafts and drafter == HEAD


@dataclass(frozen=True)
class Trace:
    """A whole run. `effective` is the shape after clamping; `tokens` maps every id that occurs to its bytes.

    messages: the chat the prompt was made from, as (role, text); empty if the prompt was given as ids. costs: those of
    the machine that "eagle2-auto" decided by, None for other methods.
    """

    prompt_ids: tuple[int, ...]
    settings: Settings
    effective: TreeShape | None
    pair: Pair
    tokens: dict[int, bytes]
    rounds: tuple[Round, ...]
    messages: tuple[tuple[str, str], ...] = ()
    costs: Costs | None = None

    @property
    def new_ids(self) -> tuple[int, ...]:
        return tuple(token for r in self.rounds for token in r.committed)

    @property
    def finish(self) -> Finish | None:
        return self.rounds[-1].finish if self.rounds else None

    def used_ids(self) -> set[int]:
        """Every token id that occurs in it."""
        used = {*self.prompt_ids}
        for r in self.rounds:
            used.update(r.token, r.committed, (r.root,), (check.drawn for check in r.checks))
            used.update(*(check.top_tokens for check in r.checks))
            if r.bonus is not None:
                used.add(r.bonus)
        return used
