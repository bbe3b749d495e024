"""Over a whole benchmark: where each method's rounds spend their time, and what verifying more nodes brings.

The numbers are `eagle2.bench.results`'; here they are only drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from eagle2.bench.results import Phases, Result, overall
from eagle2.trace.rounds import Round
from visual.figures import theme
from visual.figures.over_rounds import acceptance_by_position, reliability, tau_by_max_nodes
from visual.figures.per_round import TIME_COLORS, TIME_PATTERNS, layout
from visual.words.say import say

PHASES = ("draft", "verify", "rest")


def pages(made: Sequence[Result], phases: Sequence[Phases], rounds: Sequence[Round]) -> dict[str, go.Figure]:
    """All figures of a benchmark, by file name. rounds: recorded; figures that need them are left out where empty."""
    drawn = {"time-by-method": time_by_method(phases), "gain-by-nodes": gain_by_nodes(made, phases)}
    if rounds:
        drawn["acceptance-by-position"] = acceptance_by_position(rounds)
        drawn["reliability"] = reliability(rounds)
        drawn["tau-by-max-nodes"] = tau_by_max_nodes(rounds)
    return drawn


def time_by_method(phases: Sequence[Phases], look: str = "light", language: str = "en") -> go.Figure:
    """Milliseconds of an average round by phase, stacked, one bar for each method and temperature; prefill left out."""
    x = [f"{p.method}, T = {p.temperature:g}" for p in phases]
    data = [
        {
            "type": "bar",
            "x": x,
            "y": [round(getattr(p, f"{name}_ms"), 3) for p in phases],
            "name": say(f"statistics.{name}", language),
            "marker": {"color": theme.color(TIME_COLORS[name], look), "pattern": {"shape": TIME_PATTERNS[name]}},
        }
        for name in PHASES
    ]
    figure = go.Figure({"data": data, "layout": layout(look, say("statistics.time", language), language)})
    return figure.update_xaxes(title=None, dtick=None, type="category").update_layout(height=420)


def gain_by_nodes(
    results: Sequence[Result], phases: Sequence[Phases], look: str = "light", language: str = "en"
) -> go.Figure:
    """tau and speedup, means over families, against the nodes that a round verified; one point for each method."""
    data = []
    looks = {"tau": ("green", "circle"), "speedup": ("vermillion", "square")}
    for temperature in dict.fromkeys(p.temperature for p in phases):
        points = sorted((p for p in phases if p.temperature == temperature), key=lambda p: p.nodes)
        means = [overall(results, p.method, temperature) for p in points]
        for name, place in (("tau", 1), ("speedup", 0)):
            color, symbol = looks[name]
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers+text",
                    "x": [round(p.nodes, 2) for p in points],
                    "y": [round(pair[place], 4) if pair else None for pair in means],
                    "text": [p.method for p in points],
                    "textposition": "top center",
                    "name": f"{say(f'benchmark.{name}', language)}, T = {temperature:g}",
                    "marker": {
                        "size": 11,
                        "symbol": symbol if temperature == 0 else f"{symbol}-open",
                        "color": theme.color(color, look),
                    },
                }
            )
    figure = go.Figure({"data": data, "layout": layout(look, say("benchmark.gain", language), language)})
    return figure.update_xaxes(title=say("benchmark.nodes", language), dtick=None).update_layout(height=480)
