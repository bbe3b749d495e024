"""Where a round's time goes, phase by phase."""

from __future__ import annotations

import time

import torch


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
