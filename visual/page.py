"""The page: panels and events. The only module that sees both sides, the engine through `Studio` and the pictures.

Every visitor has a `Visit`; all share one `Studio`. Handlers return only what changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import gradio as gr

from eagle2 import trace_file
from eagle2.config import METHODS
from eagle2.trace import Trace
from visual import chat, export, link, panels, player
from visual.figures import statistics
from visual.form import FIELDS, MOST, Form, explain
from visual.labels import for_html
from visual.session import Turn, Visit, Visits
from visual.strings import say
from visual.studio import Studio

TRACES = Path(__file__).resolve().parent.parent / "assets" / "traces"
RECORDINGS = (
    "pancakes",
    "counting",
    "ten-plus-two",
    "ten-plus-two-equals",
    "code",
    "list",
    "story-at-temperature-1",
)
PROMPTS = (
    "Give me a recipe for pancakes.",
    "Write a Python function that reverses a string.",
    "Why is the sky blue? Answer in two sentences.",
    "Count from 1 to 30.",
)
SEND_EVERY_S = 0.12
"""At most some eight messages a second; rounds that come faster travel together."""

MODEL = {"concurrency_id": "model", "show_progress": "hidden"}
QUICK = {"show_progress": "hidden", "concurrency_limit": 16}

DOWNLOAD = """(text, name, type) => {
  if (!text) return;
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = Object.assign(document.createElement('a'), { href: url, download: name });
  document.body.append(a); a.click(); a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}"""
COPY = """query => {
  if (!query) return query;
  const link = `${location.origin}${location.pathname}?${query}`;
  if (navigator.clipboard) navigator.clipboard.writeText(link).catch(() => {});
  const box = document.querySelector('#link-shown');
  if (box) { box.hidden = false; box.querySelector('code').textContent = link; }
  return query;
}"""


@lru_cache(maxsize=len(RECORDINGS))
def recording(name: str) -> Trace:
    return trace_file.load(TRACES / f"{name}.json.gz")


class Page:
    """Builds the Blocks of one app. opened: a trace to show first instead of the first recording."""

    def __init__(self, studio: Studio, opened: tuple[str, Trace] | None = None, language: str = "en") -> None:
        self.studio = studio
        self.opened = opened
        self.language = language
        self.visits = Visits()

    def say(self, key: str, **values: object) -> str:
        return say(key, self.language, **values)

    # ---------------------------------------------------------------- panels

    def build(self) -> gr.Blocks:
        """All panels, then all events."""
        with gr.Blocks(title=self.say("page.title"), fill_width=True, analytics_enabled=False) as blocks:
            with gr.Row(elem_classes="es-top"):
                gr.HTML(f"<h1>{for_html(self.say('page.title'))}</h1>", elem_id="title")
                self.chips = gr.HTML(panels.chips(None, self._status(), language=self.language), elem_id="chips")
            with gr.Sidebar(position="right", open=False, width=340, elem_id="settings"):
                self._settings()
            with gr.Row(equal_height=False, elem_classes="es-main"):
                with gr.Column(scale=1, min_width=330, elem_classes="es-left"):
                    self._chat()
                with gr.Column(scale=2, min_width=330), gr.Tabs(elem_id="tabs"):
                    self._tabs()
            self.clock = gr.Timer(1.0)
            self.pending = gr.State(None)
        with blocks:
            self._events(blocks)
        return blocks

    def _chat(self) -> None:
        self.log = chat.component(language=self.language)
        self.prompt = gr.Textbox(
            placeholder=self.say("chat.placeholder"),
            label=self.say("chat.prompt"),
            show_label=False,
            lines=1,
            max_lines=6,
            max_length=20_000,
            elem_id="prompt",
            autofocus=False,
            container=False,
        )
        with gr.Row(elem_classes="es-buttons"):
            self.generate = gr.Button(self.say("chat.generate"), variant="primary", elem_id="generate", min_width=90)
            self.step = gr.Button(self.say("chat.step"), elem_id="step", min_width=90)
            self.stop = gr.Button(self.say("chat.stop"), elem_id="stop", min_width=60, interactive=False)
            self.clear = gr.Button(self.say("chat.clear"), elem_id="clear", min_width=80)
        self.status = gr.HTML(elem_id="status")
        self.recorded = gr.Dropdown(
            choices=[(self.say(f"recording.{name}"), name) for name in RECORDINGS],
            value=None if self.opened else RECORDINGS[0],
            label=self.say("chat.recordings"),
            elem_id="recordings",
        )
        with gr.Row(elem_classes="es-examples"):
            self.examples = [gr.Button(text, size="sm", elem_classes="es-example") for text in PROMPTS]

    def _settings(self) -> None:
        t, most = self.say, self.studio.options.max_new_tokens
        default = Form()
        gr.HTML(f"<h2>{for_html(t('page.settings'))}</h2>")
        self.meaning = gr.HTML(explain(default, most, self.language), elem_id="meaning")
        self.method = gr.Dropdown(
            choices=[(t(f"method_name.{m}"), m) for m in METHODS],
            value=default.method,
            label=t("form.method"),
            elem_id="method",
        )

        def slider(name: str, least: float, largest: float, step: float) -> gr.Slider:
            info = f"form.{name}_info"
            return gr.Slider(
                least,
                largest,
                getattr(default, name),
                step=step,
                label=t(f"form.{name}"),
                info=t(info) if name != "max_new_tokens" else None,
                elem_id=name.replace("_", "-"),
            )

        gr.HTML(f"<h3>{for_html(t('form.tree'))}</h3>")
        self.top_k = slider("top_k", 1, MOST.top_k, 1)
        self.depth = slider("depth", 1, MOST.depth, 1)
        self.max_nodes = slider("max_nodes", 1, MOST.max_nodes, 1)
        gr.HTML(f"<h3>{for_html(t('form.law'))}</h3>")
        self.temperature = slider("temperature", 0, 2, 0.05)
        self.top_p = slider("top_p", 0.05, 1, 0.05)
        self.sample_top_k = gr.Number(
            default.sample_top_k,
            label=t("form.sample_top_k"),
            info=t("form.sample_top_k_info"),
            precision=0,
            elem_id="sample-top-k",
        )
        self.seed = gr.Number(default.seed, label=t("form.seed"), info=t("form.seed_info"), precision=0, elem_id="seed")
        self.max_new_tokens = gr.Slider(
            1, most, min(default.max_new_tokens, most), step=1, label=t("form.max_new_tokens"), elem_id="max-new-tokens"
        )
        self.system = gr.Textbox(
            label=t("form.system"), info=t("form.system_info"), lines=2, max_length=8000, elem_id="system"
        )
        self.fields = [
            self.method, self.top_k, self.depth, self.max_nodes, self.temperature, self.top_p, self.sample_top_k,
            self.seed, self.max_new_tokens,
        ]  # fmt: skip

    def _tabs(self) -> None:
        t = self.say
        with gr.Tab(t("page.tab_rounds"), id="rounds"):
            self.player = player.component(language=self.language)
        with gr.Tab(t("page.tab_metrics"), id="metrics"):
            self.table = gr.HTML(panels.metrics_table(None, language=self.language), elem_id="metrics")
            self.compare = gr.Button(t("metrics.compare"), elem_id="compare")
            self.tokens_chart = chat.chart("chart-tokens")
            self.time_chart = chat.chart("chart-time")
        with gr.Tab(t("page.tab_trace"), id="trace"):
            gr.Markdown(t("trace.about"))
            with gr.Row():
                self.save = gr.Button(t("trace.save"), elem_id="save")
                self.save_html = gr.Button(t("trace.html"), elem_id="save-html")
                self.link = gr.Button(t("trace.link"), elem_id="link")
            gr.HTML("<p id='link-shown' hidden><code></code></p>")
            self.upload = gr.File(label=t("trace.load"), file_types=[".json", ".gz"], type="filepath", elem_id="upload")
            self.text, self.name, self.kind, self.query = (gr.Textbox(visible=False) for _ in range(4))
        with gr.Tab(t("page.tab_method"), id="method-tab"):
            gr.Markdown(
                t("method.page"),
                elem_id="method-page",
                latex_delimiters=[
                    {"left": "$$", "right": "$$", "display": True},
                    {"left": "$", "right": "$", "display": False},
                ],
            )

    # ---------------------------------------------------------------- events

    def _events(self, blocks: gr.Blocks) -> None:
        running = [self.prompt, self.status, self.log, self.player, self.chips, self.generate, self.step, self.stop]
        shown = [*running, self.recorded, self.table, self.tokens_chart, self.time_chart]
        asked = [self.prompt, self.system, *self.fields]
        gr.on([self.prompt.submit, self.generate.click], self.on_generate, asked, shown, trigger_mode="once", **MODEL)
        self.step.click(self.on_step, asked, shown, trigger_mode="once", **MODEL)
        self.stop.click(self.on_stop, None, [self.status], **QUICK)
        self.clear.click(self.on_clear, None, shown, **QUICK)
        for button, text in zip(self.examples, PROMPTS, strict=True):
            button.click(lambda text=text: text, None, self.prompt, **QUICK).then(
                self.on_generate, asked, shown, **MODEL
            )
        self.recorded.input(self.on_recording, self.recorded, shown, **QUICK)
        self.upload.upload(self.on_upload, self.upload, [*shown, self.upload], **QUICK)
        self.player.need(self.on_need, None, self.player, **QUICK)
        self.player.round_shown(self.on_shown, None, None, **QUICK)
        self.log.open_run(
            self.on_open, None, [self.player, self.chips, self.table, self.tokens_chart, self.time_chart], **QUICK
        )
        self.compare.click(self.on_compare, None, [self.status, self.chips, self.table], **MODEL)
        for field in self.fields:
            field.change(self.on_settings, self.fields, [self.meaning], trigger_mode="always_last", **QUICK)
        down = [self.text, self.name, self.kind]
        for button, handler in ((self.save, self.on_save), (self.save_html, self.on_save_html)):
            button.click(handler, None, [*down, self.status], **QUICK).then(None, down, None, js=DOWNLOAD)
        self.link.click(self.on_link, None, [self.query, self.status], **QUICK).then(None, self.query, None, js=COPY)
        self.clock.tick(self.on_tick, None, [self.status, self.clock], **QUICK)
        blocks.load(self.on_load, None, [*shown, self.system, *self.fields, self.pending, self.meaning], **QUICK).then(
            self.on_link_opened, [self.pending, *asked], shown, **MODEL
        )
        blocks.unload(self.on_leave)

    def _status(self) -> str:
        studio = self.studio
        pair = panels.pair_name(studio.engine().pair) if studio.state == "ready" else ""
        return self.say(f"status.{studio.state}", fault=studio.fault, pair=pair)

    def _tell(self, key: str, fault: bool = False, **values: object) -> str:
        role = 'role="alert" class="es-fault"' if fault else 'role="status"'
        return f"<p {role}>{for_html(self.say(key, **values))}</p>"

    def _fault(self, error: Exception) -> dict:
        return {self.status: self._tell("status.fault", True, fault=str(error))}

    def _buttons(self, visit: Visit) -> dict:
        busy, open_run = visit.busy, bool(visit.last and visit.last.open and visit.last.rounds)
        return {
            self.generate: gr.update(
                value=self.say("chat.go_on" if open_run and not busy else "chat.generate"), interactive=not busy
            ),
            self.step: gr.update(interactive=not busy),
            self.stop: gr.update(interactive=busy),
        }

    def _summary(self, turn: Turn | None) -> dict:
        """Chips, table and statistics of a run."""
        found = turn.found if turn else None
        changed = {
            self.chips: panels.chips(turn, self._status(), found, self.language),
            self.table: panels.metrics_table(turn, found, self.language),
        }
        if turn is not None and turn.rounds:
            for part, draw in (
                (self.tokens_chart, statistics.tokens_per_round),
                (self.time_chart, statistics.time_split),
            ):
                looks = (draw(turn.rounds, look, self.language) for look in ("light", "dark"))
                changed[part] = chat.chart_message(*looks)
        return changed

    def _visit(self, request: gr.Request) -> Visit:
        return self.visits.of(request.session_hash)

    def on_tick(self) -> dict:
        """While the models load, say so; then be quiet."""
        state = self.studio.state
        if state == "loading":
            return {self.status: self._tell("status.loading")}
        if state == "failed":
            return {
                self.status: self._tell("status.failed", True, fault=self.studio.fault),
                self.clock: gr.Timer(active=False),
            }
        told = {self.status: f"<p role='status'>{for_html(self._status())}</p>"} if state == "ready" else {}
        return {**told, self.clock: gr.Timer(active=False)}

    def on_load(self, request: gr.Request) -> dict:
        """The first sight: a link's prompt and settings, else a recorded run that plays."""
        visit = self._visit(request)
        asked = link.read(dict(request.query_params))
        if asked.prompt:
            form = asked.form
            changed = {self.prompt: asked.prompt, self.system: asked.system, self.pending: asked.round or -1}
            changed |= {field: getattr(form, name) for field, name in zip(self.fields, FIELDS, strict=True)}
            return {**changed, self.meaning: explain(form, self.studio.options.max_new_tokens, self.language)}
        if asked.recording and asked.recording not in RECORDINGS:
            return self._fault(ValueError(self.say("status.no_recording", name=asked.recording)))
        name, trace = self.opened or (RECORDINGS[0], recording(RECORDINGS[0]))
        if asked.recording:
            name, trace = asked.recording, recording(asked.recording)
        return self._load(visit, name, trace, asked.round)

    def _load(self, visit: Visit, name: str, trace: Trace, place: int = 0) -> dict:
        title = self.say(f"recording.{name}") if name in RECORDINGS else name
        turn = visit.load(trace, self.say("chat.recorded", name=title))
        turn.recording = name if name in RECORDINGS else ""
        at = min(max(place - 1, 0), len(trace.rounds) - 1)
        return {
            **self._summary(turn),
            **self._buttons(visit),
            self.log: chat.message(visit.turns),
            self.player: player.message_load(
                turn.run, turn, at, "last" if place else "first", play=not place, language=self.language
            ),
            self.recorded: name if name in RECORDINGS else None,
            self.status: self._tell(
                "status.loaded", name=title, rounds=len(trace.rounds), pair=panels.pair_name(trace.pair)
            ),
        }

    def on_leave(self, request: gr.Request) -> None:
        self.visits.forget(request.session_hash)

    def on_recording(self, name: str, request: gr.Request) -> dict:
        visit = self._visit(request)
        if visit.busy:
            return {self.status: self._tell("status.busy", True)}
        return self._load(visit, name, recording(name)) if name in RECORDINGS else {}

    def on_upload(self, path: str | None, request: gr.Request) -> dict:
        visit = self._visit(request)
        if visit.busy:
            return {self.status: self._tell("status.busy", True), self.upload: None}
        try:
            trace = trace_file.load(path, self.studio.options.upload_mb * 2**20)
            if not trace.rounds:
                raise ValueError(self.say("trace.none"))
        except (ValueError, OSError) as error:
            return {**self._fault(error), self.upload: None}
        return {**self._load(visit, Path(path).name, trace), self.upload: None}

    def on_settings(self, *values: object) -> dict:
        return {self.meaning: explain(Form(*values), self.studio.options.max_new_tokens, self.language)}

    # ---------------------------------------------------------------- running

    def on_generate(self, prompt: str, system: str, *values: object, request: gr.Request) -> Iterator[dict]:
        """Answer a prompt; without one, go on with the open run."""
        yield from self._run(self._visit(request), prompt, system, Form(*values), None)

    def on_step(self, prompt: str, system: str, *values: object, request: gr.Request) -> Iterator[dict]:
        """One round: of a new prompt's run, else of the open one."""
        yield from self._run(self._visit(request), prompt, system, Form(*values), 1)

    def on_link_opened(
        self, pending: int | None, prompt: str, system: str, *values: object, request: gr.Request
    ) -> Iterator[dict]:
        """A link with a prompt runs it, then shows the round it names."""
        if not pending:
            yield {self.status: gr.skip()}
            return
        visit = self._visit(request)
        yield from self._run(visit, prompt, system, Form(*values), None)
        if pending > 0 and visit.shown and visit.shown.rounds:
            turn = visit.shown
            at = min(pending, len(turn.rounds)) - 1
            yield {self.player: player.message_goto(turn.run, len(turn.rounds), at)}

    def on_stop(self, request: gr.Request) -> dict:
        visit = self._visit(request)
        visit.halt = True
        return {self.status: gr.skip()}

    def on_clear(self, request: gr.Request) -> dict:
        visit = self._visit(request)
        if visit.busy:
            return {self.status: self._tell("status.busy", True)}
        visit.clear()
        return {
            **self._summary(None),
            **self._buttons(visit),
            self.log: chat.message([]),
            self.player: player.message_reset("none", live=False),
            self.recorded: None,
            self.status: "",
        }

    def _run(self, visit: Visit, prompt: str, system: str, form: Form, limit: int | None) -> Iterator[dict]:
        if visit.busy:
            yield {self.status: self._tell("status.busy", True)}
            return
        visit.busy, visit.halt = True, False
        try:
            yield {
                self.status: self._tell("status.loading" if self.studio.state != "ready" else "status.generating"),
                **self._buttons(visit),
            }
            turn, shown = self._turn(visit, prompt, system, form)
            yield shown
            yield from self._stream(visit, turn, limit)
        except (ValueError, MemoryError, FloatingPointError, RuntimeError) as error:
            visit.busy = False
            yield {**self._fault(error), **self._buttons(visit)}
        finally:
            visit.busy = False

    def _turn(self, visit: Visit, prompt: str, system: str, form: Form) -> tuple[Turn, dict]:
        """The run to go on with and what the page shows at its start. Raises ValueError; the prompt's text then stays."""
        if prompt.strip():
            settings = form.settings(self.studio.options.max_new_tokens, self.language)
            turn = visit.begin(self.studio.engine(), prompt.strip(), system, settings)
            return turn, {
                self.prompt: "",
                self.recorded: None,
                self.status: self._tell("status.generating"),
                self.log: chat.message(visit.turns),
                self.player: player.message_reset(turn.run),
            }
        turn = visit.last
        if turn is None or not turn.open:
            raise ValueError(self.say("status.nothing"))
        if visit.shown is not turn:
            visit.shown = turn
            return turn, {
                self.player: player.message_load(turn.run, turn, len(turn.rounds) - 1, "last", language=self.language)
            }
        return turn, {self.status: self._tell("status.generating")}

    def _stream(self, visit: Visit, turn: Turn, limit: int | None) -> Iterator[dict]:
        """Rounds as they come, some eight messages a second at most; then the outcome."""
        begun, sent, last = len(turn.rounds), len(turn.rounds), 0.0
        for _ in self.studio.rounds(turn):
            done = visit.halt or (limit is not None and len(turn.rounds) - begun >= limit)
            if done or not turn.open or time.monotonic() - last >= SEND_EVERY_S:
                yield {
                    self.player: player.message_append(
                        turn.run, turn.rounds[sent:], turn.tokens, before=turn.rounds[:sent], language=self.language
                    ),
                    self.chips: panels.chips(turn, "", None, self.language),
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
            self.player: player.message_end(turn.run, count),
            self.status: self._tell(key, round=count),
            **self._buttons(visit),
            **self._summary(turn),
        }

    def on_need(self, event: gr.EventData, request: gr.Request) -> dict:
        """Rounds that the browser has not got: Gradio dropped a message, or a long recording is being opened."""
        visit = self._visit(request)
        try:
            turn = visit.turn(str(event._data.get("run")))
        except ValueError:
            return {self.player: gr.skip()}
        return {
            self.player: player.message_rounds(turn.run, turn.rounds, turn.tokens, event._data, language=self.language)
        }

    def on_shown(self, event: gr.EventData, request: gr.Request) -> None:
        self._visit(request).round = int(event._data.get("round") or 0)

    def on_open(self, event: gr.EventData, request: gr.Request) -> dict:
        """A token of an earlier turn was clicked: show that turn's run."""
        visit = self._visit(request)
        try:
            turn = visit.turn(str(event._data.get("run")))
        except ValueError:
            return {self.player: gr.skip()}
        visit.shown = turn
        at = int(event._data.get("round") or 0)
        return {
            **self._summary(turn),
            self.player: player.message_load(turn.run, turn, at, "last", language=self.language),
        }

    def on_compare(self, request: gr.Request) -> Iterator[dict]:
        """Speed and losslessness of the run that is shown against plain decoding, measured here and now."""
        visit = self._visit(request)
        turn = visit.shown
        if turn is None or turn.name is not None or not turn.rounds or visit.busy:
            yield {self.status: self._tell("metrics.compare_none", True)}
            return
        yield {self.status: self._tell("metrics.comparing")}
        try:
            turn.found = self.studio.compare(turn)
        except (ValueError, MemoryError, FloatingPointError, RuntimeError) as error:
            yield self._fault(error)
            return
        summary = self._summary(turn)
        told = panels.told_speedup(turn.found, self.language)
        yield {
            self.status: self._tell("status.fault", fault=told),
            self.chips: summary[self.chips],
            self.table: summary[self.table],
        }

    # ---------------------------------------------------------------- keeping

    def _kept(self, visit: Visit) -> Trace:
        turn = visit.shown
        if turn is None or not turn.rounds:
            raise ValueError(self.say("trace.none"))
        return turn.trace()

    def on_save(self, request: gr.Request) -> dict:
        return self._download(request, trace_file.to_json, "eagle2-run.json", "application/json")

    def on_save_html(self, request: gr.Request) -> dict:
        return self._download(request, lambda trace: export.html(trace, self.language), "eagle2-run.html", "text/html")

    def _download(self, request: gr.Request, write: object, name: str, kind: str) -> dict:
        try:
            text = write(self._kept(self._visit(request)))
        except ValueError as error:
            return {**self._fault(error), self.text: ""}
        return {self.text: text, self.name: name, self.kind: kind}

    def on_link(self, request: gr.Request) -> dict:
        visit = self._visit(request)
        turn = visit.shown
        if turn is None or (not turn.recording and len([m for m in turn.messages if m["role"] == "user"]) != 1):
            return {self.query: "", self.status: self._tell("trace.none" if turn is None else "trace.link_turn", True)}
        place = visit.round + 1
        if turn.recording:
            return {self.query: link.Link(recording=turn.recording, round=place).query(), self.status: gr.skip()}
        said = {m["role"]: m["content"] for m in turn.messages}
        s = turn.settings
        form = Form(
            s.policy, s.shape.top_k, s.shape.depth, s.shape.max_nodes, s.sampling.temperature, s.sampling.top_p,
            s.sampling.top_k, s.sampling.seed, s.max_new_tokens,
        )  # fmt: skip
        made = link.Link(prompt=said["user"], system=said.get("system", ""), form=form, round=place)
        return {self.query: made.query(), self.status: gr.skip()}
