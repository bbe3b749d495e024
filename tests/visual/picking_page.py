"""What one page's tab Models answers, without a browser: its handlers and its studio."""

from __future__ import annotations

from types import SimpleNamespace

import gradio as gr

from visual.page.context import Common
from visual.page.parts import Parts
from visual.page.tabs.models import Picking
from visual.page.tabs.running import Running
from visual.server.studio import Options, Studio

OWNER, VISITOR = SimpleNamespace(session_hash="owner"), SimpleNamespace(session_hash="visitor")
VALUES = ("eagle2", 3, 3, 8, 0, 1, 0, 0, 12)
KEY = "the owner's own key"


class Page:
    """The handlers of one page, and its studio."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Blocks():
            self.parts = Parts("", 512, studio.options.methods, "en", open_to_all=not studio.options.key)
        common = Common(studio, self.parts, "en")
        self.visits, self.fields = common.visits, self.parts.models
        self.picking, self.running = Picking(common), Running(common)
        studio.on_switch.append(common.visits.let_go)

    def switch(self, target: str, head: str) -> dict:
        """Load a pair; what the page says at the end."""
        self.picking.load(target, head, OWNER)
        assert self.studio.load.ended.wait(60)
        return self.picking.tick(OWNER)

    def ask(self, prompt: str, who: SimpleNamespace = VISITOR, values: tuple = VALUES) -> str:
        return self.last_status(self.running.generate(who, prompt, "", *values))

    def last_status(self, told) -> str:
        return [changed[self.parts.status] for changed in told if self.parts.status in changed][-1]


def opened(pair, **options) -> Page:
    studio = Studio(Options(*pair, device="cpu", **options))
    studio.engine()
    return Page(studio)
