"""Over any set of rounds, of a session or of loaded traces: what the paper's figures 5 and 6 show, and what follows.

    trace = trace_file.load("assets/traces/pancakes.json.gz")
    figures.reliability(trace.rounds).show()

The numbers are `eagle2.statistics`'; here they are only drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from eagle2.analysis import statistics
from eagle2.trace.rounds import Round
from visual.figures import theme
from visual.words.say import say

HEIGHT = 320
"""In pixels, of every figure."""
COUNTS_AT = -0.06
"""Where, under the bars, the number of nodes in each is written."""
FEW = 5
"""A run of fewer rounds gets no dot of its own: its share would be noise."""
LENGTH_STEP = 0.5
"""Predictions this close together share one mean."""
FATE_LOOKS = {"accepted": ("green", ""), "rejected": ("blue", "/"), "pruned": ("ghost", ".")}
DECADES = 6
"""Values under 10 to the minus this many share the lowest bin."""


def layout(look: str, x: str, y: str, **more: object) -> dict:
    return {
        "template": theme.template(look),
        "height": HEIGHT,
        "margin": {"l": 64, "r": 16, "t": 40, "b": 60},
        "xaxis": {"title": {"text": x, "standoff": 8}, "ticklabelstandoff": 4, "zeroline": False},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "uirevision": "session",
        **more,
    }


def diagonal(low: float, high: float, look: str, name: str) -> dict:
    line = {"color": theme.color("muted", look), "width": 2, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "x": [low, high], "y": [low, high], "name": name, "line": line} | {
        "hoverinfo": "skip",
        "meta": "diagonal",
    }


def whiskers(shares: Sequence[tuple[int, int]], look: str) -> dict:
    """Error bars over hits-of-count shares: Wilson's 95 % intervals."""
    bounds = [(hits / count, *statistics.interval(hits, count)) for hits, count in shares]
    return {
        "type": "data",
        "symmetric": False,
        "array": [round(high - share, 4) for share, _, high in bounds],
        "arrayminus": [round(share - low, 4) for share, low, _ in bounds],
        "color": theme.color("muted", look),
        "thickness": 1.5,
        "width": 4,
    }


def reliability(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """Of the drafted children of visited nodes, what share the target drew, by confidence (paper, figure 6)."""
    bins = [b for b in statistics.reliability(rounds) if b.count]
    bars = {
        "type": "bar",
        "x": [round((b.low + b.high) / 2, 4) for b in bins],
        "width": [round(b.high - b.low, 4) * 0.86 for b in bins],
        "y": [round(b.share, 4) for b in bins],
        "name": say("session.reliability_bars", language),
        "customdata": [say("session.count", language, drawn=b.drawn, count=b.count) for b in bins],
        "hovertemplate": "%{y:.3f} (%{customdata})<extra></extra>",
        "marker": {"color": theme.color("blue_soft", look), "line": {"color": theme.color("blue", look), "width": 1.5}},
        "error_y": whiskers([(b.drawn, b.count) for b in bins], look),
        "meta": "bins",
    }
    counts = {
        "type": "scatter",
        "mode": "text",
        "x": bars["x"],
        "y": [COUNTS_AT] * len(bins),
        "text": [str(b.count) for b in bins],
        "textfont": {"color": theme.color("muted", look), "size": 14},
        "showlegend": False,
        "hoverinfo": "skip",
        "meta": "counts",
    }
    figure = go.Figure(
        {
            "data": [bars, counts, diagonal(0, 1, look, say("session.calibrated", language))],
            "layout": layout(look, say("session.confidence", language), say("session.drawn_share", language)),
        }
    )
    return figure.update_xaxes(range=[0, 1], dtick=0.2).update_yaxes(range=[2 * COUNTS_AT, 1.02])


def split_runs(rounds: Sequence[Round]) -> list[list[Round]]:
    """Rounds laid end to end, cut where a run begins."""
    runs: list[list[Round]] = []
    for r in rounds:
        if r.index == 0 or not runs:
            runs.append([])
        runs[-1].append(r)
    return runs


def position_name(ranks: tuple[int, ...]) -> str:
    """Ranks as a reader counts them: the likeliest token's second child is "1.2"."""
    return ".".join(str(rank + 1) for rank in ranks)


def acceptance_by_position(
    rounds: Sequence[Round], look: str = "light", language: str = "en", width: int = 2, depth: int = 2
) -> go.Figure:
    """How often each position in the tree was right, over all rounds and in each run (paper, figure 5)."""
    found = statistics.positions(rounds, width, depth)
    shades = [theme.color(("blue", "purple", "vermillion", "green")[(len(p.ranks) - 1) % 4], look) for p in found]
    data: list[dict] = [
        {
            "type": "bar",
            "x": [position_name(p.ranks) for p in found],
            "y": [round(p.share, 4) for p in found],
            "name": say("session.position_bars", language),
            "customdata": [say("session.count", language, drawn=p.drawn, count=p.drafted) for p in found],
            "hovertemplate": "%{x}: %{y:.3f} (%{customdata})<extra></extra>",
            "marker": {"color": shades},
            "error_y": whiskers([(p.drawn, p.drafted) for p in found], look),
            "meta": "positions",
        }
    ]
    runs = [run for run in split_runs(rounds) if len(run) >= FEW]
    if len(runs) > 1:
        dots = [p for run in runs for p in statistics.positions(run, width, depth) if p.drafted >= FEW]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [position_name(p.ranks) for p in dots],
                "y": [round(p.share, 4) for p in dots],
                "name": say("session.position_runs", language),
                "marker": {"symbol": "circle-open", "size": 8, "color": theme.color("ink", look)},
                "hovertemplate": "%{x}: %{y:.3f}<extra></extra>",
                "meta": "runs",
            }
        )
    title = say("session.position", language), say("session.right_share", language)
    figure = go.Figure({"data": data, "layout": layout(look, *title, showlegend=len(data) > 1)})
    order = [position_name(p.ranks) for p in found]
    return figure.update_xaxes(type="category", categoryorder="array", categoryarray=order, tickangle=0)


