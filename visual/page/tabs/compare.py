"""Handlers of the tab "Compare": the shown run's prompt and seed under two methods, round beside round.

Until something is compared, the paper's figure 4 stands there: EAGLE's static tree and EAGLE-2's on "10+2=".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import gradio as gr

from eagle2.analysis import aligned_runs
from eagle2.settings import Settings
from eagle2.trace.rounds import Pair
from visual import figures
from visual.figures.token_labels import for_html, token_label
from visual.page import chat, html
from visual.page.context import Common
from visual.page.parts import PRESETS
from visual.page.tabs.running import SEND_EVERY_S
from visual.page.tabs.viewing import recording
from visual.server.conversation import Turn, Visit

FIGURE_4 = ("figure-4-equals-eagle", "figure-4-equals-eagle2")


class Comparing:
    """One page's comparisons."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def tab(self, event: gr.SelectData, request: gr.Request) -> dict:
        if event.value != self.common.say("page.tab_compare"):
            return {self.parts.beside_note: gr.skip()}
        visit = self.common.visit(request)
        if not visit.beside:
            visit.beside = tuple(replace(Turn.recorded(recording(name), name), recording=name) for name in FIGURE_4)
        return self._shown(visit, 1)

    def move(self, request: gr.Request, position: float) -> dict:
        """Another place in the text."""
        visit = self.common.visit(request)
        return self._drawn(visit, int(position)) if visit.beside else {self.parts.beside_note: gr.skip()}

    def run(self, request: gr.Request, preset: str) -> Iterator[dict]:
        """The shown run's prompt, seed and tree shape under the two methods of a preset, one after the other."""
        visit = self.common.visit(request)
        turn = visit.shown
        if visit.busy or turn is None:
            yield {self.parts.beside_note: self.common.tell("status.busy" if visit.busy else "what_if.none", True)}
            return
        visit.busy, visit.halt = True, False
        try:
            yield {**self.common.buttons(visit), self.parts.beside_note: self.common.tell("status.loading")}
            self.common.check_models(turn)
            pair = self.studio.engine().pair
            asked = [replace(turn.settings, policy=name, paths=None, drafter=None) for name in PRESETS[preset]]
            made = tuple(_again(turn, self.common.allowed(settings), pair) for settings in asked)
            for one in made:
                yield from self._side(visit, one)
            if all(one.rounds for one in made):
                visit.beside = made
            visit.busy = False
            yield {**self._shown(visit, 1), **self.common.buttons(visit)}
        except Exception as error:  # whatever a file or a model makes the libraries raise, the buttons come back
            visit.busy = False
            yield {self.parts.beside_note: self.common.told(error), **self.common.buttons(visit)}
        finally:
            visit.busy = False

    def _side(self, visit: Visit, one: Turn) -> Iterator[dict]:
        """One side to its end or until it is halted; how far it is, as often as the player is told of rounds."""
        name, last = self.common.say(f"method_name.{one.settings.policy}"), 0.0
        for _ in self.studio.rounds(one):
            if time.monotonic() - last >= SEND_EVERY_S:
                told = self.common.tell("beside.running", name=name, round=len(one.rounds))
                yield {self.parts.beside_note: told}
                last = time.monotonic()
            if visit.halt:
                break
        one.close()

    def _name(self, turn: Turn) -> str:
        """What a side is called: a recording by its title, a run made here by its method."""
        if turn.name:
            return chat.title(turn, self.language)
        return self.common.say(f"method_name.{turn.settings.policy}")

    def _shown(self, visit: Visit, position: int) -> dict:
        """A fresh comparison, from a place in its text."""
        longest = max(len(aligned_runs.text(turn.rounds)) for turn in visit.beside)
        slider = gr.Slider(1, max(2, longest), position)
        return {self.parts.beside_position: slider, **self._drawn(visit, position)}

    def _drawn(self, visit: Visit, position: int) -> dict:
        one, other = visit.beside
        places = [aligned_runs.round_at(turn.rounds, position) for turn in visit.beside]
        changed = {
            self.parts.beside_note: self._note(one, other, position),
            self.parts.beside_table: self._table(visit.beside, places),
        }
        for turn, index, head, part in zip(
            visit.beside, places, self.parts.beside_heads, self.parts.beside_trees, strict=True
        ):
            told = self.common.say("beside.round", name=self._name(turn), round=index + 1, rounds=len(turn.rounds))
            changed[head] = html.head(told)
            changed[part] = chat.chart_message(
                *(
                    figures.tree(turn.rounds[index], turn.tokens, look=look, language=self.language)
                    for look in ("light", "dark")
                )
            )
        return changed

    def _note(self, one: Turn, other: Turn, position: int) -> str:
        apart = aligned_runs.difference(one.rounds, other.rounds)
        texts = [aligned_runs.text(turn.rounds) for turn in (one, other)]
        longer = max(texts, key=len)
        token = token_label(longer[min(position, len(longer)) - 1], {**one.tokens, **other.tokens}, 24)
        key = "beside.same" if apart is None else "beside.differ"
        said = self.common.say(key, count=min(map(len, texts)), place=(apart or 0) + 1)
        at = self.common.say("beside.at", position=position, token=token)
        mark, look = ("✓", "es-good") if apart is None else ("≠", "es-bad")
        return (
            f'<p class="es-checked" role="status"><b class="{look}">{mark} {for_html(said)}</b> '
            f'<span translate="no">{for_html(at)}</span></p>'
        )

    def _table(self, turns: tuple[Turn, ...], places: list[int]) -> str:
        say = self.common.say
        sums = [aligned_runs.totals(turn.rounds, place) for turn, place in zip(turns, places, strict=True)]
        rows = {
            "tokens": [str(s.tokens) for s in sums],
            "passes": [str(s.passes) for s in sums],
            "tau": ["–" if s.tau is None else f"{s.tau:.2f}" for s in sums],
            "verified": [str(s.verified) for s in sums],
            "time": [f"{s.decoding_ms:.0f} ms" if s.decoding_ms else "–" for s in sums],
        }
        heads = [self._name(turn) for turn in turns]
        return html.columns_table(heads, [(say(f"beside.row_{key}"), cells) for key, cells in rows.items()])


def _again(turn: Turn, settings: Settings, pair: Pair) -> Turn:
    """The same prompt, not begun yet, under other settings. pair: the one in use, which will make it."""
    return Turn(list(turn.prompt_ids), turn.messages, settings, pair, dict(turn.tokens))
