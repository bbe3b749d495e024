"""All drafted nodes by value, best first, with the top-m cut; above it the predicted length beside the outcome.

If confidences are calibrated, 1 + the sum of the kept values is the expected number of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import plotly.graph_objects as go

from eagle2.analysis.target_choices import by_value
from eagle2.trace.rounds import Round
from visual.figures import theme
from visual.figures.phases import Phase, phases, walk
from visual.words.say import say

FLOOR = 1e-8
"""Smaller values are drawn as this: a logarithmic axis has no zero."""
FLAGGED = "avc"
"""States whose bars carry a flag, so that they are found without colour."""


def shown(drafted: int, kept: int) -> int:
    """How many bars fit before one must drag: a little over twice the kept ones."""
    return drafted if drafted <= max(40, 2.2 * kept) else round(max(40, 2.2 * kept))


def predicted_parts(round: Round) -> list[float]:
    """1 for the bonus, then what each level of kept nodes adds to the prediction."""
    parts = [0.0] * max((round.depth[i] for i in round.flattened), default=0)
    for index in round.flattened:
        parts[round.depth[index] - 1] += round.value[index]
    return [1.0, *parts]


def short(value: float) -> str:
    return f"{value:.1f}"


def values(
    round: Round,
    tokens: Mapping[int, bytes],
    phase: Phase | None = None,
    look: str = "light",
    language: str = "en",
) -> go.Figure:
    """The bars in one phase (the last one by default). Order and places are the final ones in every phase."""
    return go.Figure(values_spec(round, phase or phases(round)[-1], look, language))


def values_spec(round: Round, phase: Phase, look: str = "light", language: str = "en") -> dict:
    """The figure as plain lists and dicts."""
    order = by_value(round)
    kept, drafted = len(round.flattened), len(order)
    letters = [phase.nodes[i] for i in order]
    styles = [theme.BAR_STYLES[letter] for letter in letters]
    heights = [float(f"{max(FLOOR, round.value[i]):.3g}") for i in order]
    flagged = [place for place, letter in enumerate(letters) if letter in FLAGGED]
    window = shown(drafted, kept)
    floor = math.log10(max(FLOOR, heights[window - 1])) - 0.25
    threshold = kept + 0.5
    parts = predicted_parts(round)
    outcome = len(walk(round)) + 1
    green, blue, vermillion = (theme.color(name, look) for name in ("green", "blue", "vermillion"))
    panel = theme.color("panel", look)
    names = [say("values.actual", language), say("values.predicted", language)]
    cut_text = say("values.all_kept" if kept == drafted else "values.cut", language, kept=kept, drafted=drafted)
    traces: list[dict] = [
        {
            "type": "bar",
            "x": list(range(1, drafted + 1)),
            "y": heights,
            "customdata": order,
            "marker": {
                "color": [theme.color(st["fill"], look) for st in styles],
                "line": {"color": [theme.color(st["line"], look) for st in styles], "width": 1 if window < 200 else 0},
            },
            "hoverinfo": "none",
            "meta": "bars",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": [place + 1 for place in flagged],
            "y": [heights[place] * 1.35 for place in flagged],
            "marker": {"symbol": "triangle-down", "size": 11, "color": green, "line": {"width": 1, "color": panel}},
            "hoverinfo": "skip",
            "cliponaxis": False,
            "meta": "flags",
        },
    ]
    levels = [
        ("predicted", 1, part, vermillion if n == 0 else blue, 1 - 0.13 * min(4, max(0, n - 1)))
        for n, part in enumerate(parts)
    ]
    steps = [("actual", 0, 1.0, green if n else vermillion, 1.0) for n in range(outcome)]
    totals = [float(outcome), sum(parts)]
    for role, segments in (("predicted", levels), ("actual", steps)):
        lengths = [length for _, _, length, _, _ in segments]
        row = segments[0][1]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": lengths,
                "base": [sum(lengths[:n]) for n in range(len(lengths))],
                "y": [row] * len(lengths),
                "xaxis": "x2",
                "yaxis": "y2",
                "width": 0.62,
                "marker": {
                    "color": [shade for *_, shade, _ in segments],
                    "opacity": [opacity for *_, opacity in segments],
                    "line": {"color": panel, "width": 1.5},
                },
                "hoverinfo": "none",
                "meta": role,
            }
        )
        traces.append(
            {
                "type": "scatter",
                "mode": "text",
                "x": [totals[row]],
                "y": [row],
                "xaxis": "x2",
                "yaxis": "y2",
                "text": [f"  {short(totals[row])}" if row else f"  {outcome}"],
                "textposition": "middle right",
                "textfont": {"size": 15, "weight": 700},
                "hoverinfo": "skip",
                "cliponaxis": False,
                "meta": role,
            }
        )
    decades = list(range(math.ceil(floor), 1))
    bare = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    return {
        "data": traces,
        "layout": {
            "template": theme.template(look),
            "margin": {"l": 84, "r": 14, "t": 4, "b": 40},
            "barmode": "overlay",
            "bargap": 0.18 if window < 140 else 0.05,
            "xaxis": {
                "domain": [0, 1],
                "anchor": "y",
                "range": [0.3 - 0.02 * window, window + 0.7],
                "showgrid": False,
                "title": {"text": say("values.axis_rank", language), "standoff": 6},
                "tickvals": ticks(drafted),
                "zeroline": False,
            },
            "yaxis": {
                "domain": [0, 0.74],
                "type": "log",
                "range": [floor, 0.24],
                "tickvals": [10.0**d for d in decades] if len(decades) > 1 else [0.1, 0.2, 0.5, 1],
                "ticktext": [f"{10.0**d:.10f}".rstrip("0").rstrip(".") for d in decades] if len(decades) > 1 else None,
                "title": {"text": say("values.axis_value", language), "standoff": 4},
                "fixedrange": True,
            },
            "xaxis2": {
                **bare,
                "domain": [0, 1],
                "anchor": "y2",
                "range": [0, max(totals) * 1.14],
                "showticklabels": False,
            },
            "yaxis2": {
                **bare,
                "domain": [0.8, 1],
                "anchor": "x2",
                "range": [-0.6, 1.6],
                "tickvals": [0, 1],
                "ticktext": names,
                "tickfont": {"size": 14},
            },
            "shapes": [
                {
                    "type": "line",
                    "x0": threshold,
                    "x1": threshold,
                    "y0": 0,
                    "y1": 0.74,
                    "yref": "paper",
                    "line": {"color": vermillion, "width": 2, "dash": "dash"},
                    "opacity": 1 if phase.cut else 0,
                    "name": "cut",
                }
            ],
            "annotations": [
                {
                    "x": threshold if kept < drafted else drafted,
                    "y": 0.74,
                    "yref": "paper",
                    "xanchor": "left" if threshold < 0.6 * window else "right",
                    "yanchor": "top",
                    "xshift": 6 if threshold < 0.6 * window else -6,
                    "showarrow": False,
                    "text": cut_text,
                    "font": {"size": 14, "color": theme.color("vermillion_ink", look)},
                    "opacity": 1 if phase.cut else 0,
                    "name": "cut",
                },
                *(
                    [
                        {
                            "x": 1,
                            "xref": "paper",
                            "y": 0.74,
                            "yref": "paper",
                            "xanchor": "right",
                            "yanchor": "top",
                            "yshift": -22,
                            "showarrow": False,
                            "text": say("values.more", language, count=drafted - window),
                            "font": {"size": 14, "color": theme.color("muted", look)},
                            "name": "more",
                        }
                    ]
                    if window < drafted
                    else []
                ),
            ],
            "showlegend": False,
            "dragmode": False,
            "uirevision": "values",
        },
    }


def ticks(drafted: int) -> list[int]:
    """Ranks worth a number: the first, then a step that gives a handful within what is shown at first."""
    step = 5 if drafted <= 40 else 20 if drafted <= 300 else 25
    return [1, *range(step, drafted + 1, step)]
