"""A whole run as one HTML file that plays without a network: the same player, Plotly and all rounds inside it."""

from __future__ import annotations

from eagle2.trace.rounds import Trace
from visual.figures import token_labels
from visual.player.bundle import PLOTLY_JS, export_script
from visual.player.messages import packed, round_message, serial
from visual.words.languages import PLACES
from visual.words.say import say

FRAME = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<script>{plotly}</script>
</head>
<body>
<div id="player" class="eagle-player"></div>
<script type="application/json" id="run">{run}</script>
<script>{script}</script>
</body>
</html>
"""


def in_script(source: str) -> str:
    """Code as the content of a script element: nothing in it may look like the element's end or a comment's start."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def transcript(trace: Trace) -> list[tuple[str, str, int]]:
    """(text, origin, round) per committed token; a character spread over tokens comes with its last one."""
    ids = [token for r in trace.rounds for token in r.committed]
    places = [(origin, r.index) for r in trace.rounds for origin in r.origins]
    texts = token_labels.pieces(ids, trace.tokens)
    return [(text, origin, index) for text, (origin, index) in zip(texts, places, strict=True)]


def html(trace: Trace, language: str = "en", play: bool = True) -> str:
    """The file's text. play: whether it starts by itself."""
    settings = trace.settings
    shape = trace.effective or settings.shape
    title = say("export.title", language, count=len(trace.rounds))
    told = say(
        "export.settings",
        language,
        target=trace.pair.target,
        head=trace.pair.head or say("export.no_head", language),
        policy=settings.policy,
        top_k=shape.top_k,
        depth=shape.depth,
        max_nodes=shape.max_nodes,
        temperature=settings.sampling.temperature,
    )
    message = {
        "op": "reset",
        "run": "export",
        "count": len(trace.rounds),
        "serial": serial(),
        "live": False,
        "rounds": [round_message(r, trace.tokens, language, everything=True) for r in trace.rounds],
        "show": {"round": 0, "phase": "first", "play": play},
    }
    run = {
        "title": title,
        "settings": told,
        "messages": trace.messages,
        "text": transcript(trace),
        "message": message,
    }
    return FRAME.format(
        language=PLACES[language].tag,
        title=token_labels.for_html(title),
        plotly=in_script(PLOTLY_JS.read_text(encoding="utf-8")),
        run=packed(run),
        script=in_script(export_script(language)),
    )
