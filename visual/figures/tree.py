"""The draft tree as a Plotly figure: kept nodes with labels, pruned siblings as one chip, the accepted path heavier.

`scene` holds what does not change from phase to phase (places, labels, lines); `tree` dresses it for one phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import plotly.graph_objects as go

from eagle2.trace.rounds import ROOT, Round
from visual.figures import theme, token_labels
from visual.figures.layout import BONUS, MARKER_GAP, Layout, edge, lay_out, tree_graph
from visual.figures.phases import Phase, phases
from visual.words.say import say

NOTE_GAP = 6.0
CHIP_GAP = 9.0
ROOT_SIZE = 16.0
DOT_SIZE = 5.0


@dataclass(frozen=True)
class Scene:
    """Points are the root (-1), the bonus token (-2) and pool indices, in the order they are drawn.

    label: escaped for Plotly. notes: per kind of note, the text behind each label. chips: parent -> pruned children.
    lines: child -> x, y of the edge that leads to it.
    """

    layout: Layout
    points: tuple[int, ...]
    label: tuple[str, ...]
    full: tuple[str, ...]
    size: tuple[float, ...]
    notes: dict[str, tuple[str, ...]]
    chips: dict[int, tuple[int, ...]]
    chip_x: dict[int, float]
    lines: dict[int, tuple[list[float], list[float]]] = field(default_factory=dict)


def short_number(value: float) -> str:
    """A probability in at most five characters: ".63", ".024", "<.001"."""
    if value >= 0.9995:
        return "1."
    if value >= 0.0995:
        return f"{value:.2f}"[1:] if value < 0.995 else "1."
    return f"{value:.3f}"[1:] if value >= 0.0005 else "<.001"


def scene(round: Round, tokens: Mapping[int, bytes], everything: bool = False) -> Scene:
    """Lay the round out. everything: pruned nodes as dots of their own instead of chips."""
    kept = round.flattened
    pruned: dict[int, list[int]] = {}
    for index, slot in enumerate(round.slot):
        if slot is None:
            pruned.setdefault(round.parent[index], []).append(index)
    kept_or_root = {ROOT, *kept}
    chips = {} if everything else {p: tuple(c) for p, c in pruned.items() if p in kept_or_root}
    graph = tree_graph(round, everything)
    points = tuple(sorted(graph, key=lambda n: (n >= 0, n if n >= 0 else -n)))

    def token(point: int) -> int | None:
        return round.root if point == ROOT else round.bonus if point == BONUS else round.token[point]

    dots = {p for p in points if p >= 0 and round.slot[p] is None}
    label = ["" if p in dots else token_labels.token_label(token(p), tokens) for p in points]
    notes = {
        "value": tuple("" if p < 0 or p in dots else short_number(round.value[p]) for p in points),
        "slot": tuple("#0" if p == ROOT else "" if p < 0 or p in dots else f"#{round.slot[p]}" for p in points),
        "target": tuple(
            ""
            if p < 0 or p in dots or round.target_probability[p] is None
            else short_number(round.target_probability[p])
            for p in points
        ),
    }
    cell, note_cell = theme.LABEL_PX * token_labels.CELL_EM, theme.NOTE_PX * token_labels.CELL_EM
    widths: dict[int, float] = {}
    chip_at: dict[int, float] = {}
    for place, point in enumerate(points):
        if point in dots:
            continue
        note = max(len(texts[place]) for texts in notes.values()) if point != BONUS else 0
        text = token_labels.cells(label[place]) * cell + (NOTE_GAP + note * note_cell if note else 0)
        chip_at[point] = text + CHIP_GAP
        widths[point] = text + (CHIP_GAP + len(chip_text(chips[point])) * note_cell if point in chips else 0)
    layout = lay_out(round, widths, everything)
    lines = {child: edge(layout, parent, child, samples=2 if child in dots else None) for parent, child in graph.edges}
    return Scene(
        layout=layout,
        points=points,
        label=tuple(token_labels.for_plotly(text) for text in label),
        full=tuple(token_labels.token_full(token(p), tokens) for p in points),
        size=tuple(ROOT_SIZE if p < 0 else DOT_SIZE if p in dots else round_size(round.value[p]) for p in points),
        notes=notes,
        chips=chips,
        chip_x={p: round_(layout.x[p] + MARKER_GAP + chip_at[p]) for p in chips},
        lines=lines,
    )


def round_(value: float) -> float:
    return round(value, 1)


def round_size(value: float) -> float:
    return round(theme.marker_size(value), 1)


def chip_text(children: tuple[int, ...]) -> str:
    return f"+{len(children)}"


def dressed(label: str, note: str) -> str:
    """A label with its note, smaller and quieter, in Plotly's small HTML. `label` is escaped already."""
    if not note:
        return label
    style = f"font-size:{theme.NOTE_PX}px;font-weight:400;fill-opacity:0.62"
    return f'{label} <span style="{style}">{note.replace("<", "&lt;")}</span>'


def states(scene: Scene, phase: Phase) -> list[str]:
    """A letter per point: the phase's own for drafted nodes; root and bonus are told apart here."""
    letters = {ROOT: "o", BONUS: "b" if phase.bonus else "-"}
    return [letters[p] if p < 0 else phase.nodes[p] for p in scene.points]


