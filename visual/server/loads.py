"""Attempts at having a pair, and the pair that is had: plain facts for the page. Knows no Gradio."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eagle2.loading.known_pairs import pair_of, recommended_shape
from eagle2.progress import Cancelled
from eagle2.settings import TreeShape

if TYPE_CHECKING:
    from eagle2.loading.estimate import Estimate


@dataclass
class Load:
    """One attempt at loading a pair. chosen: on the page, not by how the page was started.

    state: "running", then "done", "failed" (`fault` says why) or "cancelled". step, done, of: how far it is, see
    `eagle2.progress`; "begin" comes before all steps. estimate: what it takes, once that is known.
    """

    target: str | None
    head: str | None
    draft_model: str | None = None
    chosen: bool = False
    state: str = "running"
    step: str = "begin"
    done: int = 0
    of: int = 0
    fault: str = ""
    estimate: Estimate | None = None
    unwanted: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self, step: str, done: int, of: int) -> None:
        """What the loader tells. Raises Cancelled once nobody wants the pair any more."""
        if self.unwanted:
            raise Cancelled
        self.step, self.done, self.of = step, done, of

    def cancel(self) -> None:
        """Have it end at its next step."""
        self.unwanted = True

    def end(self, state: str, fault: str = "") -> None:
        self.state, self.fault = state, fault
        self.ended.set()


@dataclass(frozen=True)
class Used:
    """The pair in use. target, head: as they were asked for. found: what its head turned out to be, as rows (what, how
    it is). guessed: the hidden states of the target that its head takes, where they are a guess. shape: the tree that
    is recommended. chosen: on the page, not by how the page was started.
    """

    engine: object
    target: str | None
    head: str | None
    found: tuple[tuple[str, str], ...]
    guessed: tuple[int, ...]
    shape: TreeShape
    chosen: bool


def describe(engine: object, load: Load) -> Used:
    """What the page tells of an engine. The recommended tree is the registry's, else that for models of its size."""
    from eagle2.loading.describe_head import found
    from eagle2.models.eagle3_head import Eagle3Head
    from eagle2.models.feature_layers import GUESSED

    head = getattr(engine.drafter, "head", None)  # an independent draft model, or nobody, may draft instead
    rows = tuple(found(head, engine.target.vocab_size)) if head is not None else ()
    third = isinstance(head, Eagle3Head)
    guessed = tuple(head.states) if third and head.config.states_source == GUESSED else ()
    if load.target is None:
        shape = TreeShape()
    elif known := pair_of(load.target, load.head or ""):
        shape = known.shape
    else:
        billions = sum(parameter.numel() for parameter in engine.target.model.parameters()) / 1e9
        shape = recommended_shape(billions, 3 if third else 2)
    return Used(engine, load.target, load.head, rows, guessed, shape, load.chosen)
