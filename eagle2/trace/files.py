"""Runs as JSON: written exactly, read back losslessly, and never trusted. No torch, no text, no models.

A file is {"format": "eagle2-trace", "version": 1, ...}; everything that is read is checked, since people upload these.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path

from eagle2.decoding.budget import Costs
from eagle2.methods import RULES, WALK
from eagle2.settings import Sampling, Settings, TreeShape, is_finite
from eagle2.trace.rounds import FATES, ROOT, Check, Pair, Round, Trace
from eagle2.trace.rules import contradictions, excess

FORMAT = "eagle2-trace"
VERSION = 1
GZIP = b"\x1f\x8b"
MAX_BYTES = 64 * 2**20
"""The largest file that is read: some two thousand rounds of the default tree, a thousand of the paper's."""


MAX_TOKEN_BYTES = 1024
"""The longest spelling of one token; the longest in use, runs of blanks, have a quarter of it."""
MAX_CONTAINERS = 500_000
"""Lists and objects in one file: some ten thousand rounds. Empty lists take thirty times their text in memory."""


class TraceError(ValueError):
    """A file that is no trace, or one whose contents contradict each other; the message is one sentence."""


def to_json(trace: Trace) -> str:
    """One line of JSON. Token bytes are written in hexadecimal, since they need not be text."""
    body = {"format": FORMAT, "version": VERSION, **_members(trace)}
    body["tokens"] = {token: spelled.hex() for token, spelled in trace.tokens.items()}
    return json.dumps(body, default=_members, allow_nan=False, separators=(",", ":"))


def _members(record: object) -> dict[str, object]:
    return {f.name: getattr(record, f.name) for f in fields(record)}


def save(trace: Trace, path: str | Path) -> None:
    """Write a file; compressed where its name ends in .gz."""
    text = (to_json(trace) + "\n").encode()
    Path(path).write_bytes(gzip.compress(text, mtime=0) if Path(path).suffix == ".gz" else text)


def load(path: str | Path, max_bytes: int = MAX_BYTES, most: TreeShape | None = None) -> Trace:
    """Read a file, compressed or not; `max_bytes` bounds what it unpacks to, `most` its trees (`rules.excess`).

    Raises TraceError in one sentence; a file that cannot be opened raises OSError as usual.
    """
    path = Path(path)
    _check_size(path.stat().st_size, max_bytes)
    packed = path.read_bytes()
    if not packed.startswith(GZIP):
        return from_json(packed, max_bytes, most)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            text = file.read(max_bytes + 1)  # no further: a small file may unpack to anything
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"this compressed file is damaged ({error})") from error
    return from_json(text, max_bytes, most)


def from_json(text: str | bytes, max_bytes: int = MAX_BYTES, most: TreeShape | None = None) -> Trace:
    """Read and check what `to_json` wrote. most: the largest trees that are read. Raises TraceError in one sentence."""
    _check_size(len(text), max_bytes)
    brackets = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if (count := sum(map(text.count, brackets))) > MAX_CONTAINERS:
        raise TraceError(f"this file holds {count} lists and objects; at most {MAX_CONTAINERS} are read")
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"this is no JSON file that a trace could be in ({error})") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise TraceError(f'this JSON file is no trace: its "format" is not "{FORMAT}"')
    version = body.get("version")
    if type(version) is not int or version != VERSION:
        raise TraceError(f"this trace has version {_shown(version)}; this program reads version {VERSION}")
    return _trace(_Reader({key: body[key] for key in body if key not in ("format", "version")}, "the trace"), most)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TraceError(f"this trace has {size / 2**20:.1f} MiB; at most {max_bytes / 2**20:.1f} MiB are read")


