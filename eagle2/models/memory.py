"""How much memory weights take and how much a device has, before anything large is loaded."""

from __future__ import annotations

import gc
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

GIB = 2**30
ROOM = 0.9
"""Share of free memory that weights may take: the rest is for caches and activations."""


def weights_bytes(config: object, dtype: torch.dtype) -> int:
    """Bytes of a model's weights, added up without making any."""
    with torch.device("meta"):
        return sum(p.numel() for p in AutoModelForCausalLM.from_config(config).parameters()) * dtype.itemsize


def free_bytes(device: str) -> int | None:
    """Bytes free on a device; None where that is not known."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    return free_main_memory() if device.startswith("cpu") else None


def room(device: str) -> int | None:
    """Bytes that a pair can take when it is loaded for a device: a model too large for one GPU is spread over all."""
    if device == "spread" or device.startswith("cuda"):
        gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        return sum(map(free_bytes, gpus)) if gpus else free_bytes("cpu")
    return free_bytes(device)


def release() -> None:
    """Give back what models that nobody holds any more have taken: their modules refer to one another."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def free_main_memory(info: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes this process can still have: the machine's, or its container's where that is less. None but on Linux."""
    try:
        lines = dict(line.split(":", 1) for line in info.read_text(encoding="ascii").splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free
    return min(free, max(0, limit - used))


def refuse_too_large(name: str, needed: int, free: int | None, device: str) -> None:
    """Raise MemoryError, before loading, for weights that would leave nothing of a device's memory."""
    if free is not None and needed > ROOM * free:
        raise MemoryError(
            f"{name} needs about {needed / GIB:.1f} GiB for its weights, and {device} has {free / GIB:.1f} GiB free; "
            "choose a smaller model, half precision (dtype bfloat16), or another device"
        )
