"""Bookkeeping around runs: whose caches are alive, and where a round's time went. Knows nothing of trees or models."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

import torch


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


class Clock:
    """Milliseconds spent per phase since it was made; waits for the device at every lap."""

    PHASES = ("prefill", "draft", "verify", "rest")

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.spent_ms = {f"{phase}_ms": 0.0 for phase in self.PHASES}
        self._last = self._now()

    def lap(self, phase: str) -> None:
        """Book the time since the last lap under `phase`."""
        now = self._now()
        self.spent_ms[f"{phase}_ms"] += now - self._last
        self._last = now

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._device.type == "mps":
            torch.mps.synchronize()
        return time.perf_counter() * 1e3