def _shown(value: object) -> str:
    """What a file holds, short enough for a sentence."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    shown = json.dumps(value)
    return shown if len(shown) <= 40 else shown[:40] + "..."


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no finite number")


class _Reader:
    """A JSON object whose members are taken out by type; `where` names it in errors."""

    def __init__(self, body: object, where: str) -> None:
        if not isinstance(body, dict):
            raise TraceError(f"{where} is not a JSON object")
        self.body, self.where = body, where

    def take(self, key: str, kind: str, check: Callable[[object], bool]) -> object:
        if key not in self.body:
            raise TraceError(f'{self.where} lacks "{key}"')
        value = self.body[key]
        if not check(value):
            raise TraceError(f'"{key}" of {self.where} must be {kind}, not {_shown(value)}')
        return value

    def optional(self, key: str, kind: str, check: Callable[[object], bool], missing: object) -> object:
        """What older files lack."""
        return self.take(key, kind, check) if key in self.body else missing

    def column(self, key: str, kind: str, check: Callable[[object], bool]) -> tuple:
        entries = self.take(key, "a list", lambda v: isinstance(v, list))
        for entry in entries:
            if not check(entry):
                raise TraceError(f'each entry of "{key}" of {self.where} must be {kind}, not {_shown(entry)}')
        return tuple(entries)

    def ids(self, key: str) -> tuple[int, ...]:
        return self.column(key, "a token id", _is_count)

    def inner(self, key: str) -> _Reader:
        return _Reader(self.take(key, "an object", _is_object), f'"{key}"')

    def only(self, cls: type, optional: Collection[str] = ()) -> dict:
        """The members, which must be exactly the fields of `cls`; older files may lack the `optional` ones."""
        names = {f.name for f in fields(cls)}
        if unknown := sorted(self.body.keys() - names):
            more = ", …" if len(unknown) > 3 else ""
            raise TraceError(f"{self.where} has unknown members: {', '.join(map(_shown, unknown[:3]))}{more}")
        if missing := sorted(names - self.body.keys() - {*optional}):
            raise TraceError(f"{self.where} lacks {', '.join(map(_shown, missing))}")
        return self.body


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_size(value: object) -> bool:
    return _is_count(value) and value > 0


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_finite(value) and value >= 0


def _is_node_or_root(value: object) -> bool:
    return _is_count(value) or (type(value) is int and value == ROOT)


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _is_text(value: object) -> bool:
    """Half a surrogate pair is none: JSON can hold it, and no page, terminal or tokenizer takes it."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _trace(body: _Reader, most: TreeShape | None) -> Trace:
    body.only(Trace, ["costs"])
    messages = body.column(
        "messages", "a [role, text] pair", lambda m: isinstance(m, list) and len(m) == 2 and all(map(_is_text, m))
    )
    rounds = body.take("rounds", "a list", lambda v: isinstance(v, list))
    trace = Trace(
        prompt_ids=body.ids("prompt_ids"),
        settings=_settings(body.inner("settings")),
        effective=_effective(body),
        pair=_pair(body.inner("pair")),
        tokens=_tokens(body.inner("tokens")),
        rounds=tuple(_round(_Reader(entry, f"round {i}"), i) for i, entry in enumerate(rounds)),
        messages=tuple((role, content) for role, content in messages),
        costs=_costs(body),
    )
    for sentence in () if most is None else excess(trace, most):
        raise TraceError(sentence)
    for contradiction in contradictions(trace):
        raise TraceError(contradiction)
    return trace


def _built(cls: type, body: _Reader) -> object:
    """A settings class from its members; it checks them itself."""
    try:
        return cls(**body.only(cls))
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, TraceError) else TraceError(f"{body.where} of the trace: {error}") from error


def _effective(body: _Reader) -> TreeShape | None:
    value = body.take("effective", "an object or null", _or_none(lambda v: isinstance(v, dict)))
    return None if value is None else _built(TreeShape, body.inner("effective"))


def _costs(body: _Reader) -> Costs | None:
    if body.optional("costs", "an object or null", _or_none(_is_object), None) is None:
        return None
    inner = body.inner("costs")
    inner.only(Costs)
    columns = {"rows": inner.column("rows", "a count", _is_count)}
    columns |= {key: inner.column(key, "a duration", _is_duration) for key in ("verify_ms", "level_ms")}
    return _built(Costs, _Reader(columns, inner.where))


def _settings(body: _Reader) -> Settings:
    body.only(Settings, ["drafter"])
    paths = body.take("paths", "null or a list of lists", _or_none(lambda v: isinstance(v, list)))
    if paths is not None and not all(isinstance(path, list) and all(map(_is_count, path)) for path in paths):
        raise TraceError('"paths" of "settings" must be lists of child ranks')
    shape, sampling = _built(TreeShape, body.inner("shape")), _built(Sampling, body.inner("sampling"))
    policy, cap = body.take("policy", "a name", _is_text), body.take("max_new_tokens", "a count", _is_count)
    drafter = body.optional("drafter", "a name or null", _or_none(_is_text), None)
    try:
        return Settings(policy, shape, sampling, cap, None if paths is None else tuple(map(tuple, paths)), drafter)
    except ValueError as error:
        raise TraceError(f"{body.where} of the trace: {error}") from error


