"""Handlers that go back in time: on from any round of the last run, under the form's settings and with its text kept or
edited, and to the futures that were left.
"""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr

from visual.page.context import Common
from visual.page.form import Form, check_length
from visual.page.tabs.running import Running
from visual.player import component as player
from visual.server.conversation import Turn, Visit


class Returning:
    """One page's ways back."""

    def __init__(self, common: Common, running: Running) -> None:
        self.common, self.running = common, running
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def back(self, request: gr.Request, event: gr.EventData, *values: object) -> Iterator[dict]:
        """On from a round of the last run, in a run of its own."""
        visit = self.common.visit(request)
        yield from self.running.run(visit, lambda: self._begun(visit, event._data, Form(*values)))

    def _begun(self, visit: Visit, asked: dict, form: Form) -> tuple[Turn, dict]:
        last, text = visit.last, asked.get("text")
        if last is None or last.name is not None or last.run != asked.get("run"):
            raise ValueError(self.common.say("back.none"))
        if text is not None:
            text = str(text)
            check_length("answer", text, self.language)
        self.common.check_models(last)
        settings = form.settings(self.studio.options.max_new_tokens, self.language)
        index = int(asked.get("round") or 0)
        turn = visit.back(index, text, settings, self.studio.engine_for(settings))
        return turn, {
            self.parts.status: self.common.tell("status.generating"),
            self.parts.log: self.common.log(visit),
            self.parts.player: player.message_reset(turn.run),
        }

    def future(self, request: gr.Request, event: gr.EventData) -> dict:
        """To another future of the last run."""
        visit = self.common.visit(request)
        if visit.busy:
            return {self.parts.status: self.common.tell("status.busy", True)}
        try:
            turn = visit.switch(str(event._data.get("run")))
        except ValueError:
            return {self.parts.status: self.common.tell("back.gone", True)}
        visit.quiet = True
        return {
            **self.common.summary(turn),
            **self.common.buttons(visit),
            self.parts.log: self.common.log(visit),
            self.parts.player: self.common.standing(turn, len(turn.rounds) - 1),
            self.parts.status: self.common.tell("back.switched", place=visit.futures.index(turn) + 1),
        }
