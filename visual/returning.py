"""Handlers that go back in time: to any round of a live run, on from there under the form's settings, and to the
futures that were left. They change what is shown; the models act only when the run is gone on with.
"""

from __future__ import annotations

import gradio as gr

from visual import chat, player
from visual.common import Common
from visual.form import Form
from visual.session import Turn, Visit


class Returning:
    """One page's ways back."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def back(self, request: gr.Request, *values: object) -> dict:
        """A new branch of the live run, behind the round that is shown."""
        visit = self.common.visit(request)
        if visit.busy:
            return {self.parts.status: self.common.tell("status.busy", True)}
        try:
            if visit.last is None or visit.last.name is not None or visit.shown is not visit.last:
                raise ValueError(self.common.say("back.none"))
            settings = Form(*values).settings(self.studio.options.max_new_tokens, self.language)
            turn = visit.back(visit.round, settings, self.studio.engine_for(settings))
        except ValueError as error:
            return self.common.fault(error)
        return self._shown(visit, turn, "back.done" if turn.rounds else "back.begun")

    def switch(self, request: gr.Request, run: str | None) -> dict:
        """To a future that was left; the present one becomes a branch."""
        visit = self.common.visit(request)
        if visit.busy or run is None:
            return {self.parts.status: self.common.tell("status.busy", True) if visit.busy else gr.skip()}
        try:
            turn = visit.switch(run)
        except ValueError as error:
            return self.common.fault(error)
        return self._shown(visit, turn, "back.switched")

    def _shown(self, visit: Visit, turn: Turn, key: str) -> dict:
        visit.quiet = True
        at = max(0, len(turn.rounds) - 1)
        loaded = player.message_load(turn.run, turn, at, "last", language=self.language)
        return {
            **self.common.summary(turn),
            **self.common.buttons(visit),
            self.parts.log: chat.message(visit.turns),
            self.parts.player: loaded if turn.rounds else player.message_reset(turn.run, live=False),
            self.parts.status: self.common.tell(key, round=at + 1),
        }
