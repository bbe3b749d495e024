"""The tab of models as Gradio components, in the order they are seen. Knows no events and no engine."""

from __future__ import annotations

import gradio as gr

from visual.page.tabs.pairs import html
from visual.words.say import say

MOST_NAME = 400
"""Characters of a model's or a folder's name."""
CHOOSE = """
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-pair]');
  if (!button) return;
  trigger('choose', { pair: Number(button.dataset.pair) });
  document.querySelector('#pair-form').scrollIntoView({ block: 'nearest' });
});
"""


class Models:
    """Made inside a tab. open_to_all: whether anybody may load a pair, or only who gives the owner's key."""

    def __init__(self, open_to_all: bool, language: str) -> None:
        def t(key: str) -> str:
            return say(key, language)

        self.used = gr.HTML(elem_id="pair-used", padding=False)
        with gr.Column(visible=not open_to_all, elem_id="pair-proof") as self.proof:
            gr.HTML(f"<p>{html('pair.public', language)}</p>", padding=False)
            self.key = gr.Textbox(label=t("pair.key"), type="password", max_length=200, elem_id="owner-key")
        with gr.Column(visible=open_to_all, elem_id="pair-form") as self.form:
            about = f"<h3>{html('pair.choose', language)}</h3><p>{html('pair.choose_about', language)}</p>"
            gr.HTML(about, padding=False)
            with gr.Row():
                self.target, self.head = (
                    gr.Textbox(
                        label=t(f"pair.field_{name}"),
                        info=t(f"pair.{name}_info"),
                        max_length=MOST_NAME,
                        min_width=260,
                        elem_id=f"pair-{name}",
                    )
                    for name in ("target", "head")
                )
            self.weight = gr.HTML(elem_id="pair-weight", padding=False)
            with gr.Row(elem_classes="es-buttons"):
                self.load = gr.Button(t("pair.load"), variant="primary", elem_id="pair-load", min_width=160)
                self.cancel = gr.Button(t("pair.cancel"), elem_id="pair-cancel", min_width=100, interactive=False)
        self.progress = gr.HTML(elem_id="pair-progress", padding=False)
        self.known = gr.HTML(elem_id="pair-known", padding=False, js_on_load=CHOOSE)
        self.clock = gr.Timer(0.5, active=False)
