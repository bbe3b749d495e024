"""A tidy layered layout, left to right, of the tree one round drew (Reingold and Tilford 1981, Buchheim et al. 2002).

Columns are levels, rows are kept nodes; pruned children share one chip behind their parent's label. Pixels at scale 1,
y downwards. Knows widths and parents only, nothing of states: one layout serves every phase of a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from eagle2.trace.rounds import ROOT, Round

BONUS = -2
"""The bonus token's place in the graph: a child of the last accepted node, or of the root."""

ROW = 21.0
COUSINS = 7.0
"""Rows of different parents stand this much further apart."""
DIAMOND_ROW = 32.0
DOT_ROW = 6.5
MARKER_GAP = 15.0
"""From a node's centre to the start of its label; the largest marker's radius is 11."""
EDGE_MIN = 38.0
MARGIN = 22.0


@dataclass(frozen=True)
class Layout:
    """x, y: a node's centre. ends: where its label ends. columns: where each level's longest label ends.

    width, height: of the whole picture, margins included. levels: depth of the deepest node, the root's being 0.
    """

    x: dict[int, float]
    y: dict[int, float]
    ends: dict[int, float]
    columns: tuple[float, ...]
    level: dict[int, int]
    width: float
    height: float

    @property
    def levels(self) -> int:
        return len(self.columns) - 1


def tree_graph(round: Round, everything: bool = False) -> nx.DiGraph:
    """The root, the kept nodes (or all drafted ones) and the bonus token, children in pool order."""
    graph = nx.DiGraph()
    graph.add_node(ROOT)
    for index, (parent, slot) in enumerate(zip(round.parent, round.slot, strict=True)):
        if everything or slot is not None:
            graph.add_edge(parent, index)
    if round.bonus is not None:
        end = round.accepted[-1] if round.accepted else ROOT
        parent = end if end in graph else ROOT
        siblings = list(graph.successors(parent))
        graph.remove_edges_from([(parent, child) for child in siblings])
        middle = (len(siblings) + 1) // 2  # beside its parent, so that the line to it is short
        graph.add_edges_from((parent, child) for child in (*siblings[:middle], BONUS, *siblings[middle:]))
    return graph


def tidy(graph: nx.DiGraph, row: Mapping[int, float], cousins: float = COUSINS) -> dict[int, float]:
    """The y of every node: parents in the middle of their children, subtrees as close as their outlines allow.

    row: how tall each node is. Two nodes of one level keep half of both heights apart, and `cousins` more where their
    parents differ.
    """
    offset: dict[int, float] = {}  # from the parent's y
    outline: dict[int, list[tuple[float, float]]] = {}  # per level below and with the node: top, bottom, from its own y
    for node in nx.dfs_postorder_nodes(graph, ROOT):
        half = row[node] / 2
        children = list(graph.successors(node))
        places = spread([outline[child] for child in children], cousins)
        middle = (places[0] + places[-1]) / 2 if places else 0.0
        merged: list[tuple[float, float]] = []
        for child, place in zip(children, places, strict=True):
            offset[child] = place - middle
            for level, (top, bottom) in enumerate(outline.pop(child)):
                top, bottom = top + offset[child], bottom + offset[child]
                if level == len(merged):
                    merged.append((top, bottom))
                else:
                    merged[level] = (min(merged[level][0], top), max(merged[level][1], bottom))
        outline[node] = [(-half, half), *merged]
    y = {ROOT: 0.0}
    for parent, child in nx.dfs_edges(graph, ROOT):
        y[child] = y[parent] + offset[child]
    return y


def spread(outlines: list[list[tuple[float, float]]], cousins: float) -> list[float]:
    """Where siblings go, the first at 0. A small subtree between two large ones is centred between them."""
    places: list[float] = []
    for j, outline in enumerate(outlines):
        nearest, blocker = 0.0, 0
        for i, place in enumerate(places):
            apart = max(
                (bottom - top + (cousins if level else 0.0))
                for level, ((_, bottom), (top, _)) in enumerate(zip(outlines[i], outline, strict=False))
            )
            if place + apart >= nearest:
                nearest, blocker = place + apart, i
        if places and blocker < j - 1:
            apart = max(
                b - t + (cousins if n else 0.0)
                for n, ((_, b), (t, _)) in enumerate(zip(outlines[j - 1], outline, strict=False))
            )
            slack = nearest - (places[-1] + apart)
            for between in range(blocker + 1, j):
                places[between] += slack * (between - blocker) / (j - blocker)
        places.append(nearest)
    return places


def lay_out(round: Round, widths: Mapping[int, float], everything: bool = False) -> Layout:
    """Place the round's tree. widths: pixels each labelled node's text takes, its chip included; others are dots."""
    graph = tree_graph(round, everything)
    row = {node: (ROW if node >= 0 else DIAMOND_ROW) if node in widths else DOT_ROW for node in graph}
    y = tidy(graph, row)
    level = nx.single_source_shortest_path_length(graph, ROOT)
    columns: list[float] = []
    x: dict[int, float] = {}
    ends: dict[int, float] = {}
    left = MARGIN
    for depth in range(max(level.values()) + 1):
        end = left
        for node in (n for n, d in level.items() if d == depth):
            x[node] = left
            ends[node] = left + MARKER_GAP + widths[node] if node in widths else left + 6
            end = max(end, ends[node])
        columns.append(end)
        left = end + EDGE_MIN
    top = min(y[n] - row[n] / 2 for n in y) - MARGIN
    bottom = max(y[n] + row[n] / 2 for n in y) + MARGIN
    return Layout(
        x={n: round_(v) for n, v in x.items()},
        y={n: round_(v - top) for n, v in y.items()},
        ends={n: round_(v) for n, v in ends.items()},
        columns=tuple(round_(v) for v in columns),
        level=dict(level),
        width=round_(columns[-1] + MARGIN),
        height=round_(bottom - top),
    )


def edge(layout: Layout, parent: int, child: int, samples: int | None = None) -> tuple[list[float], list[float]]:
    """x and y of the line from a parent's label to a child's marker: straight past longer labels, then a curve.

    The curve is a cubic Bézier, level at both ends, in equal steps of its parameter t, so that a picture with room to
    spare can widen the gap by e: a point of the curve moves by e t. The last point stops short of the marker's centre.
    """
    x0, y0 = layout.ends[parent] + 5, layout.y[parent]
    bend = max(x0, layout.columns[layout.level[parent]] + 5)
    x1, y1 = layout.x[child] - 5, layout.y[child]
    if abs(y1 - y0) < 0.05:
        return [round_(x0), round_(x1)], [y0, y1]
    samples = samples or min(28, 18 + int(abs(y1 - y0) / 24))
    xs, ys = [round_(x0)], [y0]
    for k in range(samples + 1):
        t = k / samples
        xs.append(round_(bend + (x1 - bend) * (1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t**3)))
        ys.append(round_(y0 + (y1 - y0) * t * t * (3 - 2 * t)))
    return xs, ys


def round_(value: float) -> float:
    """Tenths of a pixel are enough, and keep the message small."""
    return round(value, 1)