def accepted_against_predicted(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """Each round's tokens against 1 + the sum of its kept values, and means of rounds with like predictions."""
    found = statistics.lengths(rounds)
    groups: dict[int, list[statistics.Length]] = {}
    for length in found:
        groups.setdefault(math.floor(length.predicted / LENGTH_STEP), []).append(length)
    means = [
        (sum(e.predicted for e in group) / len(group), sum(e.tokens for e in group) / len(group), len(group))
        for _, group in sorted(groups.items())
    ]
    green, blue = theme.color("green", look), theme.color("blue", look)
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [round(e.predicted, 3) for e in found],
            "y": [e.tokens for e in found],
            "name": say("session.rounds", language),
            "marker": {"symbol": "circle-open", "size": 8, "opacity": 0.55, "color": blue},
            "hovertemplate": "%{x:.2f} → %{y}<extra></extra>",
            "meta": "rounds",
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [round(x, 3) for x, _, _ in means],
            "y": [round(y, 3) for _, y, _ in means],
            "customdata": [count for *_, count in means],
            "name": say("session.means", language),
            "line": {"color": green, "width": 2.5},
            "marker": {"symbol": "diamond", "size": 11, "color": green},
            "hovertemplate": "%{x:.2f} → %{y:.2f} (%{customdata})<extra></extra>",
            "meta": "means",
        },
    ]
    longest = max([1.0, *(e.predicted for e in found), *(float(e.tokens) for e in found)])
    data.insert(0, diagonal(1, longest, look, say("session.calibrated", language)))
    titles = say("session.predicted", language), say("session.tokens", language)
    figure = go.Figure({"data": data, "layout": layout(look, *titles)})
    return figure.update_xaxes(range=[0.9, longest + 0.2]).update_yaxes(range=[0.7, longest + 0.4])


def tau_by_max_nodes(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """Tokens per round had reranking kept 1, 2, … of the nodes recorded, against what the values foretell."""
    found = statistics.budgets(rounds)[1:]
    x = [b.max_nodes for b in found]
    lines = (
        ("would", [b.tokens for b in found], {"color": theme.color("green", look), "width": 3}),
        ("foreseen", [b.predicted for b in found], {"color": theme.color("blue", look), "width": 2, "dash": "dash"}),
    )
    data = [
        {
            "type": "scatter",
            "mode": "lines" if len(x) > 1 else "markers",
            "x": x,
            "y": [round(value, 4) for value in y],
            "name": say(f"session.{name}", language),
            "line": line,
            "hovertemplate": "%{x}: %{y:.2f}",
            "meta": name,
        }
        for name, y, line in lines
    ]
    titles = say("session.max_nodes", language), say("session.tokens", language)
    figure = go.Figure({"data": data, "layout": layout(look, *titles, hovermode="x")})
    figure.update_yaxes(range=[1, 1.04 * max([1.0, *(max(b.predicted, b.tokens) for b in found)]) + 0.1])
    figure.update_xaxes(type="log", tickvals=[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000])
    kept = {r.kept for r in rounds if r.token}
    if len(kept) == 1 and found:
        shown = say("session.as_recorded", language, kept=min(kept))
        dash = {"color": theme.color("vermillion", look), "width": 2, "dash": "dot"}
        figure.add_shape(type="line", x0=min(kept), x1=min(kept), y0=0, y1=1, yref="paper", line=dash, name="kept")
        ink = {"color": theme.color("vermillion_ink", look), "size": 14}
        place = {"x": math.log10(min(kept)), "y": 0.02, "yref": "paper", "yanchor": "bottom", "xanchor": "left"}
        figure.add_annotation(**place, xshift=6, text=shown, showarrow=False, font=ink, name="kept")
    return figure


def values_by_fate(rounds: Sequence[Round], look: str = "light", language: str = "en") -> go.Figure:
    """How the values of accepted, rejected and pruned nodes are spread; each kind's bars add up to 1."""
    bins = 2 * DECADES
    places = [-DECADES + (step + 0.5) / 2 for step in range(bins)]
    data = []
    for fate, values in statistics.values_by_fate(rounds).items():
        counts = [0] * bins
        for value in values:
            height = 2 * (math.log10(value) + DECADES) if value > 0 else 0.0  # in half decades above the lowest
            counts[min(max(0, math.floor(height)), bins - 1)] += 1
        shade, pattern = FATE_LOOKS[fate]
        data.append(
            {
                "type": "bar",
                "x": places,
                "y": [round(count / len(values), 4) if values else 0 for count in counts],
                "customdata": counts,
                "name": say(f"session.fate.{fate}", language, count=len(values)),
                "marker": {"color": theme.color(shade, look), "pattern": {"shape": pattern, "solidity": 0.6}},
                "hovertemplate": "%{y:.3f} (%{customdata})",
                "meta": fate,
            }
        )
    titles = say("session.value", language), say("session.node_share", language)
    figure = go.Figure({"data": data, "layout": layout(look, *titles, bargap=0.1, barmode="group", hovermode="x")})
    decades = list(range(-DECADES, 1))
    return figure.update_xaxes(tickvals=decades, ticktext=[f"{10.0**d:.10f}".rstrip("0").rstrip(".") for d in decades])
