"""The page's texts that change with a run: the chips at the top and the metrics table. HTML from plain data.

Every number comes from `eagle2.metrics`; every string from the table; token text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eagle2.analysis import metrics
from eagle2.methods import WALK
from eagle2.trace.rounds import Pair
from visual.figures.token_labels import for_html
from visual.server.conversation import Turn
from visual.words.say import say


@dataclass(frozen=True)
class Comparison:
    """The speed and losslessness check of one run. speedup: this run's tokens/s over plain decoding's.

    None where a run is too short to have a speed: its only token came from the prefill. in_law: whether rejection
    sampling wrote it, so that its text equals plain decoding's in law and not token by token.
    """

    speedup: float | None
    plain_tokens_per_s: float | None
    checked: int
    differing: int
    near_ties: int
    in_law: bool = False


def chip(text: str, title: str = "", kind: str = "") -> str:
    return f'<span class="es-chip {kind}" title="{for_html(title)}">{for_html(text)}</span>'


def method_chip(turn: Turn, language: str) -> str:
    s = turn.settings
    name = say(f"method_name.{s.policy}", language)
    if s.drafter:
        name = f"{name} · {say(f'drafter.{s.drafter}', language)}"
    drafted = [r for r in turn.rounds if r.drafted]
    if not drafted or not (s.method.uses or s.paths):
        return chip(name)
    if s.paths is not None:
        return chip(f"{name} · {say('chip.own', language, d=max(map(len, s.paths)), m=len(s.paths))}")
    tree = say("chip.shape", language, k=s.shape.top_k, d=s.shape.depth, m=max(r.kept for r in drafted))
    return chip(f"{name} · {tree}")


def chips(turn: Turn | None, status: str, found: Comparison | None = None, language: str = "en") -> str:
    """The line of chips. status: of the models, where no run says which pair made it."""
    parts = []
    if turn is None:
        return f'<div class="es-chips">{chip(status, kind="es-status")}</div>'
    parts.append(chip(pair_name(turn.pair), say("chip.pair_title", language, **pair_facts(turn.pair))))
    if sizes := vocabulary_sizes(turn):
        parts.append(chip(say("chip.vocabulary", language, **sizes), say("chip.vocabulary_title", language, **sizes)))
    parts.append(method_chip(turn, language))
    tau, speed = metrics.tau(turn.rounds), metrics.speed(turn.rounds)
    if tau is not None:
        parts.append(chip(say("chip.tau", language, tau=f"{tau:.2f}"), say("formula.tau", language), "es-strong"))
    if speed is not None:
        rate = say("chip.speed", language, speed=f"{speed.tokens_per_s:.1f}")
        parts.append(chip(rate, say("formula.speed", language)))
    if found is not None:
        parts.append(chip(told_speedup(found, language), say("formula.speedup", language)))
        if found.in_law:
            parts.append(
                chip(say("chip.same_distribution", language), say("metrics.same_distribution", language), "es-good")
            )
        else:
            lossless = say("chip.lossless" if not found.differing else "chip.lossy", language, **verdict(found))
            kind = "es-good" if not found.differing else "es-bad"
            parts.append(chip(lossless, say("formula.lossless", language), kind))
    parts += [
        chip(say(f"chip.{key}", language, **v), say(f"chip.{key}_title", language, **v), "es-bad")
        for key, v in doubts(turn)
    ]
    if turn.name:
        parts.append(chip(say("chip.recorded", language), say("chip.recorded_title", language)))
    return f'<div class="es-chips">{"".join(parts)}</div>'


def doubts(turn: Turn) -> list[tuple[str, dict[str, object]]]:
    """What is odd about the head's drafts, as keys of chips and what fills them in; the text is the target's anyway."""
    pair, odd = turn.pair, []
    if pair.head_drafts(turn.settings):
        if metrics.gives_no_numbers(turn.rounds):
            odd.append(("no_numbers", {"head": pair.head, "dtype": pair.dtype}))
        elif metrics.near_floor(turn.rounds):
            odd.append(("misfit", {}))
    if past := metrics.positions_past(pair, turn.settings, turn.rounds):
        odd.append(("past_head", {"positions": f"{pair.head_positions:,}", "past": past}))
    return odd


def pair_name(pair: Pair) -> str:
    return f"{pair.target.rstrip('/').split('/')[-1]} · {pair.device} {pair.dtype}"


def pair_facts(pair: Pair) -> dict[str, str]:
    return {
        "target": pair.target,
        "revision": pair.target_revision or "–",
        "head": pair.head or "–",
        "head_revision": pair.head_revision or "–",
    }


def vocabulary_sizes(turn: Turn) -> dict[str, str] | None:
    """How many tokens were drafted from, and of how many, where that is not the target's whole vocabulary."""
    pair = turn.pair
    if pair.draft_vocabulary is None or not pair.head_drafts(turn.settings):
        return None
    return {"draft": f"{pair.draft_vocabulary:,}", "all": f"{pair.vocabulary:,}"}