def tree(
    round: Round,
    tokens: Mapping[int, bytes],
    phase: Phase | None = None,
    look: str = "light",
    everything: bool = False,
    language: str = "en",
) -> go.Figure:
    """The tree in one phase (the last one by default). look: "light" or "dark".

    The layout's `meta` says at which heights the root and what the phase is about are, for a frame that scrolls.
    """
    phase, s = phase or phases(round)[-1], scene(round, tokens, everything)
    spec = tree_spec(round, tokens, phase, s, look, language)
    spec["data"] = [trace for trace in spec["data"] if trace["x"]]
    spec["layout"]["meta"] = {"focus": [s.layout.y[p] for p in (ROOT, *phase.focus) if p in s.layout.y]}
    return go.Figure(spec)


def tree_spec(
    round: Round, tokens: Mapping[int, bytes], phase: Phase, s: Scene, look: str = "light", language: str = "en"
) -> dict:
    """The figure as plain lists and dicts; lines that are empty in this phase are there too."""
    letters = states(s, phase)
    by_point = dict(zip(s.points, letters, strict=True))
    styles = [theme.NODE_STYLES[letter] for letter in letters]
    xs, ys = [s.layout.x[p] for p in s.points], [s.layout.y[p] for p in s.points]
    shown = [p for p in s.chips if p == ROOT or any(phase.nodes[c] != "-" for c in s.chips[p])]

    traces: list[dict] = []
    for slot, look_of in theme.EDGE_SLOTS.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for child, (line_x, line_y) in s.lines.items():
            value = round.value[child] if child >= 0 else 0.0
            if theme.edge_slot(by_point[child], value) == slot:
                x += [*line_x, None]
                y += [*line_y, None]
        line = {"color": theme.color(look_of["color"], look), "width": look_of["width"], "dash": look_of["dash"]}
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "line": line,
                "hoverinfo": "skip",
                "meta": f"edge:{slot}",
            }
        )
    halo = {"symbol": "circle-open", "color": theme.color("ink", look), "line": {"width": 2}}
    traces.append(
        {"type": "scatter", "mode": "markers", "x": [], "y": [], "marker": halo, "hoverinfo": "skip", "meta": "halo"}
    )
    note_font = {"family": theme.MONO, "size": theme.NOTE_PX, "color": theme.color("faint", look)}
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": [s.chip_x[p] for p in shown],
            "y": [s.layout.y[p] for p in shown],
            "text": [chip_text(s.chips[p]) for p in shown],
            "textposition": "middle right",
            "textfont": note_font,
            "hoverinfo": "text",
            "hovertext": [chip_hover(round, p, s, tokens, language) for p in shown],
            "meta": "chips",
        }
    )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": xs,
            "y": ys,
            "customdata": list(s.points),
            "cliponaxis": False,
            "marker": {
                "size": list(s.size),
                "symbol": [st["symbol"] for st in styles],
                "color": [theme.color(st["fill"], look) for st in styles],
                "opacity": [st["opacity"] for st in styles],
                "line": {
                    "color": [theme.color(st["line"], look) for st in styles],
                    "width": [st["width"] for st in styles],
                },
            },
            "hoverinfo": "text",
            "hovertext": [
                hover(round, p, token_labels.for_plotly(s.full[i]), language) for i, p in enumerate(s.points)
            ],
            "meta": "nodes",
        }
    )
    notes = s.notes[phase.note]
    named = [place for place, text in enumerate(s.label) if text]
    traces.append(
        {
            "type": "scatter",
            "mode": "text",
            "x": [xs[i] + MARKER_GAP for i in named],
            "y": [ys[i] for i in named],
            "text": [dressed(s.label[i], notes[i] if letters[i] != "-" else "") for i in named],
            "textposition": "middle right",
            "textfont": {
                "family": theme.MONO,
                "size": theme.LABEL_PX,
                "color": [theme.color(styles[i]["text"], look) for i in named],
                "weight": [700 if letters[i] in theme.BOLD_STATES else 400 for i in named],
            },
            "hoverinfo": "skip",
            "meta": "labels",
        }
    )
    axis = {"visible": False, "showgrid": False, "zeroline": False, "fixedrange": False}
    return {
        "data": traces,
        "layout": {
            "template": theme.template(look),
            "width": s.layout.width,
            "height": s.layout.height,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "xaxis": {**axis, "range": [0, s.layout.width]},
            "yaxis": {**axis, "range": [s.layout.height, 0]},
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": "pan",
            "uirevision": "tree",
        },
    }


def hover(round: Round, point: int, full: str, language: str) -> str:
    if point < 0:
        return f"{full}<br>{say('tree.root' if point == ROOT else 'tree.bonus', language)}"
    return f"{full}<br>V {round.value[point]:.3g} · c {round.confidence[point]:.3g}"


def chip_hover(round: Round, parent: int, s: Scene, tokens: Mapping[int, bytes], language: str) -> str:
    name = round.root if parent == ROOT else round.token[parent]
    heading = say("tree.chip", language, count=len(s.chips[parent]), parent=token_labels.token_label(name, tokens))
    lines = [
        f"{token_labels.token_label(round.token[c], tokens, 24)}  {short_number(round.value[c])}"
        for c in s.chips[parent]
    ]
    return "<br>".join(token_labels.for_plotly(line) for line in (heading, *lines))
