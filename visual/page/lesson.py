"""The guided tour as a Gradio component: ten steps over the live page, from plain decoding to what EAGLE-2 buys, and an
exercise that checks itself against what the page shows.

It needs no server once it is there: each step points at an element of the page and moves the player to a phase.
"""

from __future__ import annotations

import gradio as gr

from visual.player.bundle import lesson_script
from visual.player.messages import packed
from visual.words.say import say

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


def steps(language: str = "en") -> list[dict[str, object]]:
    return [
        {
            "title": say(f"lesson.{key}", language),
            "text": say(f"lesson.{key}_text", language, top_k=TOP_K),
            "point": point,
            "phase": phase,
            "top_k": TOP_K if key == "exercise" else None,
        }
        for key, point, phase in STEPS
    ]


def component(language: str = "en", elem_id: str = "lesson") -> gr.HTML:
    """The button that begins the tour."""
    mount = f"mountLesson(element.querySelector('.es-lesson-root') || element, {packed(steps(language))});"
    return gr.HTML(
        html_template="<div class='es-lesson-root'></div>",
        js_on_load=f"{lesson_script(language)}\n{mount}",
        apply_default_css=False,
        padding=False,
        elem_id=elem_id,
    )
