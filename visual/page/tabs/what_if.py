"""Handlers of the tab "What if": the round that is shown, cut again from its recorded pool, or grown again by a model.

Cutting needs no model and is answered at once; growing is one round of work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import gradio as gr

from eagle2.analysis.recut import as_round, cut_again, outcome
from eagle2.analysis.target_choices import choices
from eagle2.settings import Settings
from eagle2.trace.rounds import Round
from visual import figures
from visual.figures.token_labels import for_html
from visual.page import chat, html
from visual.page.context import Common
from visual.page.form import MOST, Form
from visual.page.parts import RECUT_METHODS
from visual.server.conversation import Turn, Visit

UNKNOWN = -1
"""The id of a bonus token that nobody asked the target for."""


@dataclass(frozen=True)
class Version:
    """One tree of the round: how it came about (a key), the round to draw, and what is to be said about it."""

    key: str
    round: Round
    notes: tuple[str, ...] = ()


class Recutting:
    """One page's what-ifs."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def tab(self, event: gr.SelectData, request: gr.Request) -> dict:
        """The tab was opened: begin with the run's own settings, as far as the sliders go."""
        if event.value != self.common.say("page.tab_what_if"):
            return {self.parts.what_if_note: gr.skip()}
        turn = self.common.visit(request).shown
        own = turn.settings if turn else Settings()
        method = own.policy if own.policy in RECUT_METHODS else "eagle2"
        shape = (min(getattr(own.shape, name), getattr(MOST, name)) for name in ("top_k", "depth", "max_nodes"))
        values = (method, *shape)
        return {**dict(zip(self.parts.what_if, values, strict=True)), **self.cut(request, *values)}

    def cut(self, request: gr.Request, *values: object) -> dict:
        """The round under these settings, as far as its recorded pool tells."""
        return self._answer(request, values, self._cut)

    def grow(self, request: gr.Request, *values: object) -> dict:
        """The round grown again under these settings, from the same committed prefix."""
        if self.common.visit(request).busy:
            return {self.parts.what_if_note: self.common.tell("status.busy", True)}
        return self._answer(request, values, self._grown)

    def _answer(self, request: gr.Request, values: tuple, make: Callable[[Turn, int, Settings], Version]) -> dict:
        visit = self.common.visit(request)
        asked, turn = object(), visit.shown
        visit.latest["what_if"] = asked
        told = self._told(visit, values, make)
        late = visit.latest["what_if"] is not asked or visit.shown is not turn
        return {self.parts.what_if_note: gr.skip()} if late else told

    def _told(self, visit: Visit, values: tuple, make: Callable[[Turn, int, Settings], Version]) -> dict:
        turn = visit.shown
        if turn is None or not turn.rounds:
            return self._empty("what_if.none")
        index = min(visit.round, len(turn.rounds) - 1)
        recorded = turn.rounds[index]
        if not recorded.token:
            return self._empty("what_if.no_nodes", round=index + 1)
        try:
            most = self.studio.options.max_new_tokens
            asked = Form(*values, max_new_tokens=most).settings(most, self.language)
            settings = replace(asked, drafter=turn.settings.drafter)
            other = make(turn, index, settings)
        except Exception as error:  # whatever a model raises, the tab says it
            return {self.parts.what_if_note: self.common.told(error)}
        notes = "".join(f"<p>{for_html(line)}</p>" for line in other.notes)
        versions = (Version("what_if.recorded", recorded), other)
        return {
            self.parts.what_if_note: f'<div class="es-muted" role="status">{notes}</div>',
            self.parts.what_if_table: self._table(index, versions),
            self.parts.what_if_before: self._picture(recorded, turn),
            self.parts.what_if_after: self._picture(other.round, turn),
        }

    def _empty(self, key: str, **values: object) -> dict:
        return {
            self.parts.what_if_note: self.common.tell(key, **values),
            self.parts.what_if_table: "",
            self.parts.what_if_before: chat.chart_message(None, None),
            self.parts.what_if_after: chat.chart_message(None, None),
        }

    def _cut(self, turn: Turn, index: int, settings: Settings) -> Version:
        tree = cut_again(turn.trace(), index, settings)
        found = outcome(turn.rounds[index], tree, choices(turn.rounds, index))
        say = self.common.say
        exact = say("what_if.exact") if tree.exact else say("what_if.missing", count=len(tree.missing))
        settled = () if found.settled else (say("what_if.open"),)
        return Version("what_if.cut", as_round(turn.rounds, index, tree), (exact, *settled))

    def _grown(self, turn: Turn, index: int, settings: Settings) -> Version:
        self.common.check_models(turn)
        made = self.studio.regrow(turn, index, settings)
        turn.tokens.update(self.studio.engine().spell({*made.token, *made.committed} - turn.tokens.keys()))
        return Version("what_if.grown", made, (self.common.say("what_if.grown_note"),))

    def _picture(self, r: Round, turn: Turn) -> str:
        """The tree after its last phase; where the bonus is not known, a question mark stands for it."""
        drawn = r if r.bonus is not None else replace(r, bonus=UNKNOWN)
        tokens = {**turn.tokens, UNKNOWN: b"?"}
        return chat.chart_message(
            *(figures.tree(drawn, tokens, look=look, language=self.language) for look in ("light", "dark"))
        )

    def _table(self, index: int, versions: tuple[Version, ...]) -> str:
        say = self.common.say
        rounds = [version.round for version in versions]
        rows = {
            "drafted": [str(r.drafted) for r in rounds],
            "verified": [str(r.kept + 1) for r in rounds],
            "predicted": [f"{r.predicted:.2f}" for r in rounds],
            "tokens": [str(len(r.accepted) + 1) for r in rounds],
            "yield": [f"{(len(r.accepted) + 1) / (r.kept + 1):.2f}" for r in rounds],
        }
        heads = [say(version.key, round=index + 1) for version in versions]
        return html.columns_table(heads, [(say(f"what_if.row_{key}"), cells) for key, cells in rows.items()])
