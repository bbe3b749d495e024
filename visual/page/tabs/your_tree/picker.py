"""The whole drafted pool of a round, to pick a static tree from: a Gradio component and the messages it gets.

Columns are levels, a block of rows the children of one node, likeliest first: with every node named, a pool of 510 is
as tall as its widest level. The browser picks at once (with a node go its ancestors, without it its descendants) and
reports the tree as text; what that brings is worked out in Python.

    shown = picker.component()
    shown.picked(on_picked, None, outputs)      # evt._data: paths, as text
    shown.typed(on_typed, None, outputs)        # evt._data: text; the box of paths was edited
    shown.moved(on_moved, None, outputs)        # evt._data: run, round; the player shows another round
    yield picker.message(turn, index, paths)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradio as gr

from eagle2.analysis.recut import places
from eagle2.analysis.target_choices import choices, descend
from eagle2.trace.rounds import ROOT, Round
from eagle2.tree_paths import Path
from visual.figures.token_labels import cells, token_full, token_label
from visual.player.component import call, part
from visual.player.messages import packed, serial, significant
from visual.server.conversation import Turn

BLOCK_GAP = 0.5
"""Rows between blocks of one level."""


def component(elem_id: str = "picker") -> gr.HTML:
    """The picker, empty."""
    return part(call("picker", "picked", "typed", "moved"), "eagle-picker", elem_id)


@dataclass(frozen=True)
class Blocks:
    """Where a pool's nodes stand. row: of each node, from 0. blocks: (parent, first row, last row), level by level."""

    row: tuple[float, ...]
    blocks: tuple[tuple[int, float, float], ...]
    height: float


def lay_out(round: Round) -> Blocks:
    """A block for each node's children, under one another in their parents' order, as high up as they can be."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(round.parent):
        children.setdefault(parent, []).append(node)
    row: dict[int, float] = {ROOT: 0.0}
    blocks = []
    level = [ROOT]
    while level:
        free = 0.0
        below = []
        for parent in sorted((node for node in level if node in children), key=row.__getitem__):
            first = max(free, row[parent])
            row |= {child: first + place for place, child in enumerate(children[parent])}
            last = first + len(children[parent]) - 1
            blocks.append((parent, first, last))
            free = last + 1 + BLOCK_GAP
            below += children[parent]
        level = below
    height = 1 + max(row.values())
    return Blocks(tuple(row[node] for node in range(len(round.token))), tuple(blocks), height)


def message(turn: Turn, index: int, tree: Sequence[Path]) -> str:
    """Round `index` of a run and what is picked of it. Raises ValueError for a round without recorded nodes."""
    r, tokens = turn.rounds[index], turn.tokens
    made = lay_out(r)
    root, named = token_label(r.root, tokens), [token_label(token, tokens) for token in r.token]
    widths = list(map(cells, named))
    wide = [0] * (max(r.depth) + 1)
    for level, width in zip((0, *r.depth), (cells(root), *widths), strict=True):
        wide[level] = max(wide[level], width)
    return packed(
        {
            "serial": serial(),
            "run": turn.run,
            "round": index,
            "rounds": len(turn.rounds),
            "root": root,
            "wide": wide,
            "cells": widths,
            "place": [",".join(map(str, place)) for place in places(r, turn.settings.paths)],
            "parent": r.parent,
            "depth": r.depth,
            "label": named,
            "full": [token_full(token, tokens) for token in r.token],
            "confidence": [significant(c) for c in r.confidence],
            "value": [significant(v) for v in r.value],
            "row": made.row,
            "blocks": made.blocks,
            "height": made.height,
            "chosen": descend(r, choices(turn.rounds, index)).path,
            "picked": [",".join(map(str, path)) for path in tree],
        }
    )


def picks(tree: Sequence[Path]) -> str:
    """Another tree over the round that is shown."""
    return packed({"serial": serial(), "picked": [",".join(map(str, path)) for path in tree]})


def empty() -> str:
    """Nothing to pick from."""
    return packed({"serial": serial(), "place": []})
