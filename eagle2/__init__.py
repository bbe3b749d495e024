"""EAGLE-2: lossless speculative decoding with context-aware dynamic draft trees.

    engine = eagle2.load()
    ids = engine.encode_chat([{"role": "user", "content": "Hi"}])
    for round in engine.rounds(ids, shape=eagle2.TreeShape(top_k=8, depth=5, max_nodes=16)):
        print(round.committed)

Importing this package loads no torch; the engine comes in with the first use of `load` or `Engine`.
"""

from __future__ import annotations

import importlib

_HOMES = {
    "load": "eagle2.loading.load",
    "Engine": "eagle2.decoding.engine",
    "TreeShape": "eagle2.settings",
    "Sampling": "eagle2.settings",
    "Round": "eagle2.trace.rounds",
    "Trace": "eagle2.trace.rounds",
    "Settings": "eagle2.settings",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'eagle2' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
