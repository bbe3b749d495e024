"""What the browser gets: one compact JSON text per round, and the configuration it gets once.

Messages are text, not nested values, because Gradio would otherwise send (and search for) thousands of differences
between two rounds. Knows nothing of Gradio.

A message is {"op", "run", "count", …}; `count` is how many rounds the run has so far, so every message shows a gap:

    reset   a new run begins: {"head"}; earlier rounds are dropped
    append  {"rounds": [one or more], "live"}: more rounds of the run; a run that the reader left is not shown again
    goto    {"round", "phase"}: show it
    end     no more rounds come
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from eagle2.analysis.target_choices import by_value
from eagle2.trace.rounds import Round
from visual.figures import theme, token_labels
from visual.figures.layout import MARKER_GAP
from visual.figures.mask import colorscale, mask_spec, parents_by_slot
from visual.figures.phases import phases, walk
from visual.figures.tree import Scene, chip_text, scene, tree_spec
from visual.figures.values import FLAGGED, FLOOR, shown, values_spec
from visual.words.narration import Narrator
from visual.words.say import LANGUAGES, say

_SERIALS = itertools.count(1)


def serial() -> int:
    """A number no message had yet: sending the same message twice is then still a change the browser sees."""
    return next(_SERIALS)


def packed(value: Any) -> str:
    """JSON without blanks and without "<", so that no text in it can close a script element or look like markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def config(*languages: str) -> dict:
    """What does not depend on a run: strings by language, palettes, what each state looks like."""
    return {
        "strings": {language: dict(LANGUAGES[language]) for language in languages},
        "palettes": theme.PALETTES,
        "templates": {look: theme.template(look) for look in theme.PALETTES},
        "colorscales": {look: colorscale(look) for look in theme.PALETTES},
        "nodes": theme.NODE_STYLES,
        "bold": theme.BOLD_STATES,
        "edges": theme.EDGE_SLOTS,
        "edge_states": theme.EDGE_STATES,
        "edge_steps": theme.EDGE_STEPS,
        "bars": theme.BAR_STYLES,
        "flagged": FLAGGED,
        "cells": theme.CELL_CODES,
        "lecture_scale": theme.LECTURE_SCALE,
        "label_gap": MARKER_GAP,
        "label_px": theme.LABEL_PX,
        "note_px": theme.NOTE_PX,
        "sans": theme.SANS,
        "mono": theme.MONO,
    }


def slim(spec: dict) -> dict:
    """A fresh figure without what the browser fills in for each phase: places, texts, and styles that are lists."""
    spec["layout"].pop("template")
    for trace in spec["data"]:
        for key in ("hovertext", "customdata", "colorscale", "z"):
            trace.pop(key, None)
        if trace["meta"] in ("predicted", "actual"):
            continue
        for key in ("x", "y", "text"):
            trace.pop(key, None)
        marker = trace.get("marker", {})
        for part in (marker, marker.get("line", {}), trace.get("textfont", {})):
            for key in [key for key, value in part.items() if isinstance(value, list | tuple)]:
                del part[key]
    return spec


