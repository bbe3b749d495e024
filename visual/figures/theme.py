"""Palette, sizes and what each state looks like, in light and dark, for Python and the browser alike.

Knows nothing of rounds: a state is a letter here. What a letter means is decided in `phases`.
"""

from __future__ import annotations

LABEL_PX = 14
NOTE_PX = 13
LECTURE_SCALE = 1.39
"""Lecture mode scales the whole tree: positions, markers and type alike, so one layout serves both."""

CHINESE = '"PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC"'
SANS = f'-apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", {CHINESE}, sans-serif'
MONO = f'"SF Mono", SFMono-Regular, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", {CHINESE}, monospace'

PALETTES = {
    "light": {
        "page": "#f4f6fa",
        "panel": "#ffffff",
        "sunken": "#f1f4f9",
        "line": "#dde3ec",
        "ink": "#17202e",
        "muted": "#566275",
        "faint": "#8792a5",
        "ghost": "#c3ccd9",
        "blue": "#0072b2",
        "blue_soft": "#cfe4f2",
        "blue_ink": "#005d92",
        "green": "#009e73",
        "green_soft": "#cdeee3",
        "green_ink": "#00694c",
        "vermillion": "#d55e00",
        "vermillion_soft": "#fde5d4",
        "vermillion_ink": "#a64900",
        "purple": "#cc79a7",
        "purple_soft": "#f6e3ee",
        "purple_ink": "#9a4576",
        "shadow": "rgba(23, 32, 46, 0.06)",
    },
    "dark": {
        "page": "#0d1117",
        "panel": "#151b24",
        "sunken": "#1c2430",
        "line": "#2b3543",
        "ink": "#e8edf4",
        "muted": "#a3afc0",
        "faint": "#7c899c",
        "ghost": "#3d4959",
        "blue": "#3d9fdb",
        "blue_soft": "#173a54",
        "blue_ink": "#7cc4f0",
        "green": "#1fbf8f",
        "green_soft": "#123f34",
        "green_ink": "#5fdcb5",
        "vermillion": "#f07f2e",
        "vermillion_soft": "#472a17",
        "vermillion_ink": "#ffab6e",
        "purple": "#d98fba",
        "purple_soft": "#432a3a",
        "purple_ink": "#eebcd8",
        "shadow": "rgba(0, 0, 0, 0.35)",
    },
}

# What a node in a state looks like. fill, line and text are palette names; "none" is transparent. Shape, fill and
# weight differ as well as colour, so that the picture reads without colour vision.
NODE_STYLES = {
    "-": {"symbol": "circle", "fill": "none", "line": "none", "width": 0, "opacity": 0, "text": "none"},
    "d": {"symbol": "circle", "fill": "panel", "line": "blue", "width": 1.4, "opacity": 1, "text": "muted"},
    "n": {"symbol": "circle", "fill": "blue_soft", "line": "blue", "width": 1.8, "opacity": 1, "text": "ink"},
    "x": {"symbol": "square", "fill": "purple", "line": "purple_ink", "width": 1.8, "opacity": 1, "text": "ink"},
    "k": {"symbol": "circle", "fill": "blue", "line": "blue", "width": 1, "opacity": 1, "text": "ink"},
    "p": {"symbol": "circle-open", "fill": "ghost", "line": "ghost", "width": 1, "opacity": 1, "text": "faint"},
    "v": {"symbol": "circle", "fill": "green_soft", "line": "green", "width": 3, "opacity": 1, "text": "ink"},
    "a": {"symbol": "circle", "fill": "green", "line": "green_ink", "width": 1.5, "opacity": 1, "text": "green_ink"},
    "r": {"symbol": "circle", "fill": "panel", "line": "blue", "width": 1.2, "opacity": 1, "text": "muted"},
    "c": {"symbol": "circle-x", "fill": "green_soft", "line": "green", "width": 1.5, "opacity": 1, "text": "green_ink"},
    "o": {"symbol": "diamond", "fill": "vermillion", "line": "vermillion", "width": 1, "opacity": 1, "text": "ink"},
    "b": {
        "symbol": "diamond",
        "fill": "vermillion",
        "line": "vermillion_ink",
        "width": 1.5,
        "opacity": 1,
        "text": "vermillion_ink",
    },
}
BOLD_STATES = "avcbo"

