"""The round player as a Gradio component: where messages go in and events come out. Knows no engine and no models.

    shown = player.component()                                  # inside gr.Blocks
    shown.node_click(on_click, None, outputs)                   # evt._data: run, round, node, token
    shown.round_shown(on_shown, None, outputs)                  # evt._data: run, round, count
    shown.need(lambda evt: player.message_rounds(run_id, trace.rounds, trace.tokens, evt._data), None, shown)
    yield player.message_reset(run_id)                          # a new run; then one message per round
    yield player.message_append(run_id, round, tokens, count=round.index + 1)
    yield player.message_end(run_id, count)

The value is a message as text (see `message`). Gradio may drop one that another follows quickly: the browser sees from
`count` that rounds are missing and asks for them with `need`. In the page itself, `document` hears "eagle:shown"
(detail: run, live, round, phase; drafted, kept and width, the tree's first level) and obeys "eagle:goto" (detail:
round, phase, play), so a click in the chat needs no server.
<html data-lecture="on"> and <html data-theme="dark"> (or Gradio's body.dark) switch looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from eagle2.trace.rounds import Round, Trace
from visual.figures.token_labels import round_pieces
from visual.player import scripts
from visual.player.messages import message, round_message

BATCH = 8
"""Rounds sent in answer to one `need`; the browser asks again for what is still missing."""


def call(name: str, *events: str) -> str:
    """The script of a component that is a function of components.js. Gradio looks for its events' names in it."""
    forward = "".join(f", '{event}'" for event in events)
    return f"eagle2.{name}(element, props, watch, eagle2.events(trigger{forward}))"


def part(script: str, kind: str, elem_id: str, style: str = "", **options: Any) -> gr.HTML:
    """A component that the page's scripts fill: an empty element of CSS class `kind`. script: run once it is there."""
    look = f" style='{style}'" if style else ""
    return gr.HTML(
        html_template=f"<div class='{kind}'{look}></div>",
        js_on_load=script,
        head=scripts.head(),
        apply_default_css=False,
        padding=False,
        elem_id=elem_id,
        **options,
    )


def component(value: str | None = None, elem_id: str = "player", **options: Any) -> gr.HTML:
    """The player, empty or with a first message. The app must serve `scripts.served()`."""
    return part(call("player", "need", "round_shown", "node_click"), "eagle-player", elem_id, value=value, **options)


def message_reset(run: str, live: bool = True) -> str:
    """A new run begins; the browser forgets the one before. run: any text that no other run of this visitor has."""
    return message("reset", run, 0, live=live)


def message_append(
    run: str,
    rounds: Round | Sequence[Round],
    tokens: Mapping[int, bytes],
    count: int | None = None,
    live: bool = True,
    language: str = "en",
    before: Sequence[Round] = (),
) -> str:
    """One more round, or several. count: rounds so far, these included. live: whether more are expected. before: the
    run's earlier rounds, or the last few of them: a character may have begun there.

    A round of 510 drafted nodes takes some 40 ms to write. Where rounds come faster than a few a second, send only
    some: `count` tells the browser of the others, and it asks for them with `need` (`message_rounds` answers).
    """
    rounds = [rounds] if isinstance(rounds, Round) else list(rounds)
    count = rounds[-1].index + 1 if count is None else count
    written = _written([*before, *rounds], len(before), None, tokens, language)
    return message("append", run, count, rounds=written, live=live)


def message_end(run: str, count: int) -> str:
    """No more rounds come (finished, stopped or paused); a later append goes on."""
    return message("end", run, count, live=False)


def message_goto(run: str, count: int, round: int, phase: str | int = "last", play: bool = False) -> str:
    """Show a round. phase: "first", "last", a name such as "expand-2" or "verify", or a number."""
    return message("goto", run, count, show={"round": round, "phase": phase, "play": play})


def message_load(
    run: str, trace: Trace, round: int = 0, phase: str | int = "first", play: bool = False, language: str = "en"
) -> str:
    """A recorded run. The rounds around the one shown are sent along, the rest when the browser asks with `need`."""
    start = max(0, min(round - BATCH // 2, len(trace.rounds) - BATCH))
    rounds = _written(trace.rounds, start, start + BATCH, trace.tokens, language)
    show = {"round": round, "phase": phase, "play": play}
    return message("reset", run, len(trace.rounds), rounds=rounds, live=False, show=show)


def message_rounds(
    run: str,
    rounds: Sequence[Round],
    tokens: Mapping[int, bytes],
    need: Mapping[str, Any],
    language: str = "en",
) -> str:
    """The answer to a `need` event: some of the rounds it names, with all their nodes where it says "all".

    Raises ValueError for another run's.
    """
    if need.get("run") != run:
        raise ValueError(f"rounds of run {need.get('run')!r} were asked for; this is run {run!r}")
    start, stop = max(0, int(need["from"])), min(len(rounds), int(need["to"]) + 1)
    written = _written(rounds, start, min(stop, start + BATCH), tokens, language, everything=bool(need.get("all")))
    return message("append", run, len(rounds), rounds=written)


def _written(
    rounds: Sequence[Round],
    start: int,
    stop: int | None,
    tokens: Mapping[int, bytes],
    language: str,
    everything: bool = False,
) -> list[dict]:
    """Messages of `rounds[start:stop]`, each with its piece of the running text."""
    places = range(*slice(start, stop).indices(len(rounds)))
    return [
        {**round_message(rounds[i], tokens, language, everything), "pieces": round_pieces(rounds, i, tokens)}
        for i in places
    ]
