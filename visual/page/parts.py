"""The page's panels as Gradio components, in the order they are seen. Knows no events and no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gradio as gr

from eagle2.analysis.recut import LIKELIEST
from eagle2.methods import STATIC
from visual import figures
from visual.figures.over_rounds import HEIGHT
from visual.figures.token_labels import for_html
from visual.page import chat, html, lesson
from visual.page.form import LEAST_TOP_P, MOST, MOST_CHARACTERS, MOST_TEMPERATURE, Form, drafters, explain
from visual.page.tabs.models_parts import Models
from visual.page.tabs.your_tree.parts import OwnTree
from visual.player import component as player
from visual.words.languages import others
from visual.words.say import say

RECORDINGS = (
    "code",
    "pancakes",
    "counting",
    "ten-plus-two",
    "ten-plus-two-equals",
    "list",
    "story-at-temperature-1",
    "figure-7",
    "figure-4",
    "figure-4-equals-eagle",
    "figure-4-equals-eagle2",
)
PROMPTS = (
    "Give me a recipe for pancakes.",
    "Write a Python function that reverses a string.",
    "Why is the sky blue? Answer in two sentences.",
    "Count from 1 to 30.",
)
RECUT_METHODS = tuple(name for name in LIKELIEST if name != STATIC)
PRESETS = {
    "static": ("eagle", "eagle2"),
    "chain": ("chain", "eagle2"),
    "no-value": ("eagle2-no-value", "eagle2"),
    "no-rerank": ("eagle2-no-rerank", "eagle2"),
    "no-both": ("eagle2-no-both", "eagle2"),
}
"""What can be compared: the paper's figure 4, a chain, and the ablations of its table 3."""
SCOPES = ("run", "conversation", "recorded", "files")
FIGURES = (
    figures.reliability,
    figures.acceptance_by_position,
    figures.accepted_against_predicted,
    figures.tau_by_max_nodes,
    figures.values_by_fate,
)


