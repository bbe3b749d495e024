"""A page with a player in a real browser: what tests ask of it, and where a drawn node is on the screen."""

from __future__ import annotations

import os
import shutil

from visual.words.say import say

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
PATIENCE = float(os.environ.get("BROWSER_PATIENCE", "1"))
"""How many times as long to wait as on a machine that has nothing else to do."""
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
        self.page.wait_for_function(script, arg=self.root, timeout=timeout * PATIENCE)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def text(self, part: str) -> str:
        return self.page.locator(f"{self.root} .ep-{part}").first.inner_text()

    def spot(self, index: int) -> tuple[float, float]:
        """Where the middle of a drawn node is on the screen."""
        return tuple(self.ask(SPOT, index))


class App(Page):
    """The whole page of app.py, and what a visitor does on it."""

    def __init__(self, page, address: str) -> None:
        super().__init__(page, "#player")
        self.address = address

    def visit(self, query: str = "", drawn: bool = True) -> App:
        return self.open(f"{self.address}/{query}", drawn)

    def write(self, text: str) -> None:
        self.page.fill("#prompt textarea", text)

    def send(self, text: str) -> None:
        """Type a prompt and press Enter; returns when the page has taken it."""
        self.write(text)
        self.page.press("#prompt textarea", "Enter")
        self.page.wait_for_function("() => document.querySelector('#prompt textarea').value === ''")

    def status(self, words: str, timeout: int = 60000) -> None:
        """Wait until the status line says it."""
        script = "words => document.querySelector('#status').innerText.includes(words)"
        self.page.wait_for_function(script, arg=words, timeout=timeout * PATIENCE)

    def done(self) -> None:
        self.status(say("status.done_length"))
        self.until("d => !d.live && d.rounds === d.count", 30000)

    def answers(self) -> list[str]:
        """The answers in the chat, as text."""
        return self.page.locator(".ec-answer").all_text_contents()

    def set(self, **fields: object) -> None:
        """Fill in number boxes of the settings by element id, underscores for dashes; the sidebar is opened for it."""
        self.settings()
        for name, value in fields.items():
            box = self.page.locator(f"#{name.replace('_', '-')} input[type=number]").first
            box.fill(str(value))
            box.press("Tab")

    def settings(self) -> None:
        if not self.page.locator("#settings.open").count():
            self.page.click("#settings .toggle-button")
            self.page.wait_for_selector("#settings.open")

    def tab(self, name: str) -> None:
        """Open a tab; on a narrow page it may be behind the button "More tabs"."""
        seen = self.page.get_by_role("tab", name=name)
        if not seen.count():
            self.page.click("#tabs .overflow-menu > button")
            seen = self.page.locator("#tabs .overflow-dropdown button", has_text=name)
        seen.click()

    def saved(self, button: str) -> str:
        """The text of the file that a button of the Trace tab downloads."""
        self.tab("Trace")
        with self.page.expect_download() as download:
            self.page.click(button)
        with open(download.value.path(), encoding="utf-8") as file:
            text = file.read()
        self.tab("Rounds")
        return text
