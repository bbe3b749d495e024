"""Whose caches are alive. Knows nothing of trees or models."""

from __future__ import annotations

import threading
from collections import OrderedDict


class LiveCaches:
    """Caches by run, at most `limit` at once; the run used longest ago loses its own first. Safe across threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._caches: OrderedDict[object, object] = OrderedDict()
        self._lock = threading.RLock()  # a run collected as garbage inside `put` drops its caches from there

    def __len__(self) -> int:
        return len(self._caches)

    def get(self, run: object) -> object | None:
        with self._lock:
            return self._caches.get(run)

    def put(self, run: object, caches: object) -> None:
        with self._lock:
            self._caches[run] = caches
            self._caches.move_to_end(run)
            while len(self._caches) > self.limit:
                self._caches.popitem(last=False)

    def drop(self, run: object) -> None:
        with self._lock:
            self._caches.pop(run, None)

    def clear(self) -> None:
        with self._lock:
            self._caches.clear()
