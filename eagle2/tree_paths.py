"""Static trees as text: paths of child ranks from the root, as the EAGLE and Medusa papers give them.

    [0], [1], [0, 0], [0, 1], [0, 0, 0]

[0, 1] is the second likeliest child of the likeliest first token. Read leniently (brackets or parentheses, commas or
line breaks between paths, one list around them or none), checked strictly, always in one order: shallower first, then
by rank. Knows no model and no pool.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path as File
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eagle2.settings import TreeShape

Path = tuple[int, ...]
Paths = tuple[Path, ...]

FAULTS = {
    "long": "the static tree's text has {count} characters; at most {most} are read",
    "unreadable": "“{text}” is no list of paths; write each as child ranks in brackets, as in [0], [1], [0, 0]",
    "empty": "a static tree needs at least one path, as in [0]",
    "root": "an empty path is the root, which is always there; leave [] out of the static tree",
    "no_rank": "path {path} holds {rank}; child ranks are whole numbers from 0, the likeliest child, on",
    "negative": "path {path} holds {rank}; a child rank must be at least 0, the likeliest child",
    "twice": "path {path} is given more than once; a static tree holds each path once",
    "orphan": "path {path} has no parent: add {parent} to the static tree",
    "rank": "path {path} holds rank {rank}; with {most} children each, ranks go from 0 to {last}",
    "depth": "path {path} is {depth} levels deep; at most {most} are allowed",
    "nodes": "the static tree has {nodes} nodes; at most {most} are allowed",
}
"""What can be wrong with a tree, a sentence each."""

MOST_CHARACTERS = 2**16
"""Of a text that is read: some thousand paths, written out."""

SHOWN = 60
"""Characters of somebody's text that a sentence repeats at most."""


class PathsError(ValueError):
    """What is wrong with a static tree. kind: one of `FAULTS`; values: what its sentence is filled in with."""

    def __init__(self, kind: str, **values: object) -> None:
        super().__init__(FAULTS[kind].format(**values))
        self.kind, self.values = kind, values


def spelled(path: Sequence[int] | int) -> str:
    """One path as text, "[0, 1]", or one rank; a long one is cut."""
    text = json.dumps(path, default=repr)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def as_paths(policy: object) -> Paths:
    """A policy that is no method's name, as paths. Raises TypeError for what is no list of lists."""
    if not isinstance(policy, Sequence) or not all(isinstance(path, Sequence) for path in policy):
        raise TypeError(f"policy must be a method's name or a list of paths (lists of child ranks), not {policy!r}")
    return tuple(map(tuple, policy))


def ordered(paths: Iterable[Sequence[int]]) -> Paths:
    """Shallower first, then by rank: the order in which a static tree is drafted and verified."""
    return tuple(sorted(map(tuple, paths), key=lambda path: (len(path), path)))


def checked(paths: Iterable[Sequence[int]], most: TreeShape | None = None) -> Paths:
    """The paths in order. most: the largest top_k, depth and number of nodes allowed. Raises PathsError."""
    given = [tuple(path) for path in paths]
    if not given:
        raise PathsError("empty")
    if most is not None and len(given) > most.max_nodes:  # before anything whose cost grows with the paths
        raise PathsError("nodes", nodes=len(given), most=most.max_nodes)
    for path in given:
        if not path:
            raise PathsError("root")
        for rank in path:
            if isinstance(rank, bool) or not isinstance(rank, int):
                raise PathsError("no_rank", path=spelled(path), rank=repr(rank)[:SHOWN])
            if rank < 0:
                raise PathsError("negative", path=spelled(path), rank=spelled(rank))
    tree = set(given)
    for path in given:
        if len(path) > 1 and path[:-1] not in tree:
            raise PathsError("orphan", path=spelled(path), parent=spelled(path[:-1]))
    if len(tree) < len(given):
        counts = Counter(given)
        raise PathsError("twice", path=spelled(next(path for path in given if counts[path] > 1)))
    result = ordered(given)
    if most is not None:
        _check_extent(result, most)
    return result


def _check_extent(paths: Paths, most: TreeShape) -> None:
    for path in paths:
        if max(path) >= most.top_k:
            raise PathsError("rank", path=spelled(path), rank=spelled(max(path)), most=most.top_k, last=most.top_k - 1)
        if len(path) > most.depth:
            raise PathsError("depth", path=spelled(path), depth=len(path), most=most.depth)


def parse(text: str, most: TreeShape | None = None) -> Paths:
    """The checked paths of a text, in time proportional to its length. Raises PathsError in one sentence."""
    if len(text) > MOST_CHARACTERS:
        raise PathsError("long", count=len(text), most=MOST_CHARACTERS)
    # Breaks between paths are commas, and (0,) is Python's [0]. Runs of blanks become one first, so that no pattern
    # tries a long run from each of its places.
    listed = " ".join(text.split()).rstrip(",;")
    listed = re.sub(r"([\])]) ?[,;]? ?([\[(])", r"\1,\2", listed)
    listed = re.sub(r", ?]", "]", listed.replace("(", "[").replace(")", "]"))
    try:
        paths = json.loads(f"[{listed}]")
    except (ValueError, RecursionError) as error:
        raise PathsError("unreadable", text=_short(text)) from error
    if len(paths) == 1 and isinstance(paths[0], list) and all(isinstance(path, list) for path in paths[0]):
        paths = paths[0]  # one list around them all, as in a file
    if not all(isinstance(path, list) for path in paths):
        raise PathsError("unreadable", text=_short(text))
    return checked(paths, most)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"


def to_text(paths: Iterable[Sequence[int]]) -> str:
    """The paths in order, a line for each level."""
    levels = groupby(ordered(paths), key=len)
    return ",\n".join(", ".join(spelled(path) for path in level) for _, level in levels)


def to_json(paths: Iterable[Sequence[int]]) -> str:
    """The paths in order as a JSON list of lists: what a tree's file holds."""
    return f"[{to_text(paths)}]\n"


def load(file: str | File, most: TreeShape | None = None) -> Paths:
    """The tree of a file. Raises PathsError, or OSError where it cannot be read."""
    if (size := File(file).stat().st_size) > 4 * MOST_CHARACTERS:  # UTF-8 has at most 4 bytes for a character
        raise PathsError("long", count=size, most=MOST_CHARACTERS)
    try:
        text = File(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PathsError("unreadable", text=File(file).name) from error
    return parse(text, most)
