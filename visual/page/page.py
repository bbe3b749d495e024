"""The page: panels, events and who handles them. It and `app.py` are where the engine and the pictures meet.

Every visitor has a `Visit`; all share one `Studio`. Handlers return only what changes.
"""

from __future__ import annotations

import json

import gradio as gr

from eagle2.trace.rounds import Trace
from visual.page.context import Common
from visual.page.language_switch import Switching
from visual.page.parts import PROMPTS, Parts
from visual.page.tabs.compare import Comparing
from visual.page.tabs.figures import Figuring
from visual.page.tabs.models import Picking
from visual.page.tabs.returning import Returning
from visual.page.tabs.running import Running
from visual.page.tabs.viewing import Viewing
from visual.page.tabs.what_if import Recutting
from visual.page.tabs.your_tree.drawing import Drawing
from visual.server.studio import Studio
from visual.server.visits import Visits
from visual.words.languages import DEFAULT, PLACES
from visual.words.say import LANGUAGES, say

MODEL = {"concurrency_id": "model", "show_progress": "hidden"}
"""What the models are needed for waits its turn in the queue, which is bounded."""
QUICK = {"show_progress": "hidden", "queue": False}
"""The rest is answered at once, however many wait: a run can always be stopped."""

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

LEAVE = "(view, ...typed) => [window.eagleLanguage.view(), ...typed]"
GO = "address => window.eagleLanguage.go(address, %s)"
ARRIVE = "() => window.eagleLanguage.arrive()"


def build(studio: Studio, opened: tuple[str, Trace] | None = None) -> gr.Blocks:
    """One app's pages, one for each language. opened: a saved run to show first, with its name."""
    blocks = gr.Blocks(title=say("page.title"), fill_width=True, analytics_enabled=False)
    visits = Visits()
    studio.on_switch.append(visits.let_go)
    for language in LANGUAGES:
        fill(blocks, language, studio, visits, opened)
    return blocks


def fill(
    blocks: gr.Blocks, language: str, studio: Studio, visits: Visits, opened: tuple[str, Trace] | None = None
) -> None:
    """One language's page: its parts and their events."""
    with blocks if language == DEFAULT else blocks.route(say("page.language", language), PLACES[language].path):
        options = studio.options
        status = say(f"status.{studio.state}", language)
        parts = Parts(status, options.max_new_tokens, options.methods, language, open_to_all=not options.key)
        common = Common(studio, parts, language, visits)
        running, viewing = Running(common), Viewing(common, opened)
        wire(blocks, parts, running, viewing, Switching(common, viewing.load))
        wire_back(parts, Returning(common, running))
        wire_figures(parts, Figuring(common))
        wire_what_if(parts, Recutting(common))
        wire_beside(parts, Comparing(common))
        wire_own(parts, Drawing(common), running)
        wire_models(parts, Picking(common))


def wire(blocks: gr.Blocks, p: Parts, run: Running, view: Viewing, switch: Switching) -> None:
    """All events of a page."""
    running = [p.prompt, p.status, p.log, p.player, p.chips, p.generate, p.step, p.stop]
    shown = [*running, p.recorded, p.table, p.tokens_chart, p.time_chart]
    asked = [p.prompt, p.system, *p.fields]
    gr.on([p.prompt.submit, p.generate.click], run.generate, asked, shown, trigger_mode="once", **MODEL)
    p.step.click(run.step, asked, shown, trigger_mode="once", **MODEL)
    p.stop.click(run.stop, None, [p.status], **QUICK)
    p.clear.click(run.clear, None, shown, **QUICK)
    for button, text in zip(p.examples, PROMPTS, strict=True):
        button.click(lambda text=text: text, None, p.prompt, **QUICK).then(run.generate, asked, shown, **MODEL)
    p.recorded.input(view.recording, p.recorded, shown, trigger_mode="once", **QUICK)
    p.upload.upload(view.upload, p.upload, [*shown, p.upload], **QUICK)
    # Gradio by default forgets an event while the one before is being answered.
    p.player.need(view.need, None, p.player, trigger_mode="multiple", **QUICK)
    p.player.round_shown(view.shown, None, None, trigger_mode="always_last", **QUICK)
    opened = [p.player, p.chips, p.table, p.tokens_chart, p.time_chart]
    p.log.open_run(view.open, None, opened, trigger_mode="always_last", **QUICK)
    p.compare.click(run.compare, None, [p.status, p.chips, p.table], **MODEL)
    # One event for all fields: of several at once the answer to the first could come last.
    changes = [field.change for field in p.fields]
    gr.on(changes, view.settings, p.fields, [p.meaning], trigger_mode="always_last", **QUICK)
    down = [p.text, p.name, p.kind]
    for button, handler in ((p.save, view.save), (p.save_html, view.save_html)):
        button.click(handler, None, [*down, p.status], **QUICK).then(None, down, None, js=DOWNLOAD)
    p.link.click(view.link, None, [p.query, p.status], **QUICK).then(None, p.query, None, js=COPY)
    p.clock.tick(view.tick, None, [p.status, p.clock], **QUICK)
    for language, button in p.languages.items():
        leave = switch.leaving(language)
        button.click(leave, [p.view, *asked], [p.elsewhere, p.status], js=LEAVE, trigger_mode="once", **QUICK).then(
            None, p.elsewhere, None, js=GO % json.dumps(language)
        )
    first = [*shown, p.system, *p.fields, p.pending, p.meaning]
    blocks.load(switch.load, None, first, **QUICK).then(None, None, None, js=ARRIVE).then(
        run.link_opened, [p.pending, *asked], shown, **MODEL
    )
    blocks.unload(view.leave)


