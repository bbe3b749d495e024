"""A training run's log: cross-entropy as it falls, agreement on held-out chats as it rises.

figures.training("runs/first/log.jsonl").show()
"""

from __future__ import annotations

import json
from pathlib import Path

import plotly.graph_objects as go

from visual.figures import theme
from visual.words.say import say

SMOOTHING = 0.97
"""Share of the last value that a smoothed loss keeps: single batches differ more than the trend does."""
STEP_COLORS = ("blue", "green", "vermillion", "purple", "muted")


def training(log: str | Path, look: str = "light", language: str = "en") -> go.Figure:
    """Both over tokens seen (repetitions counted), one line for each draft step; `log` is `eagle2 train`'s log.jsonl.

    Raises ValueError for a file that is no such log.
    """
    losses, agreements = _read(Path(log))
    data = []
    for step, points in enumerate(losses):
        data.append(_line(points, step, look, language, axis="y", mode="lines", smooth=True))
    for step, points in enumerate(agreements):
        data.append(_line(points, step, look, language, axis="y2", mode="lines+markers", smooth=False))
    figure = go.Figure({"data": data, "layout": {"template": theme.template(look), "height": 560}})
    figure.update_layout(
        xaxis={"title": {"text": say("training.tokens", language)}, "anchor": "y2", "zeroline": False},
        yaxis={"title": {"text": say("training.loss", language)}, "domain": [0.55, 1]},
        yaxis2={"title": {"text": say("training.agreement", language)}, "domain": [0, 0.45], "range": [0, 1]},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"l": 64, "r": 16, "t": 48, "b": 52},
    )
    return figure


def _read(log: Path) -> tuple[list[list[tuple[int, float]]], list[list[tuple[int, float]]]]:
    """(tokens, value) points of each draft step: cross-entropies, then agreements."""
    losses: list[list[tuple[int, float]]] = []
    agreements: list[list[tuple[int, float]]] = []
    for number, line in enumerate(log.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            series, values = (losses, entry["loss"]) if "loss" in entry else (agreements, entry["held_out"])
            points = [(int(entry["tokens"]), float(value)) for value in values]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{log}, line {number}, is no entry of a training log") from error
        for step, point in enumerate(points):
            if step == len(series):
                series.append([])
            series[step].append(point)
    if not losses and not agreements:
        raise ValueError(f"{log} holds no entries; it is written by `python -m eagle2 train`")
    return losses, agreements


def _line(points: list[tuple[int, float]], step: int, look: str, language: str, axis: str, mode: str, smooth: bool):
    values = [value for _, value in points]
    if smooth:
        kept = values[0]
        values = [kept := SMOOTHING * kept + (1 - SMOOTHING) * value for value in values]
    return {
        "type": "scatter",
        "mode": mode,
        "x": [tokens for tokens, _ in points],
        "y": [round(value, 4) for value in values],
        "yaxis": axis,
        "name": say("training.step", language, step=step + 1),
        "legendgroup": step,
        "showlegend": axis == "y2",
        "line": {"color": theme.color(STEP_COLORS[step % len(STEP_COLORS)], look), "width": 2},
    }