# Edges take their look from the node they lead to; quiet ones are wider the more value they carry.
EDGE_SLOTS = {
    "quiet0": {"color": "ghost", "width": 1.2, "dash": "solid"},
    "quiet1": {"color": "ghost", "width": 2.4, "dash": "solid"},
    "quiet2": {"color": "ghost", "width": 4.2, "dash": "solid"},
    "new0": {"color": "blue", "width": 1.2, "dash": "solid"},
    "new1": {"color": "blue", "width": 2.4, "dash": "solid"},
    "new2": {"color": "blue", "width": 4.2, "dash": "solid"},
    "pruned": {"color": "ghost", "width": 0.9, "dash": "dot"},
    "agreed": {"color": "green", "width": 3.2, "dash": "8px,4px"},
    "cut": {"color": "green", "width": 3.2, "dash": "2px,4px"},
    "accepted": {"color": "green", "width": 5, "dash": "solid"},
    "bonus": {"color": "vermillion", "width": 3.2, "dash": "6px,4px"},
    "lit": {"color": "ink", "width": 2.2, "dash": "solid"},
}
EDGE_STATES = {
    "d": "quiet",
    "n": "new",
    "x": "quiet",
    "k": "quiet",
    "p": "pruned",
    "v": "agreed",
    "a": "accepted",
    "r": "quiet",
    "c": "cut",
    "b": "bonus",
}
EDGE_STEPS = (0.05, 0.3)
"""Values from which a quiet or new edge is of the second and third width."""


def edge_slot(state: str, value: float) -> str | None:
    """Which line an edge is drawn with; None if it is hidden."""
    slot = EDGE_STATES.get(state)
    return f"{slot}{sum(value >= step for step in EDGE_STEPS)}" if slot in ("quiet", "new") else slot


BAR_STYLES = {
    "-": {"fill": "none", "line": "none"},
    "d": {"fill": "blue_soft", "line": "blue_soft"},
    "n": {"fill": "blue", "line": "blue"},
    "x": {"fill": "purple", "line": "purple"},
    "k": {"fill": "blue", "line": "blue"},
    "p": {"fill": "ghost", "line": "ghost"},
    "v": {"fill": "green_soft", "line": "green"},
    "a": {"fill": "green", "line": "green"},
    "r": {"fill": "blue", "line": "blue"},
    "c": {"fill": "green_soft", "line": "green"},
}

# Mask cells by the state of their row; "." is a pair that does not see each other.
CELL_CODES = ".-mvasl"
"""A cell's number is its place here: hidden pair, row not there yet, mask, visited, accepted, own diagonal, lit row."""
CELL_COLORS = {
    ".": "sunken",
    "-": "sunken",
    "m": "blue",
    "v": "green",
    "a": "green",
    "s": "blue_ink",
    "l": "ink",
}


def color(name: str, theme: str) -> str:
    """The palette's colour, or transparent for "none"."""
    return "rgba(0,0,0,0)" if name == "none" else PALETTES[theme][name]


def css_variables(theme: str) -> str:
    """The palette as CSS declarations: `--blue-soft: #…;`."""
    return " ".join(f"--{name.replace('_', '-')}: {value};" for name, value in PALETTES[theme].items())


def marker_size(value: float) -> float:
    """Diameter in pixels; the area above a small minimum follows the value."""
    return (49 + 435 * max(0.0, min(1.0, value))) ** 0.5


def template(theme: str) -> dict:
    """Everything of a Plotly layout that is only looks, as a layout template."""
    palette = PALETTES[theme]
    axis = {
        "gridcolor": palette["line"],
        "linecolor": palette["line"],
        "tickcolor": palette["line"],
        "zerolinecolor": palette["line"],
        "tickfont": {"color": palette["muted"], "size": 14},
        "title": {"font": {"color": palette["muted"], "size": 14}},
    }
    return {
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": SANS, "size": 14, "color": palette["ink"]},
            "colorway": [palette[name] for name in ("blue", "green", "vermillion", "purple", "muted")],
            "hoverlabel": {
                "bgcolor": palette["panel"],
                "bordercolor": palette["ghost"],
                "font": {"color": palette["ink"], "size": 14, "family": SANS},
                "align": "left",
            },
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"font": {"color": palette["muted"], "size": 14}},
        }
    }
