"""The chat and the statistics figures as Gradio components. The chat's answers come to the browser with the player's
rounds; what Python sends are the turns alone, so its messages do not grow with the text.

    log = chat.component()
    log.open_run(on_open, None, outputs)        # evt._data: run, round; a token of another turn was clicked
    log.go_back(on_back, None, outputs)         # evt._data: run, round, text: go on from there; text: None if unchanged
    log.future(on_future, None, outputs)        # evt._data: run; another future of the last turn is wanted
    yield chat.message(visit.turns, language, visit.futures)
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import gradio as gr
import plotly.graph_objects as go

from visual.player.component import call, part
from visual.player.messages import packed, serial
from visual.server.conversation import Turn
from visual.words.say import say

EVENTS = ("open_run", "go_back", "future")


def component(value: str | None = None, elem_id: str = "chat") -> gr.HTML:
    """The chat, empty or with a first message."""
    return part(call("chat", *EVENTS), "eagle-chat", elem_id, value=value)


def title(turn: Turn, language: str = "en") -> str:
    """What a recorded run is called: in words if it is a shipped one, else by its file's name."""
    return say(f"recording.{turn.recording}", language) if turn.recording else turn.name or ""


def message(turns: Sequence[Turn], language: str = "en", futures: Sequence[Turn] = ()) -> str:
    """What the chat shows: user turns in order, each with the run that answers it. futures: the last turn's."""
    shown = []
    for turn in turns:
        said = [m for m in turn.messages if m["role"] == "user"]
        system = [m["content"] for m in turn.messages if m["role"] == "system"] if turn is turns[0] else []
        shown.append(
            {
                "run": turn.run,
                "name": turn.name and say("chat.recorded", language, name=title(turn, language)),
                "system": system[0] if system else "",
                "user": said[-1]["content"] if said else say("chat.ids_only", language, count=len(turn.prompt_ids)),
                "begun": turn.answer_begun,
            }
        )
    return packed({"turns": shown, "futures": [turn.run for turn in futures], "serial": serial()})


def chart(elem_id: str, height: int | None = 300) -> gr.HTML:
    """An empty figure; its value is `chart_message`. height: in pixels, that of its figures; None: they have a size of
    their own, and scroll in their frame."""
    if height is None:
        return part(call("chart"), "eagle-chart es-picture", elem_id)
    return part(call("chart"), "eagle-chart", elem_id, style=f"height:{height}px")


def chart_message(light: go.Figure | None, dark: go.Figure | None) -> str:
    """One figure in both looks; None empties it."""
    looks = {look: figure and json.loads(figure.to_json()) for look, figure in (("light", light), ("dark", dark))}
    return packed({**looks, "serial": serial()})
