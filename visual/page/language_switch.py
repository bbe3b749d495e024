"""Handlers of the language switch: each language has a page of its own, and a visit moves from one to the other.

The conversation with its runs stays on the server under a key that the next page brings along; what was typed and set
goes with it. A run that is going on is stopped after its round, and can be gone on with there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

import gradio as gr

from visual.page.context import Common
from visual.page.form import Form, explain
from visual.player import component as player
from visual.server.conversation import Turn, Visit
from visual.words.languages import address

MOST_VIEW = 1000
"""Characters of what the browser says it shows."""
HALT_S, LOOK_S = 8.0, 0.05
"""How long the end of the round under way is waited for; while models load it can take longer."""


@dataclass(frozen=True)
class Carried:
    """What comes along: the prompt box, the system prompt, the settings; the round and the phase that were seen."""

    typed: tuple[object, ...]
    round: int = 0
    phase: str = "last"


class Switching:
    """One language's page, as the one that is left or arrived at. first: what a visitor who brings nothing sees."""

    def __init__(self, common: Common, first: Callable[[gr.Request], dict]) -> None:
        self.common, self.first = common, first
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def leaving(self, language: str) -> Callable[..., dict]:
        """The handler of the button that leads to a language's page."""

        def leave(request: gr.Request, view: str, *typed: object) -> dict:
            return self._leave(language, request, view, typed)

        return leave

    def _leave(self, language: str, request: gr.Request, view: str, typed: tuple[object, ...]) -> dict:
        """The address of the other page, with the key of what it takes over; none where a run cannot be stopped now.

        view: what the browser shows, as JSON: {"round", "phase"} and more that is only its own business.
        """
        visit = self.common.visit(request)
        visit.halt = visit.busy
        until = time.monotonic() + HALT_S
        while visit.busy and time.monotonic() < until:
            time.sleep(LOOK_S)
        if visit.busy:
            return {self.parts.elsewhere: "", self.parts.status: self.common.tell("status.busy", True)}
        key = self.common.visits.park(request.session_hash, carried(view, typed))
        query = {name: value for name, value in request.query_params.items() if name not in ("lang", "resume")}
        return {self.parts.elsewhere: address(language, urlencode({**query, "resume": key}))}

    def load(self, request: gr.Request) -> dict:
        """The first sight of a page: what was taken over from another language's, else what a new visitor sees."""
        key = request.query_params.get("resume")
        if not key:
            return self.first(request)
        taken = self.common.visits.resume(key, request.session_hash)
        if taken is None:
            return {**self.first(request), self.parts.status: self.common.tell("status.left_behind", True)}
        return self._arrive(*taken)

    def _arrive(self, visit: Visit, brought: Carried) -> dict:
        p, turn = self.parts, visit.shown
        visit.quiet = True
        most = self.studio.options.max_new_tokens
        values = brought.typed[2:]
        return {
            **self.common.summary(turn),
            **self.common.buttons(visit),
            **dict(zip((p.prompt, p.system, *p.fields), brought.typed, strict=True)),
            p.meaning: explain(Form(*values), most, self.language),
            p.log: self.common.log(visit),
            p.player: self._player(turn, brought),
            p.recorded: (turn.recording or None) if turn else None,
            p.status: self._status(turn),
        }

    def _player(self, turn: Turn | None, brought: Carried) -> str:
        if turn is None or not turn.rounds:
            return player.message_reset(turn.run if turn else "none", live=False)
        at = min(max(brought.round, 0), len(turn.rounds) - 1)
        return player.message_load(turn.run, turn, at, brought.phase, language=self.language)

    def _status(self, turn: Turn | None) -> str:
        if turn is None or not turn.rounds:
            return ""
        if turn.name is not None:
            return self.common.loaded(turn)
        if turn.open:
            return self.common.tell("status.stopped", round=len(turn.rounds))
        return self.common.tell(f"status.done_{turn.rounds[-1].finish}")


def carried(view: str, typed: tuple[object, ...]) -> Carried:
    """What to take along. A view that cannot be read only loses its place."""
    try:
        seen = json.loads(view[:MOST_VIEW])
        return Carried(typed, int(seen["round"]), str(seen["phase"])[:40])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return Carried(typed)
