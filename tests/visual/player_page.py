"""A small Gradio page with the player alone, for the browser tests, and the runs it can show."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import gradio as gr
from synthetic import HOSTILE_IDS, grown, plain_round, prefill_round, run

from visual.player import component as player

RECORDED = run(5)
SMALL = run(12, seed=30, top_k=4, depth=3, max_nodes=8)
HOSTILE = replace(RECORDED, rounds=tuple(grown(40 + i, 10, 2, 40, index=i, ids=HOSTILE_IDS) for i in range(2)))
ONE = replace(RECORDED, rounds=(grown(3, 4, 3, 8, index=0),))
PLAIN = replace(RECORDED, rounds=(prefill_round(), plain_round(1), plain_round(2)))
RUNS = {"recorded": RECORDED, "small": SMALL, "hostile": HOSTILE, "one": ONE, "plain": PLAIN}


def page() -> gr.Blocks:
    """A page with the player, one hidden in a second tab, and buttons that send messages."""

    def load(request: gr.Request):
        name = request.query_params.get("run", "recorded")
        return "" if name == "none" else player.message_load(name, RUNS[name])

    def need(event: gr.EventData):
        name = event._data["run"]
        trace = RUNS[name.removesuffix("-live")]
        return player.message_rounds(name, trace.rounds, trace.tokens, event._data)

    def stream(pause: float):
        def rounds():
            yield player.message_reset("small-live")
            for r in SMALL.rounds:
                yield player.message_append("small-live", r, SMALL.tokens)
                time.sleep(pause)
            yield player.message_end("small-live", len(SMALL.rounds))

        return rounds

    def clicked(event: gr.EventData):
        return json.dumps(event._data)

    with gr.Blocks() as demo:
        shown = player.component()
        gr.Textbox(elem_id="typing", label="typing")
        log = gr.Textbox(elem_id="clicked", label="clicked")
        seen = gr.Textbox(elem_id="seen", label="seen")
        gr.Button("slow", elem_id="slow").click(stream(0.4), None, shown, show_progress="hidden")
        gr.Button("fast", elem_id="fast").click(stream(0), None, shown, show_progress="hidden")
        gr.Button("jump", elem_id="jump").click(
            lambda: player.message_goto("recorded", 5, 2, "verify"), None, shown, show_progress="hidden"
        )
        with gr.Tabs():
            with gr.Tab("first"):
                gr.Markdown("nothing here")
            with gr.Tab("second"):
                hidden = player.component(elem_id="hidden")
        shown.need(need, None, shown, show_progress="hidden")
        shown.node_click(clicked, None, log, show_progress="hidden")
        shown.round_shown(clicked, None, seen, show_progress="hidden")
        demo.load(load, None, shown)
        demo.load(lambda: player.message_load("small", SMALL), None, hidden)
    return demo
