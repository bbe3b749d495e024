"""Over a whole run: where each round's time went, and how many tokens each round brought against the prediction."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from eagle2.trace.rounds import Round
from visual.figures import theme
from visual.words.say import say

TIMES = ("prefill", "draft", "verify", "rest")
TIME_COLORS = {"prefill": "ghost", "draft": "purple", "verify": "blue", "rest": "faint"}
TIME_PATTERNS = {"prefill": "/", "draft": "", "verify": "", "rest": "."}


def layout(look: str, title: str, language: str) -> dict:
    return {
        "template": theme.template(look),
        "barmode": "stack",
        "bargap": 0.22,
        "height": 300,
        "margin": {"l": 56, "r": 12, "t": 40, "b": 44},
        "xaxis": {"title": {"text": say("statistics.round", language)}, "showgrid": False, "dtick": 1, "tickangle": 0},
        "yaxis": {"title": {"text": title}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "uirevision": "statistics",
    }


def axis_step(rounds: Sequence[Round]) -> int:
    return max(1, -(-len(rounds) // 16))


def time_split(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """Milliseconds of prefill, draft, verify and rest, stacked per round."""
    x = [r.index + 1 for r in rounds]
    traces = []
    for name in TIMES:
        y = [round(getattr(r, f"{name}_ms"), 2) for r in rounds]
        if any(y):
            marker = {"color": theme.color(TIME_COLORS[name], look), "pattern": {"shape": TIME_PATTERNS[name]}}
            text = say(f"statistics.{name}", language)
            traces.append({"type": "bar", "x": x, "y": y, "name": text, "marker": marker})
    figure = go.Figure({"data": traces, "layout": layout(look, say("statistics.time", language), language)})
    return figure.update_xaxes(dtick=axis_step(rounds))


def tokens_per_round(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """Accepted draft tokens and the bonus per round, before any stop or cap, with what was predicted."""
    x = [r.index + 1 for r in rounds]
    traces = [
        {
            "type": "bar",
            "x": x,
            "y": [int(r.bonus is not None) for r in rounds],
            "name": say("statistics.bonus", language),
            "marker": {"color": theme.color("vermillion", look)},
        },
        {
            "type": "bar",
            "x": x,
            "y": [len(r.accepted) for r in rounds],
            "name": say("statistics.accepted", language),
            "marker": {"color": theme.color("green", look)},
        },
    ]
    if any(r.token for r in rounds):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": x,
                "y": [round(r.predicted, 2) if r.token else None for r in rounds],
                "name": say("statistics.predicted", language),
                "marker": {
                    "symbol": "line-ew-open",
                    "size": 18,
                    "line": {"width": 3, "color": theme.color("ink", look)},
                    "color": theme.color("ink", look),
                },
            }
        )
    figure = go.Figure({"data": traces, "layout": layout(look, say("statistics.tokens", language), language)})
    return figure.update_xaxes(dtick=axis_step(rounds))
