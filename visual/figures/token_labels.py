"""Token bytes -> what a reader sees: one short visible label, and the full text for hovers, escaped where it is put.

Knows nothing of tokenizers: bytes come in, text goes out. Widths are in cells of a monospaced font.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from eagle2.trace.rounds import Round

CELL_EM = 0.605
"""Width of one cell of a monospaced font, in em: the widest of the fonts in `theme.MONO`."""
LABEL_CELLS = 12
FULL_CHARACTERS = 240

VISIBLE = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍", "\xa0": "⍽", "\u2028": "↵", "\u2029": "¶"}


def decode(raw: bytes) -> list[str]:
    """Characters, with every run of bytes that is no UTF-8 as one item of the form "<F0 9F>"."""
    items: list[str] = []
    while raw:
        try:
            items.extend(raw.decode())
            break
        except UnicodeDecodeError as error:
            items.extend(raw[: error.start].decode())
            bad = raw[error.start : error.end]
            if items and items[-1].startswith("<") and len(items[-1]) > 2:
                items[-1] = f"{items[-1][:-1]} {bad.hex(' ').upper()}>"
            else:
                items.append(f"<{bad.hex(' ').upper()}>")
            raw = raw[error.end :]
    return items


def visible(character: str) -> str:
    """One item of `decode` so that it can be seen: no blank, no control, no character that changes its neighbours."""
    if character in VISIBLE:
        return VISIBLE[character]
    if len(character) > 1:
        return character
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "␡"
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
        return f"<U+{code:04X}>"
    return f"◌{character}" if category in ("Mn", "Me") else character


def squeeze(items: list[str]) -> list[str]:
    """Runs of five or more equal visible blanks as one of them and a count: "·×40"."""
    short: list[str] = []
    start = 0
    while start < len(items):
        end = start
        while end < len(items) and items[end] == items[start]:
            end += 1
        run = end - start
        short.extend([f"{items[start]}×{run}"] if run >= 5 and not items[start].isalnum() else items[start:end])
        start = end
    return short


def cells(text: str) -> int:
    """How many monospaced cells the text takes, never fewer than it is drawn with."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    none = sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in text)
    return len(text) + wide - none


def shorten(items: list[str], limit: int) -> str:
    text = "".join(items)
    if cells(text) <= limit:
        return text
    head = ""
    for item in items:
        if cells(head + item) > limit - 1:
            break
        head += item
    return (head or items[0][: limit - 1]) + "…"


@lru_cache(maxsize=65536)
def label(raw: bytes, limit: int = LABEL_CELLS) -> str:
    """A short label with everything in it visible. Plain text: escape it where it is put."""
    items = [visible(item) for item in decode(raw)]
    return shorten(squeeze(items), limit) if items else "∅"


@lru_cache(maxsize=65536)
def full(raw: bytes) -> str:
    """The whole token with everything in it visible, cut only where it would fill a screen."""
    text = "".join(visible(item) for item in decode(raw))
    return text if len(text) <= FULL_CHARACTERS else f"{text[:FULL_CHARACTERS]}… ({len(text)})"


def token_label(token: int | None, tokens: Mapping[int, bytes], limit: int = LABEL_CELLS) -> str:
    """The label of an id; ids whose bytes are not known show as "#1234"."""
    raw = tokens.get(token)
    return f"#{token}" if raw is None else label(raw, limit)


def token_full(token: int | None, tokens: Mapping[int, bytes]) -> str:
    raw = tokens.get(token)
    return f"#{token}" if raw is None else full(raw)


def for_plotly(text: str) -> str:
    """Escaped for Plotly's labels, ticks and hovers: its small HTML, `%{…}` templates and TeX between dollars."""
    escaped = html.escape(text, quote=False).replace("%", "&#37;").replace("$", "&#36;")
    # Right-to-left letters would carry the numbers beside them along: isolate them.
    if any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        escaped = f"\u2068{escaped}\u2069"
    return escaped


def for_html(text: str) -> str:
    return html.escape(text, quote=True)


def note(line: str, alert: bool = False) -> str:
    """A line of the page's own, as HTML that screen readers tell of when it changes; at once if it is an alert."""
    kind = 'role="alert" class="es-fault"' if alert else 'role="status"'
    return f"<p {kind}>{for_html(line)}</p>"


def pieces(ids: Iterable[int], tokens: Mapping[int, bytes], final: bool = True) -> list[str]:
    """The running text cut at token borders. A character spread over several tokens comes with the last of them.

    Bytes that never become a character are shown as "<F0 9F>", so no U+FFFD appears; those at the end only if it is
    `final`, since more tokens may complete them.
    """
    texts: list[str] = []
    pending = b""
    for token in ids:
        raw = tokens.get(token)
        pending += f"#{token}".encode() if raw is None else raw
        whole, pending = split_whole(pending)
        texts.append("".join(decode(whole)))
    if final and pending and texts:
        texts[-1] += "".join(decode(pending))
    return texts


def split_whole(raw: bytes) -> tuple[bytes, bytes]:
    """The bytes up to a last character that may still be completed, and that unfinished character."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (raw[:-back], raw[-back:]) if length > back else (raw, b"")
        if byte < 0x80:
            break
    return raw, b""


def round_pieces(rounds: Sequence[Round], index: int, tokens: Mapping[int, bytes]) -> list[tuple[str, str]]:
    """(text, origin) of each token that round `index` committed; a character may have begun in the rounds before."""
    r = rounds[index]
    before = [token for earlier in rounds[max(0, index - 4) : index] for token in earlier.committed][-4:]
    texts = pieces([*before, *r.committed], tokens, final=r.finish is not None)[len(before) :]
    return list(zip(texts, r.origins, strict=True))
