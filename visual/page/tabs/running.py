"""Handlers that use the models: generate, step, stop, go on, compare. Each yields what changes, as it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import gradio as gr

from eagle2.methods import STATIC
from visual.page import chat, html
from visual.page.context import Common
from visual.page.form import Form, check_length
from visual.player import component as player
from visual.server.conversation import Turn, Visit

SEND_EVERY_S, ELSEWHERE_S = 0.12, 1.0
"""At most some eight messages a second, one where the reader looks at another run; quicker rounds travel together."""


class Running:
    """One page's runs. A visitor has one at a time; between rounds it can be stopped, and gone on with at any time."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language

    def generate(self, request: gr.Request, prompt: str, system: str, *values: object) -> Iterator[dict]:
        """Answer a prompt; without one, go on with the open run."""
        yield from self._asked(self.common.visit(request), prompt, system, Form(*values), None)

    def step(self, request: gr.Request, prompt: str, system: str, *values: object) -> Iterator[dict]:
        """One round: of a new prompt's run, else of the open one."""
        yield from self._asked(self.common.visit(request), prompt, system, Form(*values), 1)

    def own_tree(self, request: gr.Request, prompt: str, system: str, *values: object) -> Iterator[dict]:
        """With the visitor's own tree: a prompt where one is written, else that of the run that is shown once more."""
        visit, form = self.common.visit(request), replace(Form(*values), method=STATIC)
        try:
            form.settings(self.studio.options.max_new_tokens, self.language)
        except ValueError as error:
            yield self.common.fault(error)
            return
        yield {self.parts.method: STATIC, self.parts.tabs: gr.Tabs(selected="rounds")}
        begin = self._turn if prompt.strip() else self._again
        yield from self.run(visit, lambda: begin(visit, prompt, system, form))

    def link_opened(
        self, request: gr.Request, pending: int | None, prompt: str, system: str, *values: object
    ) -> Iterator[dict]:
        """A link with a prompt runs it, then shows the round it names."""
        if not pending:
            yield {self.parts.status: gr.skip()}
            return
        visit = self.common.visit(request)
        yield from self._asked(visit, prompt, system, Form(*values), None)
        if pending > 0 and visit.shown and visit.shown.rounds:
            turn = visit.shown
            at = min(pending, len(turn.rounds)) - 1
            yield {self.parts.player: player.message_goto(turn.run, len(turn.rounds), at)}

    def stop(self, request: gr.Request) -> dict:
        visit = self.common.visit(request)
        visit.halt = True
        return {self.parts.status: gr.skip()}

    def clear(self, request: gr.Request) -> dict:
        visit = self.common.visit(request)
        if visit.busy:
            return {self.parts.status: self.common.tell("status.busy", True)}
        visit.clear()
        return {
            **self.common.summary(None),
            **self.common.buttons(visit),
            self.parts.log: chat.message([], self.language),
            self.parts.player: player.message_reset("none", live=False),
            self.parts.recorded: None,
            self.parts.status: "",
        }

    def _asked(self, visit: Visit, prompt: str, system: str, form: Form, limit: int | None) -> Iterator[dict]:
        yield from self.run(visit, lambda: self._turn(visit, prompt, system, form), limit)

    def run(self, visit: Visit, begin: Callable[[], tuple[Turn, dict]], limit: int | None = None) -> Iterator[dict]:
        """A visitor's run, at most `limit` rounds of it. begin: gives the turn, and what the page shows at its start.

        A fault of `begin`, or before the first round, is shown and leaves everything as it was. After a later one the
        run stands stopped, with the rounds it has.
        """
        if visit.busy:
            yield {self.parts.status: self.common.tell("status.busy", True)}
            return
        visit.busy, visit.halt, visit.quiet = True, False, True
        before, turn, shown = replace(visit), None, {}
        try:
            yield {
                self.parts.status: self.common.tell(
                    "status.loading" if self.studio.state != "ready" else "status.generating"
                ),
                **self.common.buttons(visit),
            }
            turn, shown = begin()
            yield shown
            yield from self._stream(visit, turn, limit)
        except Exception as error:  # whatever it is, the buttons must not stay as a run has them
            visit.busy = False
            left = {} if turn is None else self._broken_off(visit, turn, before, shown)
            yield {**left, **self.common.fault(error), **self.common.buttons(visit)}
        finally:
            visit.busy = False
            if visit.last is not None and not self.studio.serves(visit.last.pair):
                visit.close()  # the pair was switched since the last round

    def _broken_off(self, visit: Visit, turn: Turn, before: Visit, begun: dict) -> dict:
        """What the page shows after a fault. begun: what it showed at the run's start. A run of which not one round
        came is taken back, and its prompt stands in the box again.
        """
        looking = visit.shown is turn
        if turn.rounds:
            return self._ended(turn) if looking else {}
        visit.turns, visit.futures = before.turns, before.futures
        left = {self.parts.log: self.common.log(visit)}
        if self.parts.prompt in begun:
            left[self.parts.prompt] = turn.asked[-1]["content"]
        if looking:
            visit.shown = was = before.shown
            left |= {self.parts.player: self.common.standing(was, before.round), **self.common.summary(was)}
            if self.parts.recorded in begun:
                left[self.parts.recorded] = was.recording or None if was else None
        return left

    def _ended(self, turn: Turn) -> dict:
        """The run that is shown has come to a halt: the browser asks for the rounds it lacks."""
        return {self.parts.player: player.message_end(turn.run, len(turn.rounds)), **self.common.summary(turn)}

    def _turn(self, visit: Visit, prompt: str, system: str, form: Form) -> tuple[Turn, dict]:
        """The run to go on with, and what the page shows at its start. On ValueError the prompt's text stays."""
        check_length("prompt", prompt, self.language)
        check_length("system", system, self.language)
        if prompt.strip():
            settings = form.settings(self.studio.options.max_new_tokens, self.language)
            engine, last = self.studio.engine_for(settings), visit.last
            turn = visit.begin(engine, prompt.strip(), system, settings)
            other = last is not None and last.name is None and last.pair != engine.pair
            return turn, {
                self.parts.prompt: "",
                **self._begun(visit, turn, "pair.new_chat" if other else "status.generating"),
            }
        turn = visit.last
        if turn is None or not turn.open:
            raise ValueError(self.common.say("status.nothing"))
        self.common.check_pair(turn)
        if visit.shown is not turn:
            visit.shown = turn
            return turn, {self.parts.player: self.common.standing(turn, len(turn.rounds) - 1)}
        return turn, {self.parts.status: self.common.tell("status.generating")}

    def _again(self, visit: Visit, _: str, __: str, form: Form) -> tuple[Turn, dict]:
        """The shown run's prompt again with the form's tree, under its own law, so that its text is the same."""
        was = visit.shown
        if was is None:
            raise ValueError(self.common.say("status.nothing"))
        if was is not visit.last:
            raise ValueError(self.common.say("status.followed"))
        self.common.check_target(was)
        asked = form.settings(self.studio.options.max_new_tokens, self.language)
        settings = replace(asked, sampling=was.settings.sampling)
        turn = visit.again(settings, self.studio.engine_for(settings))
        return turn, self._begun(visit, turn)

    def _begun(self, visit: Visit, turn: Turn, told: str = "status.generating") -> dict:
        return {
            self.parts.recorded: None,
            self.parts.status: self.common.tell(told),
            self.parts.log: self.common.log(visit),
            self.parts.player: player.message_reset(turn.run),
        }

    def _stream(self, visit: Visit, turn: Turn, limit: int | None) -> Iterator[dict]:
        """Rounds as they come, some eight messages a second at most; then the outcome."""
        begun, sent, last = len(turn.rounds), len(turn.rounds), 0.0
        for _ in self.studio.rounds(turn):
            done = visit.halt or (limit is not None and len(turn.rounds) - begun >= limit)
            pause = SEND_EVERY_S if visit.shown is turn else ELSEWHERE_S
            if done or not turn.open or time.monotonic() - last >= pause:
                yield {
                    self.parts.player: player.message_append(
                        turn.run,
                        turn.rounds[sent:],
                        turn.tokens,
                        before=turn.rounds[:sent],
                        language=self.language,
                    ),
                    **({self.parts.chips: html.chips(turn, "", None, self.language)} if visit.shown is turn else {}),
                }
                sent, last = len(turn.rounds), time.monotonic()
            if done:
                break
        visit.busy = False
        count = len(turn.rounds)
        key = (
            f"status.done_{turn.rounds[-1].finish}"
            if not turn.open
            else "status.stepped"
            if limit
            else "status.stopped"
        )
        yield {
            self.parts.status: self.common.tell(key, round=count),
            **self.common.buttons(visit),
            **(self._ended(turn) if visit.shown is turn else {}),
        }

    def compare(self, request: gr.Request) -> Iterator[dict]:
        """Speed and losslessness of the run that is shown against plain decoding, measured here and now."""
        visit = self.common.visit(request)
        turn = visit.shown
        if visit.busy:
            yield {self.parts.status: self.common.tell("status.busy", True)}
            return
        if turn is None or turn.name is not None or not turn.rounds:
            yield {self.parts.status: self.common.tell("metrics.compare_none", True)}
            return
        yield {self.parts.status: self.common.tell("metrics.comparing")}
        rounds = len(turn.rounds)
        try:
            self.common.check_pair(turn)
            found = self.studio.compare(turn)
        except Exception as error:  # whatever it is, the status line must not go on promising a result
            yield self.common.fault(error)
            return
        if len(turn.rounds) == rounds:  # else it went on meanwhile, and this is about a part of it
            turn.found = found
        if turn.found is not found or visit.shown is not turn:
            yield {self.parts.status: gr.skip()}
            return
        summary = self.common.summary(turn)
        told = html.told_speedup(found, self.language)
        yield {
            self.parts.status: self.common.tell("status.fault", fault=told),
            self.parts.chips: summary[self.parts.chips],
            self.parts.table: summary[self.parts.table],
        }