def significant(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def scene_message(round: Round, s: Scene) -> dict:
    """Places and texts of one layout of the tree."""
    return {
        "points": s.points,
        "x": [s.layout.x[p] for p in s.points],
        "y": [s.layout.y[p] for p in s.points],
        "level": [s.layout.level[p] for p in s.points],
        "end": [s.layout.ends[p] for p in s.points],
        "size": s.size,
        "label": s.label,
        "notes": s.notes,
        "chips": [
            [p, s.chip_x[p], s.layout.y[p], s.layout.level[p], chip_text(children), children]
            for p, children in s.chips.items()
        ],
        "lines": [[child, s.layout.level[child] - 1, x, y] for child, (x, y) in s.lines.items()],
        "width": s.layout.width,
        "height": s.layout.height,
        "levels": s.layout.levels,
    }


def why(is_kept: bool, rank: int, kept: int, drafted: int) -> str:
    """The key of the sentence that says why a node was kept or cut."""
    if is_kept:
        return "why.all" if kept == drafted else "why.top" if rank <= kept else "why.policy"
    return "why.cut" if rank > kept else "why.cut_policy"


def node_columns(round: Round, tokens: Mapping[int, bytes]) -> dict:
    """Everything the inspector says about each drafted node, by column."""
    order = by_value(round)
    rank = [0] * len(order)
    for place, index in enumerate(order):
        rank[index] = place + 1
    kept_values = [value for value, slot in zip(round.value, round.slot, strict=True) if slot is not None]
    kept = len(kept_values)
    return {
        "token": round.token,
        "parent": round.parent,
        "depth": round.depth,
        "confidence": [significant(c) for c in round.confidence],
        "value": [significant(v) for v in round.value],
        "rank": rank,
        "expanded": [int(e) for e in round.expanded],
        "slot": round.slot,
        "target": [significant(p) for p in round.target_probability],
        "fate": round.fate,
        "why": [why(slot is not None, rank[i], kept, len(order)) for i, slot in enumerate(round.slot)],
        "threshold": significant(min(kept_values)) if kept_values else None,
        "order": order,
    }


def names(round: Round, tokens: Mapping[int, bytes]) -> dict:
    """id -> [label, full text] for every id the round can show; the full text only where it differs."""
    ids = {round.root, round.bonus, *round.token, *round.committed}
    for check in round.checks:
        ids.update((check.drawn, *check.top_tokens))
    table = {}
    for token in ids - {None}:
        label, full = token_labels.token_label(token, tokens), token_labels.token_full(token, tokens)
        table[token] = [label] if label == full else [label, full]
    return table


def heading(round: Round, language: str) -> dict:
    accepted = len(walk(round))
    dropped = accepted + 1 - (len(round.committed) - round.first)
    if round.bonus is None:
        outcome = say("heading.prefill_only", language)
    elif not round.drafted:
        outcome = say("heading.plain", language)
    elif dropped > 0:
        outcome = say("heading.outcome_cut", language, accepted=accepted, dropped=dropped)
    else:
        outcome = say("heading.outcome", language, accepted=accepted)
    key = "heading.facts" if round.drafted else "heading.facts_plain"
    facts = say(key, language, prefix=round.prefix_length, drafted=round.drafted, kept=round.kept)
    finish = say(f"heading.finish.{round.finish}", language) if round.finish else ""
    return {"outcome": outcome, "facts": facts, "finish": finish}


def round_message(round: Round, tokens: Mapping[int, bytes], language: str = "en", everything: bool = False) -> dict:
    """One round as the browser holds it. everything: with the layout of all drafted nodes, half of what writing costs;
    where it is left out, `more` tells that there is one to ask for.
    """
    steps = phases(round)
    narrator = Narrator(tokens, language)
    normal = scene(round, tokens)
    recorded = bool(round.token)
    message = {
        "index": round.index,
        "heading": heading(round, language),
        "root": round.root,
        "bonus": round.bonus,
        "prefix": round.prefix_length,
        "path": walk(round),
        "accepted": len(walk(round)),
        "recorded": recorded,
        "drafted": round.drafted,
        "predicted": significant(round.predicted),
        "names": names(round, tokens),
        "committed": [[token, origin] for token, origin in zip(round.committed, round.origins, strict=True)],
        "nodes": node_columns(round, tokens),
        "checks": {
            check.node: {
                "drawn": check.drawn,
                "probability": significant(check.probability),
                "child": check.child,
                "top": [
                    [token, significant(p)] for token, p in zip(check.top_tokens, check.top_probabilities, strict=True)
                ],
            }
            for check in round.checks
        },
        "phases": [
            {
                "name": phase.name,
                "label": say(f"phase.{phase.key}", language, level=phase.level),
                "short": say(
                    f"phase.{phase.key}" if phase.level in (None, 1) else "phase.more", language, level=phase.level
                ),
                "nodes": phase.nodes,
                "rows": phase.rows,
                "bonus": phase.bonus,
                "note": phase.note,
                "cut": phase.cut,
                "outcome": phase.key == "accept",
                "focus": phase.focus,
                "say": [[part.kind, part.text] for part in narrator.narrate(round, phase)],
            }
            for phase in steps
        ],
        "tree": {"figure": slim(tree_spec(round, tokens, steps[-1], normal)), **scene_message(round, normal)},
        "mask": None,
        "values": None,
        "all": None,
        "more": False,
    }
    if recorded:
        message["mask"] = {
            "figure": slim(mask_spec(round, tokens, steps[-1], language=language)),
            "parents": parents_by_slot(round),
        }
        message["values"] = {
            "figure": slim(values_spec(round, steps[-1], language=language)),
            "floor": FLOOR,
            "shown": shown(round.drafted, round.kept),
        }
        message["more"] = any(slot is None for slot in round.slot)
        if everything and message["more"]:
            message["all"] = scene_message(round, scene(round, tokens, everything=True))
    return message


def message(op: str, run: str, count: int, **fields: Any) -> str:
    return packed({"op": op, "run": run, "count": count, "serial": serial(), **fields})