def wire_figures(p: Parts, figuring: Figuring) -> None:
    """The events of the tab of figures."""
    asked, drawn = [p.figures_scope, p.figures_files], [p.figures_note, *p.figures]
    p.tabs.select(figuring.tab, asked, [*drawn, p.figures_clock], **QUICK)
    p.figures_clock.tick(figuring.tick, asked, drawn, trigger_mode="once", **QUICK)
    p.figures_scope.input(figuring.draw, asked, drawn, trigger_mode="always_last", **QUICK)
    files = [p.figures_files.upload, p.figures_files.clear, p.figures_files.delete]
    gr.on(files, lambda: "files", None, p.figures_scope, **QUICK).then(figuring.draw, asked, drawn, **QUICK)


def wire_what_if(p: Parts, recutting: Recutting) -> None:
    """The events of the tab "What if"."""
    drawn = [p.what_if_note, p.what_if_table, p.what_if_before, p.what_if_after]
    p.tabs.select(recutting.tab, None, [*p.what_if, *drawn], **QUICK)
    moved = [field.input for field in p.what_if]
    gr.on(moved, recutting.cut, p.what_if, drawn, trigger_mode="always_last", **QUICK)
    p.regrow.click(recutting.grow, p.what_if, drawn, trigger_mode="once", **MODEL)


def wire_models(p: Parts, picking: Picking) -> None:
    """The events of the tab of models."""
    k = p.models
    shown = [k.used, k.known, k.load, k.cancel, k.clock, k.progress, k.weight, k.key, k.proof, k.form]
    fields = [k.target, k.head]
    p.tabs.select(picking.tab, None, shown, **QUICK)
    k.key.submit(picking.prove, k.key, shown, **QUICK)
    k.known.choose(picking.choose, None, [*fields, *shown], **QUICK)
    gr.on([part.blur for part in fields], picking.weigh, fields, shown, trigger_mode="always_last", **QUICK)
    gr.on([k.load.click, *(part.submit for part in fields)], picking.load, fields, shown, trigger_mode="once", **QUICK)
    k.cancel.click(picking.cancel, None, shown, **QUICK)
    k.clock.tick(picking.tick, None, [*shown, p.status, *p.fields], trigger_mode="once", **QUICK)


def wire_beside(p: Parts, comparing: Comparing) -> None:
    """The events of the tab "Compare"."""
    drawn = [p.beside_note, p.beside_table, *p.beside_heads, *p.beside_trees]
    p.tabs.select(comparing.tab, None, [*drawn, p.beside_position], **QUICK)
    p.beside_position.input(comparing.move, p.beside_position, drawn, trigger_mode="always_last", **QUICK)
    outputs = [*drawn, p.beside_position, p.generate, p.step, p.stop]
    p.beside_run.click(comparing.run, p.beside_preset, outputs, trigger_mode="once", **MODEL)


def wire_back(p: Parts, returning: Returning) -> None:
    """The events that go back in time."""
    shown = [p.status, p.log, p.player, p.chips, p.table, p.tokens_chart, p.time_chart, p.generate, p.step, p.stop]
    p.log.go_back(returning.back, p.fields, shown, trigger_mode="once", **MODEL)
    p.log.future(returning.future, None, shown, trigger_mode="once", **QUICK)


def wire_own(p: Parts, drawing: Drawing, run: Running) -> None:
    """The events of the tab "Your tree"."""
    told = [p.own.note, p.own.table]
    latest = {"trigger_mode": "always_last", **QUICK}
    p.tabs.select(drawing.tab, p.own.text, [p.own.picker, *told], **QUICK)
    p.own.picker.moved(drawing.moved, p.own.text, [p.own.picker, *told], **latest)
    p.own.picker.picked(drawing.picked, None, [p.own.text, *told], **latest)
    p.own.picker.typed(drawing.typed, None, [p.own.picker, *told], **latest)
    for name, button in p.own.start.items():
        button.click(drawing.start(name), p.own.text, [p.own.text, p.own.picker, *told], **QUICK)
    p.own.open.upload(drawing.opened, p.own.open, [p.own.text, p.own.picker, *told], **QUICK)
    down = [p.text, p.name, p.kind]
    p.own.save.click(drawing.save, p.own.text, [*down, p.own.note], **QUICK).then(None, down, None, js=DOWNLOAD)
    p.own.grow.click(drawing.grow, p.own.text, told, trigger_mode="once", **MODEL)
    running = [p.prompt, p.status, p.log, p.player, p.chips, p.generate, p.step, p.stop]
    shown = [*running, p.recorded, p.table, p.tokens_chart, p.time_chart, p.method, p.tabs]
    p.own.run.click(run.own_tree, [p.prompt, p.system, *p.fields], shown, trigger_mode="once", **MODEL)
