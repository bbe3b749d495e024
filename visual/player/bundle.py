"""The browser's half of the player as one script: CONFIG, STYLE and the files of js/, in order.

Shared by the Gradio component and the exported file; knows neither.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import plotly

from visual.figures import theme
from visual.player.messages import config, packed
from visual.words.languages import for_browser

JS, CSS = Path(__file__).parent / "js", Path(__file__).parent / "css"
SCRIPTS = ("look.js", "store.js", "figures.js", "panels.js", "player.js", "build.js", "bind.js")
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def style() -> str:
    """The stylesheet with both palettes as CSS variables; `data-look` on the player chooses."""
    fonts = f"--sans: {theme.SANS}; --mono: {theme.MONO};"
    looks = [f".eagle-player {{ {fonts} {theme.css_variables('light')} }}"]
    looks.append(f".eagle-player[data-look=dark] {{ {theme.css_variables('dark')} color-scheme: dark; }}")
    return "\n".join([*looks, (CSS / "player.css").read_text()])


@lru_cache(maxsize=8)
def chat_script(language: str = "en") -> str:
    """Defines `mountChat(root, emit)`."""
    return _bundle(language, "panels.js", "chat.js", "back.js")


@lru_cache(maxsize=8)
def chart_script(language: str = "en") -> str:
    """Defines `mountChart(root)`."""
    return _bundle(language, "figures.js", "look.js", "chart.js")


@lru_cache(maxsize=8)
def lesson_script(language: str = "en") -> str:
    """Defines `mountLesson(root, steps)`."""
    return _bundle(language, "panels.js", "exercise.js", "lesson.js")


@lru_cache(maxsize=8)
def picker_script(language: str = "en") -> str:
    """Defines `mountPicker(root, emit)`."""
    return _bundle(language, "look.js", "panels.js", "picker.js")


def _bundle(language: str, *names: str) -> str:
    files = "\n".join((JS / name).read_text() for name in names)
    return f"const CONFIG = {packed(config(language))};\n{files}"


def page_head() -> str:
    """What the page needs before Gradio builds it: its stylesheet, and the choice of its language."""
    language = f"const PLACES = {packed(for_browser())};\n{(JS / 'language.js').read_text()}"
    return f"<style>{page_style()}</style><script>{{ {language} }}</script>"


def page_style() -> str:
    """The page's own stylesheet: chat, chips, forms; both palettes on the page as a whole."""
    light, dark = theme.css_variables("light"), theme.css_variables("dark")
    fonts = f"--sans: {theme.SANS}; --mono: {theme.MONO};"
    looks = f":root {{ {fonts} {light} }} :root[data-theme=dark], body.dark {{ {dark} }}"
    return "\n".join([looks, *((CSS / name).read_text() for name in ("page.css", "picker.css"))])


@lru_cache(maxsize=8)
def script(language: str = "en") -> str:
    """Defines `mount(root, emit)`; meant for the body of a function, so that nothing becomes global."""
    files = "\n".join((JS / name).read_text() for name in SCRIPTS)
    return f"const CONFIG = {packed(config(language))};\nconst STYLE = {packed(style())};\n{files}"
