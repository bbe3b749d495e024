"""The tab of models as HTML: the pair in use, what one takes, how far a load is, the known pairs. From plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from eagle2.loading.known_pairs import BUNDLED, KNOWN_PAIRS, KnownPair, fits, memory_needed
from eagle2.settings import TreeShape
from eagle2.trace.rounds import Pair
from visual.figures.token_labels import for_html, note
from visual.server.loads import Load, Used
from visual.words.say import say

if TYPE_CHECKING:
    from eagle2.loading.estimate import Estimate

KEY = re.compile(r"\W+")
"""What stands between the words of a row's name, and is an underscore in its key."""


def html(key: str, language: str, **values: object) -> str:
    """A string of the table, to stand in HTML."""
    return for_html(say(key, language, **values))


def told(pair: Pair, language: str = "en") -> str:
    """A pair in words: target and head, without their owners or the folders above them."""
    return named(pair.target, pair.head, language)


def named(target: str | None, head: str | None, language: str = "en") -> str:
    """A pair as somebody asked for it, in words."""
    names = {"target": _short(target or BUNDLED.target), "head": _short(head) if head else ""}
    return say("pair.with" if head else "pair.alone", language, **names) if target else names["target"]


def _short(name: str) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part]
    return "/".join(parts[-2:]) if name.startswith(("/", "~", ".")) or "\\" in name else parts[-1] if parts else name


def size(count: float) -> str:
    """Bytes in the unit that suits them: "39 KiB", "582 MiB", "15.4 GiB"."""
    if count >= 2**30:
        return f"{count / 2**30:.1f} GiB"
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"


def used_card(used: Used | None, status: str, language: str = "en") -> str:
    """What is in use, and the table of what its head turned out to be. status: of the models where there are none."""
    if used is None:
        return f'<section class="es-card"><h3>{html("pair.used_none", language)}</h3>{note(status)}</section>'
    pair = used.engine.pair
    facts = {"target": _model(pair.target, pair.target_revision, language)}
    if pair.head or not pair.draft_model:
        nobody = html("pair.no_head", language)
        facts["head"] = _model(pair.head, pair.head_revision, language) if pair.head else nobody
    if pair.draft_model:
        facts["draft_model"] = f'<b translate="no">{for_html(pair.draft_model)}</b>'
    facts["place"] = html("pair.place_value", language, device=pair.device, dtype=pair.dtype)
    facts["shape"] = html("pair.shape_value", language, **_sizes(used.shape))
    rows = [(html(f"pair.{name}", language), fact) for name, fact in facts.items()]
    states = ", ".join(map(str, used.guessed))
    warning = f'<p class="es-warning">{html("pair.guessed", language, states=states)}</p>' if states else ""
    head = f"<h3>{html('pair.used', language)}</h3>"
    return f'<section class="es-card">{head}{_list(rows)}{warning}{_found(used, language)}</section>'


def _found(used: Used, language: str) -> str:
    if not used.found:
        return ""
    rows = [(html(f"summary.{KEY.sub('_', what).lower()}", language), for_html(how)) for what, how in used.found]
    return f"<details><summary>{html('pair.found', language)}</summary>{_list(rows)}</details>"


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows) + "</dl>"


def _model(name: str, revision: str | None, language: str) -> str:
    where = say("pair.revision", language, revision=revision[:40]) if revision else say("pair.local", language)
    return f'<b translate="no">{for_html(name)}</b> <span class="es-quiet">{for_html(where)}</span>'


def _sizes(shape: TreeShape) -> dict[str, int]:
    return {"k": shape.top_k, "d": shape.depth, "m": shape.max_nodes}


def weighed(found: Estimate, language: str = "en") -> str:
    """What a pair takes, against what there is."""
    key = "pair.room_unknown" if found.free is None else "pair.fits" if found.fits else "pair.too_large"
    sizes = {"needed": size(found.needed), "free": size(found.free or 0)}
    line = say(key, language, device=found.device, dtype=found.dtype, **sizes)
    if not found.whole:
        line += " " + say("pair.part_unknown", language)
    return note(line, alert=not found.fits)


def progress(load: Load, language: str = "en") -> str:
    """How far a load is, as a line and a bar."""
    in_bytes = load.step == "download"
    counts = {name: size(count) if in_bytes else count for name, count in (("done", load.done), ("of", load.of))}
    step = say("pair.cancelling" if load.unwanted else f"pair.step.{load.step}", language, **counts)
    line = f"{say('pair.loading', language, pair=named(load.target, load.head, language))} · {step}"
    taken = "" if load.estimate is None else weighed(load.estimate, language)
    share = min(1.0, load.done / load.of) if load.of else 0.0
    now = f' aria-valuenow="{share:.0%}"'.replace("%", "") if load.of else ""
    bar = f'<div class="es-bar" role="progressbar" aria-valuemin="0" aria-valuemax="100"{now}>'
    bar += f'<i style="width: {share:.1%}"></i></div>'
    return f'{note(line)}{bar}<div class="es-quiet">{taken}</div>'


def known_table(dtype: str, device: str, free: int | None, choosable: bool, language: str = "en") -> str:
    """The registry, the bundled pair first. choosable: with a button in each row, whose `data-pair` is the place in
    KNOWN_PAIRS, or -1 for the bundled pair.
    """
    room = "pair.known_free_unknown" if free is None else "pair.known_free"
    room = say(room, language, device=device, free=size(free or 0))
    about = html("pair.known_about", language, dtype=dtype, free=room)
    columns = [html(f"pair.column_{name}", language) for name in ("pair", "tree", "memory", "notes")]
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    pairs = [(-1, BUNDLED, TreeShape()), *((place, pair, pair.shape) for place, pair in enumerate(KNOWN_PAIRS))]
    pairs.sort(key=lambda row: fits(row[1], dtype, free) is False)
    rows = [_row(pair, shape, dtype, free, language, place if choosable else None) for place, pair, shape in pairs]
    table = f"<thead><tr>{head}<td></td></tr></thead><tbody>{''.join(rows)}</tbody>"
    table = f'<div class="es-scroll" tabindex="0"><table class="es-table es-known">{table}</table></div>'
    return f"<h3>{html('pair.known', language)}</h3><p>{about}</p>{table}"


def _row(pair: KnownPair, shape: TreeShape, dtype: str, free: int | None, language: str, place: int | None) -> str:
    room = fits(pair, dtype, free)
    mark = "" if room is None else html("pair.mark_fits" if room else "pair.mark_too_large", language)
    gated = [say("pair.gated", language)] if pair.gated else []
    notes = "; ".join(filter(None, [pair.licence, *gated, pair.note]))
    title = html("pair.take_title", language, pair=named(pair.target, pair.head, language))
    button = f'<button type="button" data-pair="{place}" title="{title}">{html("pair.take", language)}</button>'
    names = f'<b translate="no">{for_html(pair.target)}</b><span class="es-kind">EAGLE-{pair.eagle}</span><br>'
    cells = [
        (html("pair.tree_title", language, **_sizes(shape)), html("pair.tree", language, **_sizes(shape))),
        (mark, f'{size(memory_needed(pair, dtype))}<br><span class="es-quiet">{mark}</span>'),
        ("", for_html(notes)),
        ("", button if place is not None else ""),
    ]
    rest = "".join(f'<td title="{title}">{cell}</td>' for title, cell in cells)
    kind = ' class="es-large"' if room is False else ""
    return f'<tr{kind}><th scope="row">{names}<span class="es-quiet">{for_html(pair.head)}</span></th>{rest}</tr>'
