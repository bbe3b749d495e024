"""Handlers that need no model: opening recordings, saved runs, links and earlier turns; saving and linking."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import gradio as gr

from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Trace
from visual.figures.token_labels import for_html
from visual.page import link
from visual.page.context import Common
from visual.page.form import FIELDS, MOST, Form, explain
from visual.page.parts import RECORDINGS
from visual.player import component as player
from visual.player import export
from visual.server.conversation import Visit

RECORDED = tuple(name for name in RECORDINGS if not name.startswith("figure-"))
"""The recordings that a model made; the others are the paper's worked examples."""
TRACES = Path(__file__).resolve().parents[3] / "assets" / "traces"


@lru_cache(maxsize=len(RECORDINGS))
def recording(name: str) -> Trace:
    return trace_files.load(TRACES / f"{name}.json.gz")


class Viewing:
    """One page's recorded and saved runs. opened: a trace to show first instead of the first recording."""

    def __init__(self, common: Common, opened: tuple[str, Trace] | None) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language
        self.opened = opened
        self._choosing = threading.Lock()

    def tick(self, request: gr.Request) -> dict:
        """While the models load, say so once; say when they are there, or why not; then be quiet.

        What the status line says about a run or a fault is never replaced by good news.
        """
        visit, state = self.common.visit(request), self.studio.state
        still = visit.busy or visit.quiet
        if state == "loading":
            told = {} if still or visit.waited else {self.parts.status: self.common.tell("status.loading")}
            visit.waited = True
            return told or {self.parts.status: gr.skip()}
        done = {self.parts.clock: gr.Timer(active=False)}
        if state == "failed":
            return {**done, self.parts.status: self.common.tell("status.failed", True, fault=self.studio.fault)}
        if state == "ready" and visit.waited and not still:
            return {**done, self.parts.status: f"<p role='status'>{for_html(self.common.models())}</p>"}
        return done

    def load(self, request: gr.Request) -> dict:
        """The first sight: a link's prompt and settings, else a recorded run that plays."""
        visit = self.common.visit(request)
        options = self.studio.options
        asked = link.read(dict(request.query_params), options.max_new_tokens)
        if asked.prompt:
            typed = {self.parts.prompt: asked.prompt, self.parts.system: asked.system}
            try:
                form = Form.of(asked.form.settings(options.max_new_tokens, self.language, options.methods))
            except ValueError as error:
                return {**self._first(visit), **typed, **self._refused(visit, error)}
            return {
                **typed,
                **{field: getattr(form, name) for field, name in zip(self.parts.fields, FIELDS, strict=True)},
                self.parts.pending: asked.round or -1,
                self.parts.meaning: explain(form, options.max_new_tokens, self.language),
            }
        if asked.recording and asked.recording not in RECORDINGS:
            fault = ValueError(self.common.say("status.no_recording", name=asked.recording))
            return {**self._first(visit), **self._refused(visit, fault)}
        if asked.recording:
            return self._load(visit, asked.recording, recording(asked.recording), asked.round)
        return {**self._first(visit), **self.common.recommended()}

    def _first(self, visit: Visit) -> dict:
        return self._load(visit, *(self.opened or (RECORDINGS[0], recording(RECORDINGS[0]))))

    def _refused(self, visit: Visit, error: Exception) -> dict:
        visit.quiet = True
        return self.common.fault(error)

    def _load(self, visit: Visit, name: str, trace: Trace, place: int = 0) -> dict:
        turn = visit.load(trace, name)
        turn.recording = name if name in RECORDINGS else ""
        at = min(max(place - 1, 0), len(trace.rounds) - 1)
        return {
            **self.common.summary(turn),
            **self.common.buttons(visit),
            self.parts.log: self.common.log(visit),
            self.parts.player: player.message_load(
                turn.run, turn, at, "last" if place else "first", play=not place, language=self.language
            ),
            self.parts.recorded: name if name in RECORDINGS else None,
            self.parts.status: self.common.loaded(turn),
        }

    def leave(self, request: gr.Request) -> None:
        self.common.visits.forget(request.session_hash)

    def recording(self, name: str, request: gr.Request) -> dict:
        visit = self.common.visit(request)
        if visit.busy:
            return {self.parts.status: self.common.tell("status.busy", True)}
        visit.quiet = True
        with self._choosing:
            if name not in RECORDINGS or (visit.shown is not None and visit.shown.recording == name):
                return {self.parts.status: gr.skip()}  # Gradio tells of one choice twice at times, also at once
            return self._load(visit, name, recording(name))

    def upload(self, path: str | None, request: gr.Request) -> dict:
        visit = self.common.visit(request)
        if visit.busy:
            return {self.parts.status: self.common.tell("status.busy", True), self.parts.upload: None}
        visit.quiet = True
        try:
            trace = trace_files.load(path, self.studio.options.upload_mb * 2**20, MOST)
            if not trace.rounds:
                raise ValueError(self.common.say("trace.empty", name=Path(path).name))
        except (ValueError, OSError) as error:
            return {**self.common.fault(error), self.parts.upload: None}
        return {**self._load(visit, Path(path).name, trace), self.parts.upload: None}

    def settings(self, request: gr.Request, *values: object) -> dict:
        """What the form means now and, where it differs from the open run's own settings, when it will act."""
        form, last = Form(*values), self.common.visit(request).last
        told = explain(form, self.studio.options.max_new_tokens, self.language)
        if last is not None and last.open and not form.asks_for(last.settings):
            told += f"<p>{for_html(self.common.say('status.applies'))}</p>"
        return {self.parts.meaning: told}

    def need(self, event: gr.EventData, request: gr.Request) -> dict:
        """Rounds that the browser has not got: Gradio dropped a message, or a long recording is being opened."""
        visit = self.common.visit(request)
        try:
            turn = visit.turn(str(event._data.get("run")))
        except ValueError:
            return {self.parts.player: gr.skip()}
        return {
            self.parts.player: player.message_rounds(
                turn.run, turn.rounds, turn.tokens, event._data, language=self.language
            )
        }

    def shown(self, event: gr.EventData, request: gr.Request) -> None:
        self.common.visit(request).round = int(event._data.get("round") or 0)

    def open(self, event: gr.EventData, request: gr.Request) -> dict:
        """A token of an earlier turn was clicked: show that turn's run."""
        visit = self.common.visit(request)
        try:
            turn = visit.turn(str(event._data.get("run")))
        except ValueError:
            return {self.parts.player: gr.skip()}
        visit.shown = turn
        at = int(event._data.get("round") or 0)
        return {
            **self.common.summary(turn),
            self.parts.player: player.message_load(turn.run, turn, at, "last", language=self.language),
        }

    def _kept(self, visit: Visit) -> Trace:
        turn = visit.shown
        if turn is None or not turn.rounds:
            raise ValueError(self.common.say("trace.none"))
        return turn.trace()

    def save(self, request: gr.Request) -> dict:
        return self._download(request, trace_files.to_json, "eagle2-run.json", "application/json")

    def save_html(self, request: gr.Request) -> dict:
        return self._download(request, lambda trace: export.html(trace, self.language), "eagle2-run.html", "text/html")

    def _download(self, request: gr.Request, write: Callable[[Trace], str], name: str, kind: str) -> dict:
        try:
            text = write(self._kept(self.common.visit(request)))
        except ValueError as error:
            return {**self.common.fault(error), self.parts.text: ""}
        return {self.parts.text: text, self.parts.name: name, self.parts.kind: kind}

    def link(self, request: gr.Request) -> dict:
        """The query of a link to what is shown: a recording, or a first prompt with its settings, at this round."""
        visit = self.common.visit(request)
        turn, place = visit.shown, visit.round + 1
        if turn is not None and turn.recording:
            return self._linked(link.Link(recording=turn.recording, round=place))
        if turn is not None and turn.name is not None:
            return self._unlinked("trace.link_file")
        if turn is not None and turn.begun:
            return self._unlinked("trace.link_begun")
        said = [] if turn is None else [m["content"] for m in turn.messages if m["role"] == "user"]
        if len(said) != 1:
            return self._unlinked("trace.link_turn" if said else "trace.none")
        system = next((m["content"] for m in turn.messages if m["role"] == "system"), "")
        if not link.fits(said[0], system):
            longest = max(len(said[0]), len(system))
            return self._unlinked("trace.link_long", count=longest, most=link.MOST_CHARACTERS)
        form = Form.of(turn.settings)
        if not link.fits(form.tree):
            return self._unlinked("trace.link_tree", count=len(form.tree), most=link.MOST_CHARACTERS)
        return self._linked(link.Link(prompt=said[0], system=system, form=form, round=place))

    def _unlinked(self, key: str, **values: object) -> dict:
        return {self.parts.query: "", self.parts.status: self.common.tell(key, True, **values)}

    def _linked(self, made: link.Link) -> dict:
        return {self.parts.query: made.query(), self.parts.status: self.common.tell("trace.linked")}
