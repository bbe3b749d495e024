"""The tree attention mask as a heat map: rows look, columns are seen, slot 0 is the root; the prefix is one band.

Every row also sees the whole prefix, so that is drawn once, at the left. `visible` is the mask itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from eagle2.trace.rounds import ROOT, Round
from visual.figures import theme, token_labels
from visual.figures.phases import Phase, phases
from visual.words.say import say

LABELLED_ROWS = 20
"""Up to this many rows each is labelled with its token."""


def parents_by_slot(round: Round) -> list[int]:
    """The slot of each row's parent; -1 for the root."""
    slots = [-1]
    for index in round.flattened:
        parent = round.parent[index]
        slots.append(0 if parent == ROOT else round.slot[parent])
    return slots


def visible(parents: list[int]) -> list[list[int]]:
    """Per row the slots it sees, itself included, the root first."""
    seen: list[list[int]] = []
    for slot, parent in enumerate(parents):
        seen.append([*(seen[parent] if parent >= 0 else []), slot])
    return seen


def cells(parents: list[int], rows: str) -> list[list[int]]:
    """Colour codes: 0 where a pair is hidden, else the row's state; a mask row's own cell is told apart."""
    grid = []
    for slot, seen in enumerate(visible(parents)):
        line = [0] * len(parents)
        code = theme.CELL_CODES.index(rows[slot])
        for column in seen:
            line[column] = theme.CELL_CODES.index("s") if code == 2 and column == slot else code
        grid.append(line)
    return grid


def colorscale(look: str) -> list[list]:
    """Each code its own colour: steps, no blending."""
    count = len(theme.CELL_CODES)
    scale = []
    for place, code in enumerate(theme.CELL_CODES):
        shade = theme.color(theme.CELL_COLORS[code], look)
        scale += [[place / count, shade], [(place + 1) / count, shade]]
    return scale


def row_label(round: Round, slot: int, tokens: Mapping[int, bytes]) -> str:
    token = round.root if slot == 0 else round.token[round.flattened[slot - 1]]
    return token_labels.token_label(token, tokens, 10)


def mask(
    round: Round, tokens: Mapping[int, bytes], phase: Phase | None = None, look: str = "light", language: str = "en"
) -> go.Figure:
    """The mask in one phase (the last one by default)."""
    return go.Figure(mask_spec(round, tokens, phase or phases(round)[-1], look, language))


def mask_spec(
    round: Round, tokens: Mapping[int, bytes], phase: Phase, look: str = "light", language: str = "en"
) -> dict:
    """The figure as plain lists and dicts."""
    parents = parents_by_slot(round)
    rows = phase.rows or "-"
    count = len(parents)
    names = [token_labels.for_plotly(row_label(round, slot, tokens)) for slot in range(count)]
    gap = 1.2 if count <= 40 else 0.6
    band = -max(1.0, count / 24)  # the prefix, as wide as a column or more
    labelled = count <= LABELLED_ROWS
    axis = {"showgrid": False, "zeroline": False, "showline": False, "ticks": ""}
    return {
        "data": [
            {
                "type": "heatmap",
                "z": cells(parents, rows),
                "zmin": 0,
                "zmax": len(theme.CELL_CODES),
                "colorscale": colorscale(look),
                "showscale": False,
                "xgap": gap,
                "ygap": gap,
                "hoverinfo": "none",
                "meta": "mask",
            }
        ],
        "layout": {
            "template": theme.template(look),
            "margin": {"l": 92 if labelled else 30, "r": 6, "t": 24, "b": 8},
            "xaxis": {
                **axis,
                "range": [band - 0.7, count - 0.5],
                "side": "top",
                "showticklabels": False,
                "constrain": "domain",
            },
            "yaxis": {
                **axis,
                "range": [count - 0.5, -0.5],
                **(
                    {}
                    if 8 < count <= LABELLED_ROWS
                    else {"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"}
                ),
                "tickvals": list(range(count)) if labelled else [0, *range(10, count, 10)],
                "ticktext": names if labelled else ["0", *(str(s) for s in range(10, count, 10))],
                "tickfont": {"family": theme.MONO, "size": 14 if labelled else 13},
            },
            "shapes": [
                {
                    "type": "rect",
                    "x0": band - 0.5,
                    "x1": -0.75,
                    "y0": -0.5,
                    "y1": count - 0.5,
                    "fillcolor": theme.color("ghost", look),
                    "line": {"width": 0},
                    "layer": "below",
                    "name": "prefix",
                }
            ],
            "annotations": [
                {
                    "x": band - 0.5,
                    "y": -0.5,
                    "xanchor": "left",
                    "yanchor": "bottom",
                    "showarrow": False,
                    "text": say("mask.prefix", language),
                    "font": {"size": 14, "color": theme.color("muted", look)},
                }
            ],
            "showlegend": False,
            "dragmode": "zoom",
            "uirevision": "mask",
        },
    }
