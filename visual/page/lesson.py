"""The guided tour as a Gradio component: ten steps over the live page, from plain decoding to what EAGLE-2 buys, and an
exercise that checks itself against what the page shows.

It needs no server once it is there: each step points at an element of the page and moves the player to a phase.
"""

from __future__ import annotations

import gradio as gr

from visual.player.component import part
from visual.player.messages import packed

STEPS: tuple[tuple[str, str, str], ...] = (
    ("plain", "#chat", "first"),
    ("draft", "#player .ep-header", "first"),
    ("tree", "#player .ep-panel-tree", "accept"),
    ("value", "#player .ep-values", "rerank"),
    ("expansion", "#player .ep-phases", "expand-2"),
    ("reranking", "#player .ep-panel-tree", "rerank"),
    ("mask", "#player .ep-mask", "flatten"),
    ("verification", "#player .ep-narration", "verify"),
    ("bonus", "#player .ep-panel-tree", "accept"),
    ("lossless", "#chips", "accept"),
    ("exercise", "#player .ep-heading", "accept"),
)
"""Each step's key, what it points at, and the phase it shows."""
TOP_K = 10
"""What the exercise asks for: more than the default."""


def steps() -> list[dict[str, object]]:
    """What the browser shows of each; its words are the strings `lesson.KEY` and `lesson.KEY_text`."""
    return [
        {"key": key, "point": point, "phase": phase, "top_k": TOP_K if key == "exercise" else None}
        for key, point, phase in STEPS
    ]


def component(elem_id: str = "lesson") -> gr.HTML:
    """The button that begins the tour."""
    return part(f"eagle2.lesson(element, {packed(steps())})", "es-lesson-root", elem_id)