class Parts:
    """All components of one page; made inside `gr.Blocks`.

    most: new tokens that a run may ask for. methods: those the loaded models can draft with. open_to_all: whether every
    visitor may load other models.
    """

    def __init__(self, status: str, most: int, methods: Sequence[str], language: str, open_to_all: bool = True) -> None:
        self.most = most
        self.methods = methods
        self.language = language
        with gr.Row(elem_classes="es-top"):
            gr.HTML(f"<h1>{for_html(self.say('page.title'))}</h1>", elem_id="title", padding=False)
            lesson.component()
            self.chips = gr.HTML(html.chips(None, status, language=language), elem_id="chips", padding=False)
            self.languages = {other: self._language(other) for other in others(language)}
        with gr.Sidebar(position="right", open=False, width=340, elem_id="settings"):
            self._settings()
        with gr.Row(equal_height=False, elem_classes="es-main"):
            with gr.Column(scale=1, min_width=330, elem_classes="es-left"):
                self._chat()
            with gr.Column(scale=2, min_width=330), gr.Tabs(elem_id="tabs") as self.tabs:
                self._tabs(open_to_all)
        self.clock = gr.Timer(1.0)
        self.pending = gr.State(None)
        self.elsewhere, self.view = gr.Textbox(visible=False), gr.Textbox(visible=False)

    def say(self, key: str) -> str:
        return say(key, self.language)

    def _language(self, other: str) -> gr.Button:
        """The button that leads to another language's page, in that language's own word."""
        return gr.Button(
            say("page.language", other), size="sm", min_width=60, elem_id=f"to-{other}", elem_classes="es-language"
        )

    def _chat(self) -> None:
        self.log = chat.component()
        self.prompt = gr.Textbox(
            placeholder=self.say("chat.placeholder"),
            label=self.say("chat.prompt"),
            show_label=False,
            lines=1,
            max_lines=6,
            max_length=MOST_CHARACTERS["prompt"],
            elem_id="prompt",
            autofocus=False,
            container=False,
        )
        with gr.Row(elem_classes="es-buttons"):
            self.generate = gr.Button(self.say("chat.generate"), variant="primary", elem_id="generate", min_width=90)
            self.step = gr.Button(self.say("chat.step"), elem_id="step", min_width=90)
            self.stop = gr.Button(self.say("chat.stop"), elem_id="stop", min_width=60, interactive=False)
            self.clear = gr.Button(self.say("chat.clear"), elem_id="clear", min_width=80)
        self.status = gr.HTML(elem_id="status", padding=False)
        self.recorded = gr.Dropdown(
            choices=[(self.say(f"recording.{name}"), name) for name in RECORDINGS],
            label=self.say("chat.recordings"),
            elem_id="recordings",
        )
        with gr.Row(elem_classes="es-examples"):
            self.examples = [gr.Button(text, size="sm", elem_classes="es-example") for text in PROMPTS]

    def _settings(self) -> None:
        t, most = self.say, self.most
        default = replace(Form(), max_new_tokens=min(Form().max_new_tokens, most))
        gr.HTML(f"<h2>{for_html(t('page.settings'))}</h2>", padding=False)
        self.meaning = gr.HTML(explain(default, most, self.language), elem_id="meaning", padding=False)
        self.method = gr.Dropdown(
            choices=[(t(f"method_name.{m}"), m) for m in self.methods],
            value=default.method,
            label=t("form.method"),
            elem_id="method",
        )
        self.drafter = gr.Dropdown(
            choices=[(t(f"drafter.{who or 'own'}"), who) for who in drafters(self.methods)],
            value=default.drafter,
            label=t("form.drafter"),
            info=t("form.drafter_info"),
            elem_id="drafter",
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

        gr.HTML(f"<h3>{for_html(t('form.tree'))}</h3>", padding=False)
        self.top_k = slider("top_k", 1, MOST.top_k, 1)
        self.depth = slider("depth", 1, MOST.depth, 1)
        self.max_nodes = slider("max_nodes", 1, MOST.max_nodes, 1)
        gr.HTML(f"<h3>{for_html(t('form.sampling'))}</h3>", padding=False)
        self.temperature = slider("temperature", 0, MOST_TEMPERATURE, 0.05)
        self.top_p = slider("top_p", LEAST_TOP_P, 1, 0.05)
        self.sample_top_k = gr.Number(
            default.sample_top_k,
            label=t("form.sample_top_k"),
            info=t("form.sample_top_k_info"),
            precision=0,
            elem_id="sample-top-k",
        )
        self.seed = gr.Number(default.seed, label=t("form.seed"), info=t("form.seed_info"), precision=0, elem_id="seed")
        self.max_new_tokens = gr.Slider(
            1, most, default.max_new_tokens, step=1, label=t("form.max_new_tokens"), elem_id="max-new-tokens"
        )
        self.system = gr.Textbox(
            label=t("form.system"),
            info=t("form.system_info"),
            lines=2,
            max_length=MOST_CHARACTERS["system"],
            elem_id="system",
        )
        self.fields = [
            self.method, self.top_k, self.depth, self.max_nodes, self.temperature, self.top_p, self.sample_top_k,
            self.seed, self.max_new_tokens, self.drafter,
        ]  # fmt: skip

    def _tabs(self, open_to_all: bool) -> None:
        t = self.say
        with gr.Tab(t("page.tab_rounds"), id="rounds"):
            self.player = player.component()
        with gr.Tab(t("page.tab_metrics"), id="metrics"):
            self.table = gr.HTML(html.metrics_table(None, language=self.language), elem_id="metrics", padding=False)
            self.compare = gr.Button(t("metrics.compare"), elem_id="compare")
            self.tokens_chart = chat.chart("chart-tokens")
            self.time_chart = chat.chart("chart-time")
        with gr.Tab(t("page.tab_figures"), id="figures"):
            self._figures()
        with gr.Tab(t("page.tab_what_if"), id="what-if"):
            self._what_if()
        with gr.Tab(t("page.tab_compare"), id="compare-tab"):
            self._beside()
        with gr.Tab(t("page.tab_own"), id="own"):
            self.own = OwnTree(self.language)
            self.fields.append(self.own.text)
        with gr.Tab(t("page.tab_trace"), id="trace"):
            gr.Markdown(t("trace.about"))
            with gr.Row(elem_id="trace-buttons"):
                self.save = gr.Button(t("trace.save"), elem_id="save")
                self.save_html = gr.Button(t("trace.html"), elem_id="save-html")
                self.link = gr.Button(t("trace.link"), elem_id="link")
            gr.HTML("<p id='link-shown' hidden><code translate='no'></code></p>")
            self.upload = gr.File(
                label=t("trace.load"), file_types=[".json", ".gz"], type="filepath", height=140, elem_id="upload"
            )
            self.text, self.name, self.kind, self.query = (gr.Textbox(visible=False) for _ in range(4))
        with gr.Tab(t("page.tab_models"), id="models"):
            self.models = Models(open_to_all, self.language)
        with gr.Tab(t("page.tab_method"), id="method-tab"):
            gr.Markdown(
                t("method.page"),
                elem_id="method-page",
                latex_delimiters=[
                    {"left": "$$", "right": "$$", "display": True},
                    {"left": "$", "right": "$", "display": False},
                ],
            )

    def _figures(self) -> None:
        t = self.say
        self.figures_scope = gr.Radio(
            [(t(f"figures.scope.{scope}"), scope) for scope in SCOPES],
            value=SCOPES[0],
            label=t("figures.scope"),
            show_label=False,
            container=False,
            elem_id="figures-scope",
        )
        with gr.Accordion(t("figures.files"), open=False):
            self.figures_files = gr.File(
                label=t("figures.files_label"),
                file_types=[".json", ".gz"],
                type="filepath",
                file_count="multiple",
                height=140,
                elem_id="figures-files",
            )
        self.figures_note = gr.HTML(elem_id="figures-note", padding=False)
        self.figures = {}
        with gr.Row(elem_classes="es-figures"):
            for draw in FIGURES:
                name = draw.__name__
                with gr.Column(min_width=400):
                    told = f"<h3>{for_html(t(f'figures.{name}'))}</h3><p>{for_html(t(f'figures.{name}_about'))}</p>"
                    gr.HTML(told, padding=False, elem_classes="es-figure-head")
                    self.figures[chat.chart(f"figure-{name.replace('_', '-')}", HEIGHT)] = draw
        self.figures_clock = gr.Timer(2.0, active=False)

    def _what_if(self) -> None:
        t = self.say
        gr.HTML(f"<p class='es-muted'>{for_html(t('what_if.about'))}</p>", padding=False)
        with gr.Row(elem_classes="es-what-if"):
            method = gr.Dropdown(
                [(t(f"method_name.{m}"), m) for m in RECUT_METHODS],
                value="eagle2",
                label=t("form.method"),
                elem_id="what-if-method",
                min_width=200,
            )
            sliders = [
                gr.Slider(
                    1,
                    getattr(MOST, name),
                    getattr(Form(), name),
                    step=1,
                    label=t(f"form.{name}"),
                    elem_id=f"what-if-{name.replace('_', '-')}",
                    min_width=150,
                )
                for name in ("top_k", "depth", "max_nodes")
            ]
        self.what_if = [method, *sliders]
        with gr.Row(elem_classes="es-said"):
            with gr.Column(scale=3, min_width=300):
                self.what_if_note = gr.HTML(elem_id="what-if-note", padding=False)
            self.regrow = gr.Button(t("what_if.regrow"), elem_id="regrow", min_width=330)
        self.what_if_before, self.what_if_after = self._pair(
            "what-if", {side: html.head(t(f"what_if.{side}")) for side in ("before", "after")}
        )[1]
        self.what_if_table = gr.HTML(elem_id="what-if-table", padding=False)

    def _beside(self) -> None:
        t = self.say
        gr.HTML(f"<p class='es-muted'>{for_html(t('beside.about'))}</p>", padding=False)
        with gr.Row(elem_classes="es-beside"):
            self.beside_preset = gr.Dropdown(
                [(t(f"beside.preset.{name}"), name) for name in PRESETS],
                value="static",
                label=t("beside.preset"),
                elem_id="beside-preset",
            )
            self.beside_run = gr.Button(t("beside.run"), elem_id="beside-run")
        self.beside_note = gr.HTML(elem_id="beside-note", padding=False)
        self.beside_position = gr.Slider(1, 2, 1, step=1, label=t("beside.position"), elem_id="beside-position")
        self.beside_heads, self.beside_trees = self._pair("beside", {"left": "", "right": ""})
        self.beside_table = gr.HTML(elem_id="beside-table", padding=False)

    def _pair(self, name: str, heads: dict[str, str]) -> tuple[list[gr.HTML], list[gr.HTML]]:
        """Two trees next to each other, each under its head: the heads, the trees. heads: by side, as HTML."""
        told, trees = [], []
        with gr.Row(elem_classes="es-pair"):
            for side, head in heads.items():
                with gr.Column(min_width=330):
                    told.append(gr.HTML(head, elem_id=f"{name}-head-{side}", padding=False))
                    trees.append(chat.chart(f"{name}-{side}", None))
        return told, trees
