"""The browser's half of the page as text: a configuration and the files of js/, in order; the stylesheets.

Shared by the served scripts and the exported file; knows neither.
"""

from __future__ import annotations

from pathlib import Path

import plotly

from visual.figures import theme
from visual.player.messages import config, packed
from visual.words.languages import for_browser
from visual.words.say import LANGUAGES

JS, CSS = Path(__file__).parent / "js", Path(__file__).parent / "css"
PLAYER = ("look.js", "store.js", "figures.js", "panels.js", "player.js", "build.js", "bind.js")
PAGE = ("chat.js", "back.js", "chart.js", "exercise.js", "lesson.js", "picker.js", "components.js")
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def page_script(plotly_name: str) -> str:
    """All of the page's components, in all languages. plotly_name: Plotly's file, beside this one."""
    return script(config(*LANGUAGES) | {"plotly": plotly_name}, *PLAYER, *PAGE)


def export_script(language: str) -> str:
    """The player of the exported file, which plays the run in its element #run."""
    return script(config(language), *PLAYER, "page.js")


def script(settings: dict, *names: str) -> str:
    """Files of js/ in a scope of their own, so that nothing becomes global."""
    files = "\n".join((JS / name).read_text() for name in names)
    return f"(() => {{\nconst CONFIG = {packed(settings)};\nconst STYLE = {packed(style())};\n{files}\n}})();\n"


def style() -> str:
    """The player's stylesheet with both palettes as CSS variables; `data-look` on the player chooses."""
    fonts = f"--sans: {theme.SANS}; --mono: {theme.MONO};"
    looks = [f".eagle-player {{ {fonts} {theme.css_variables('light')} }}"]
    looks.append(f".eagle-player[data-look=dark] {{ {theme.css_variables('dark')} color-scheme: dark; }}")
    return "\n".join([*looks, (CSS / "player.css").read_text()])


def page_style() -> str:
    """The page's own stylesheet: chat, chips, forms; both palettes on the page as a whole."""
    light, dark = theme.css_variables("light"), theme.css_variables("dark")
    fonts = f"--sans: {theme.SANS}; --mono: {theme.MONO};"
    looks = f":root {{ {fonts} {light} }} :root[data-theme=dark], body.dark {{ {dark} }}"
    return "\n".join([looks, *((CSS / name).read_text() for name in ("page.css", "picker.css"))])


def page_head() -> str:
    """What the page needs before Gradio builds it: its stylesheet, and the choice of its language."""
    language = f"const PLACES = {packed(for_browser())};\n{(JS / 'language.js').read_text()}"
    return f"<style>{page_style()}</style><script>{{ {language} }}</script>"