def verdict(found: Comparison) -> dict[str, int]:
    agreed = found.checked - found.differing
    return {"agreed": agreed, "checked": found.checked, "near": found.near_ties, "differing": found.differing}


def told_speedup(found: Comparison, language: str = "en") -> str:
    """ "1.4× plain", or "0.8× plain: slower here" where it is."""
    if found.speedup is None:
        return say("chip.no_speed", language)
    key = "chip.slower" if found.speedup < 0.995 else "chip.faster"
    return say(key, language, speedup=f"{found.speedup:.2f}")


def metrics_table(turn: Turn | None, found: Comparison | None = None, language: str = "en") -> str:
    """The run in numbers, each with its formula behind it."""
    rounds = turn.rounds if turn else []
    tau, mean, speed = metrics.tau(rounds), metrics.accepted_per_round(rounds), metrics.speed(rounds)
    if tau is None:
        return f'<p class="es-muted">{for_html(say("metrics.empty", language))}</p>'
    kept = sum(r.kept for r in rounds)
    accepted = sum(len(r.accepted) for r in rounds)
    rows = [
        ("tau", f"{tau:.2f}"),
        ("accepted", f"{mean:.2f}"),
        ("tokens", str(sum(len(r.committed) for r in rounds))),
        ("passes", str(metrics.passes(rounds))),
        ("share", f"{accepted / kept:.1%} ({accepted} / {kept})" if kept else "–"),
    ]
    drafted = [r for r in rounds if r.token and r.bonus is not None and r.rule == WALK]
    if drafted:
        expected = sum(r.predicted for r in drafted) / len(drafted)
        actual = sum(len(r.accepted) + 1 for r in drafted) / len(drafted)
        rows.append(("predicted", say("metrics.against", language, a=f"{expected:.2f}", b=f"{actual:.2f}")))
    if speed is not None:
        rows.append(("speed", f"{speed.tokens_per_s:.1f}"))
        split = (f"{share:.0%}" for share in (speed.draft_share, speed.verify_share, speed.rest_share))
        rows.append(("split", " / ".join(split)))
        rows.append(("prefill", say("metrics.ms", language, ms=f"{speed.prefill_ms:.0f}")))
    if found is not None:
        rate = say("chip.speed", language, speed=f"{found.plain_tokens_per_s or 0:.1f}")
        plain = "" if found.speedup is None else f" ({rate})"
        rows.append(("speedup", f"{told_speedup(found, language)}{plain}"))
        rows.append(
            (
                "lossless",
                say("metrics.same_distribution" if found.in_law else "metrics.verdict", language, **verdict(found)),
            )
        )
    depths = metrics.acceptance_by_depth(rounds)
    if depths:
        told = " · ".join(f"{a / n:.0%}" for n, a in depths if n)
        rows.append(("by_depth", told))
    body = "".join(
        f'<tr title="{formula}"><th scope="row">{for_html(say(f"metrics.{key}", language))}</th>'
        f'<td>{for_html(value)}</td><td class="es-formula" translate="no">{formula}</td></tr>'
        for key, value in rows
        for formula in [for_html(say(f"formula.{key}", language))]
    )
    sizes = vocabulary_sizes(turn)
    note = f'<p class="es-muted">{for_html(say("chip.vocabulary_title", language, **sizes))}</p>' if sizes else ""
    return f'<table class="es-table"><tbody>{body}</tbody></table>{note}'


def head(text: str) -> str:
    """What stands over a picture."""
    return f'<h3 class="es-what-if-head">{for_html(text)}</h3>'


def columns_table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], corner: str = "") -> str:
    """Things beside one another: a column each, under its head; a row is its name and a cell for each column."""
    head = "".join(f'<th scope="col">{for_html(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{for_html(name)}</th>' + "".join(f"<td>{for_html(cell)}</td>" for cell in cells) + "</tr>"
        for name, cells in rows
    )
    top = f"<tr><td>{for_html(corner)}</td>{head}</tr>"
    return f'<table class="es-table"><thead>{top}</thead><tbody>{body}</tbody></table>'
