"""A page with a player in a real browser: what tests ask of it, and where a drawn node is on the screen."""

from __future__ import annotations

import os
import shutil

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

# The player of a root element; what the tests ask of it; where a drawn node is on the screen.
FIND = "(document.querySelector(root + ' .eagle-player') || document.querySelector(root) || {}).eaglePlayer"
STATE = """({
  round: p.cursor.round, phase: p.phase && p.phase.name, count: p.store.count, live: p.store.live,
  rounds: p.store.rounds.filter(Boolean).length, playing: Boolean(p.playing), selected: p.view.selected,
  points: p.tree.drawn ? p.tree.drawn.scene.points.length : 0,
  x: p.tree.drawn ? p.parts.tree.data.find(trace => trace.meta === 'nodes').x : [],
  range: p.parts.tree.layout ? p.parts.tree.layout.xaxis.range : null })"""
SPOT = """(() => { const t = p.tree, i = t.drawn.at.get(a);
  t.reveal({ focus: [a] }, false);
  const [x, y] = t.toPixels(t.drawn.x[i], t.drawn.scene.y[i]), box = p.parts.tree.getBoundingClientRect();
  return [box.left + x, box.top + y]; })()"""


class Page:
    """A page with one player in it, and what the tests ask of it."""

    def __init__(self, page, root: str) -> None:
        self.page, self.root = page, root
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda r: self.requests.append(r.url))
        page.on("pageerror", lambda e: self.errors.append(str(e)))

    def open(self, url: str, drawn: bool = True) -> Page:
        self.page.goto(url)
        self.page.wait_for_selector(f"{self.root} .ep-tree .main-svg" if drawn else f"{self.root} .ep-title")
        if drawn:
            self.until("d => d.rounds > 0")
        return self

    def ask(self, expression: str, argument: object = None) -> object:
        """Evaluate JS in the page, with `p` the player and `a` the argument."""
        return self.page.evaluate(f"([root, a]) => {{ const p = {FIND}; return {expression}; }}", [self.root, argument])

    def state(self) -> dict:
        return self.ask(STATE)

    def until(self, condition: str, timeout: int = 15000) -> None:
        """Wait until `condition`, a JS function of the state, holds."""
        script = f"root => {{ const p = {FIND}; return Boolean(p) && ({condition})({STATE}); }}"
        self.page.wait_for_function(script, arg=self.root, timeout=timeout)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def text(self, part: str) -> str:
        return self.page.locator(f"{self.root} .ep-{part}").first.inner_text()

    def spot(self, index: int) -> tuple[float, float]:
        """Where the middle of a drawn node is on the screen."""
        return tuple(self.ask(SPOT, index))
