"""What all of the page's handlers share: the models, the visitors, the components, and how to speak to them."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

import gradio as gr

from eagle2.settings import Settings
from visual.figures import per_round
from visual.figures.token_labels import note
from visual.page import chat, html
from visual.page.form import Form
from visual.page.parts import Parts
from visual.page.tabs.pairs import told
from visual.player import component as player
from visual.server.conversation import Turn, Visit
from visual.server.studio import NotLoadedError, Studio
from visual.server.visits import Visits
from visual.words.say import say

FORESEEN = (ValueError, OSError, MemoryError, FloatingPointError, RuntimeError)
"""What faults that were thought of are raised as: their text is a sentence for the reader."""


def sentence(error: Exception, language: str) -> str:
    """What is said of a fault. One that nobody thought of is told with its type; the owner's console has the rest."""
    if isinstance(error, NotLoadedError):
        return say("status.cancelled", language)
    if isinstance(error, gr.Error):  # how a ZeroGPU Space tells of its quotas
        return error.message
    if isinstance(error, FORESEEN):
        return str(error) or type(error).__name__
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"


@dataclass
class Common:
    """One page's surroundings. Methods return what changes, by component."""

    studio: Studio
    parts: Parts
    language: str
    visits: Visits = field(default_factory=Visits)

    def say(self, key: str, **values: object) -> str:
        return say(key, self.language, **values)

    def visit(self, request: gr.Request) -> Visit:
        return self.visits.of(request.session_hash)

    def models(self) -> str:
        studio = self.studio
        pair = html.pair_name(studio.engine().pair) if studio.state == "ready" else ""
        return self.say(f"status.{studio.state}", fault=studio.fault, pair=pair)

    def told(self, error: Exception) -> str:
        """A fault as a note of its own place on the page."""
        return note(sentence(error, self.language), alert=True)

    def tell(self, key: str, alert: bool = False, /, **values: object) -> str:
        return note(self.say(key, **values), alert)

    def loaded(self, turn: Turn) -> str:
        """What the status line says of a recorded run."""
        pair = html.pair_name(turn.pair)
        return self.tell("status.loaded", name=chat.title(turn, self.language), rounds=len(turn.rounds), pair=pair)

    def fault(self, error: Exception) -> dict:
        return {self.parts.status: self.tell("status.fault", True, fault=sentence(error, self.language))}

    def check_pair(self, turn: Turn) -> None:
        """Raise ValueError where the run was made by another pair than the one in use, so that it cannot go on here."""
        if self.studio.engine().pair != turn.pair:
            raise self._other(turn)

    def allowed(self, asked: Settings) -> Settings:
        """Settings that a file may have brought, where a visitor can ask for them here; else raises ValueError."""
        return Form.of(asked).settings(self.studio.options.max_new_tokens, self.language)

    def check_models(self, turn: Turn) -> None:
        """Raise ValueError where other models made the run than those in use, wherever those are and with what draft
        model, so that its prompt cannot be run here again."""
        pair = self.studio.engine().pair
        if (pair.target, pair.head) != (turn.pair.target, turn.pair.head):
            raise self._other(turn)

    def check_target(self, turn: Turn) -> None:
        """Raise ValueError where the run's prompt is one of another target's tokens."""
        if self.studio.engine().pair.target != turn.pair.target:
            raise self._other(turn)

    def _other(self, turn: Turn) -> ValueError:
        names = {"made": told(turn.pair, self.language), "used": told(self.studio.engine().pair, self.language)}
        return ValueError(self.say("pair.other", **names))

    def recommended(self) -> dict:
        """The form as it suits the pair in use, where that was chosen on the page."""
        used = self.studio.used
        if used is None or not used.chosen:
            return {}
        method = "eagle2" if used.engine.drafter is not None else "plain"
        values = (method, used.shape.top_k, used.shape.depth, used.shape.max_nodes)
        return dict(zip(self.parts.fields[: len(values)], values, strict=True))

    def buttons(self, visit: Visit) -> dict:
        busy, last = visit.busy, visit.last
        open_run = bool(last and last.open and (last.rounds or last.begun))
        return {
            self.parts.generate: gr.update(
                value=self.say("chat.resume" if open_run and not busy else "chat.generate"), interactive=not busy
            ),
            self.parts.step: gr.update(interactive=not busy),
            self.parts.stop: gr.update(interactive=busy),
        }

    def log(self, visit: Visit) -> str:
        """The chat as it is now."""
        return chat.message(visit.turns, self.language, visit.futures)

    def standing(self, turn: Turn | None, at: int) -> str:
        """The player's message that shows a run as it stands, from round `at`; None: no run."""
        if turn is None or not turn.rounds:
            return player.message_reset(turn.run if turn else "none", live=False)
        at = min(max(at, 0), len(turn.rounds) - 1)
        return player.message_load(turn.run, turn, at, "last", language=self.language)

    def summary(self, turn: Turn | None) -> dict:
        """Chips, table and statistics of a run."""
        found = turn.found if turn else None
        changed = {
            self.parts.chips: html.chips(turn, self.models(), found, self.language),
            self.parts.table: html.metrics_table(turn, found, self.language),
        }
        for part, draw in (
            (self.parts.tokens_chart, per_round.tokens_per_round),
            (self.parts.time_chart, per_round.time_split),
        ):
            rounds = turn.rounds if turn else []
            looks = [draw(rounds, look, self.language) if rounds else None for look in ("light", "dark")]
            changed[part] = chat.chart_message(*looks)
        return changed