def _pair(body: _Reader) -> Pair:
    sizes = ("vocabulary", "draft_vocabulary", "head_positions")
    body.only(Pair, (*sizes, "draft_model"))
    required = {key: body.take(key, "a text", _is_text) for key in ("target", "device", "dtype")}
    optional = [key for key in ("head", "target_revision", "head_revision", "draft_model") if key in body.body]
    pair = Pair(
        **required,
        **{key: body.take(key, "a text or null", _or_none(_is_text)) for key in optional},
        **{key: body.take(key, "a size or null", _or_none(_is_size)) for key in sizes if key in body.body},
    )
    if pair.draft_vocabulary is not None and not pair.draft_vocabulary <= (pair.vocabulary or 0):
        raise TraceError(f'"pair" of the trace has {pair.draft_vocabulary} draft tokens of {pair.vocabulary or "none"}')
    return pair


def _tokens(body: _Reader) -> dict[int, bytes]:
    for token, spelled in body.body.items():
        if isinstance(spelled, str) and len(spelled) > 2 * MAX_TOKEN_BYTES:
            size = len(spelled) // 2
            raise TraceError(f"token {token[:20]} of the trace has {size} bytes; at most {MAX_TOKEN_BYTES} are read")
    try:
        tokens = {int(token): bytes.fromhex(spelled) for token, spelled in body.body.items()}
    except (TypeError, ValueError) as error:
        raise TraceError(f'"tokens" of the trace must map ids to hexadecimal bytes ({error})') from error
    if [str(token) for token in tokens] != list(body.body) or min(tokens, default=0) < 0:
        raise TraceError('"tokens" of the trace must map ids to hexadecimal bytes, each id a plain count')
    return tokens


def _round(body: _Reader, index: int) -> Round:
    body.only(Round, ["rule"])
    checks = body.take("checks", "a list", lambda v: isinstance(v, list))
    return Round(
        index=body.take("index", f"{index}", lambda v: _is_count(v) and v == index),
        prefix_length=body.take("prefix_length", "a count", _is_count),
        root=body.take("root", "a token id", _is_count),
        accepted=body.column("accepted", "a node", _is_count),
        bonus=body.take("bonus", "a token id or null", _or_none(_is_count)),
        committed=body.ids("committed"),
        finish=body.take("finish", '"stop", "length" or null', lambda v: v in (None, "stop", "length")),
        drafted=body.take("drafted", "a count", _is_count),
        kept=body.take("kept", "a count", _is_count),
        token=body.ids("token"),
        parent=body.column("parent", "a node or -1", _is_node_or_root),
        depth=body.column("depth", "a count", _is_count),
        confidence=body.column("confidence", "a probability", _is_probability),
        value=body.column("value", "a probability", _is_probability),
        expanded=body.column("expanded", "true or false", lambda v: isinstance(v, bool)),
        slot=body.column("slot", "a slot or null", _or_none(_is_count)),
        target_probability=body.column("target_probability", "a probability or null", _or_none(_is_probability)),
        fate=body.column("fate", f"one of {', '.join(FATES)}", lambda v: v in FATES),
        checks=tuple(_check(_Reader(entry, f"a check of round {index}")) for entry in checks),
        **{
            key: body.take(key, "a duration", _is_duration)
            for key in ("prefill_ms", "draft_ms", "verify_ms", "rest_ms")
        },
        rule=body.optional("rule", f"one of {', '.join(RULES)}", lambda v: v in RULES, WALK),
    )


def _check(body: _Reader) -> Check:
    body.only(Check, ["chance"])
    return Check(
        node=body.take("node", "a node or -1", _is_node_or_root),
        drawn=body.take("drawn", "a token id", _is_count),
        probability=body.take("probability", "a probability", _is_probability),
        child=body.take("child", "a node or null", _or_none(_is_count)),
        top_tokens=body.ids("top_tokens"),
        top_probabilities=body.column("top_probabilities", "a probability", _is_probability),
        chance=body.optional("chance", "a probability or null", _or_none(_is_probability), None),
    )
