"""Handlers of the tab of figures: over one run, the conversation, all recorded runs, or files. Needs no model.

While the tab is open it looks every other second whether rounds were added; closed, it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from eagle2.analysis import statistics
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Round
from visual.figures.token_labels import for_html, note
from visual.page import chat
from visual.page.context import Common
from visual.page.form import MOST
from visual.page.tabs.viewing import RECORDED, recording
from visual.server.conversation import Visit

MOST_FILES = 16
"""Together they may be as large as one file that is opened alone."""


class Figuring:
    """One page's figures over many rounds."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def tab(self, event: gr.SelectData, request: gr.Request, scope: str, files: list[str] | None) -> dict:
        """A tab was opened: draw if it is this one; the clock runs only while it is."""
        opened = event.value == self.common.say("page.tab_figures")
        clock = {self.parts.figures_clock: gr.Timer(active=opened)}
        return {**clock, **self.draw(request, scope, files)} if opened else clock

    def tick(self, request: gr.Request, scope: str, files: list[str] | None) -> dict:
        """Draw again where rounds were added since."""
        visit = self.common.visit(request)
        if scope not in ("run", "conversation") or visit.figured == figured(visit, scope):
            return {self.parts.figures_note: gr.skip()}
        return self.draw(request, scope, files)

    def draw(self, request: gr.Request, scope: str, files: list[str] | None) -> dict:
        """All figures of what is asked for, and a line that says what went into them."""
        visit = self.common.visit(request)
        visit.figured = figured(visit, scope)
        try:
            runs = self._runs(visit, scope, files)
        except (ValueError, OSError) as error:
            return {self.parts.figures_note: note(str(error), alert=True)}
        rounds = [r for run in runs for r in run if r.token]
        changed = {self.parts.figures_note: f'<p class="es-muted">{for_html(self._note(rounds, len(runs)))}</p>'}
        for part, draw in self.parts.figures.items():
            looks = [draw(rounds, look, self.language) if rounds else None for look in ("light", "dark")]
            changed[part] = chat.chart_message(*looks)
        return changed

    def _runs(self, visit: Visit, scope: str, files: list[str] | None) -> list[Sequence[Round]]:
        if scope == "recorded":
            return [recording(name).rounds for name in RECORDED]
        if scope == "files":
            if len(files or ()) > MOST_FILES:
                raise ValueError(self.common.say("figures.too_many", count=len(files), most=MOST_FILES))
            most = self.studio.options.upload_mb * 2**20 // max(1, len(files or ()))
            return [trace_files.load(path, most, MOST).rounds for path in files or ()]
        turns = visit.turns if scope == "conversation" else [visit.shown] if visit.shown else []
        return [list(turn.rounds) for turn in turns]

    def _note(self, rounds: Sequence[Round], runs: int) -> str:
        error = statistics.calibration_error(statistics.reliability(rounds))
        if error is None:
            return self.common.say("figures.empty")
        checked = len(statistics.outcomes(rounds))
        drawn = f"{error:.3f}"
        return self.common.say("figures.note", rounds=len(rounds), runs=runs, checked=checked, error=drawn)


def figured(visit: Visit, scope: str) -> tuple:
    """What the figures of a scope are drawn from, as far as it can change by itself."""
    turns = visit.turns if scope == "conversation" else [visit.shown] if visit.shown else []
    return scope, *((turn.run, len(turn.rounds)) for turn in turns)
