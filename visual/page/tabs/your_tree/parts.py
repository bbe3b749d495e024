"""The components of the tab "Your tree", in the order they are seen. Knows no events and no engine."""

from __future__ import annotations

import gradio as gr

from visual.figures.token_labels import for_html
from visual.page.form import Form
from visual.page.tabs.your_tree import picker
from visual.words.say import say

STARTS = ("eagle", "round", "fitted", "nothing")
"""What a tree can begin as."""


class OwnTree:
    """A visitor's own static tree; made inside `gr.Tab`. text: its paths, a field of the settings form too."""

    def __init__(self, language: str) -> None:
        def t(key: str) -> str:
            return say(key, language)

        gr.HTML(f"<p class='es-muted'>{for_html(t('own.about'))}</p>", padding=False)
        with gr.Row(elem_classes="es-own-buttons"):
            gr.HTML(f"<span>{for_html(t('own.start'))}</span>", padding=False, elem_classes="es-own-start")
            self.start = {name: gr.Button(t(f"own.start.{name}"), size="sm", elem_id=f"own-{name}") for name in STARTS}
            self.open = gr.UploadButton(
                t("own.open"), file_types=[".json", ".txt"], type="filepath", size="sm", elem_id="own-open"
            )
            self.save = gr.Button(t("own.save"), size="sm", elem_id="own-save")
        with gr.Row(elem_classes="es-own"):
            with gr.Column(scale=5, min_width=420):
                self.table = gr.HTML(elem_id="own-table", padding=False)
                self.note = gr.HTML(elem_id="own-note", padding=False)
            with gr.Column(scale=3, min_width=260):
                self.text = gr.Textbox(
                    Form().tree, label=t("own.text"), lines=4, max_lines=6, max_length=20_000, elem_id="own-text"
                )
                with gr.Row(elem_classes="es-own-buttons"):
                    self.run = gr.Button(t("own.run"), variant="primary", elem_id="own-run")
                    self.grow = gr.Button(t("own.grow"), elem_id="own-grow")
        self.picker = picker.component()
