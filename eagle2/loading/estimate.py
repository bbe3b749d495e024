"""What a pair will take and what there is for it, before anything large is fetched or loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from eagle2.loading import known_pairs, weights
from eagle2.loading import load as loading
from eagle2.models import memory


@dataclass(frozen=True)
class Estimate:
    """needed: bytes of both models' weights and a tenth more. free: of the device, None where that is not known.

    whole: False where `needed` lacks a model whose size is not known beforehand: a head that only the hub has, or a
    quantised target.
    """

    needed: int
    free: int | None
    device: str
    dtype: str
    whole: bool = True

    @property
    def fits(self) -> bool:
        """Whether there is room, as far as one can know."""
        return self.free is None or self.needed <= self.free


def refuse_too_large(name: str, found: Estimate) -> None:
    """Raise MemoryError in one sentence for a pair that has no room."""
    if not found.fits:
        raise MemoryError(
            f"{name} needs about {found.needed / memory.GIB:.1f} GiB in {found.dtype}, and {found.device} has "
            f"{found.free / memory.GIB:.1f} GiB free; choose a smaller one or half precision, or start the program "
            "with it, so that no other takes its memory"
        )


def estimate(target: str | None, head: str | None, device: str = "auto", dtype: str = "auto") -> Estimate:
    """Of a pair as `loading.load` takes it; see `asks_hub`.

    Raises ValueError where there is no such model.
    """
    place = loading.choose_device(device)
    kind = loading.choose_dtype(dtype, place)
    dtype, free = str(kind).removeprefix("torch."), memory.room(place)
    if target is None:
        return Estimate(known_pairs.memory_needed(known_pairs.BUNDLED, dtype), free, place, dtype)
    known = known_pairs.pair_of(target, head) if head else None
    if known is not None:
        return Estimate(known_pairs.memory_needed(known, dtype), free, place, dtype)
    config = loading.model_config(target)
    quantised = hasattr(config, "quantization_config")
    of_target = None if quantised else memory.weights_bytes(config, kind) // kind.itemsize
    of_head = head_parameters(head) if head else 0
    needed = _taken((of_target or 0) + (of_head or 0), kind)
    return Estimate(needed, free, place, dtype, None not in (of_target, of_head))


def asks_hub(target: str | None, head: str | None) -> bool:
    """Whether an estimate has to ask the hub: then it may take half a minute to find that there is no network."""
    if target is None or Path(target).expanduser().is_dir():
        return False
    return not head or known_pairs.pair_of(target, head) is None


def head_parameters(name: str) -> int | None:
    """Of a head's folder, or of one that the registry knows; None for others on the hub."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return weights.count_parameters(folder)
    known = [pair.head_b for pair in known_pairs.KNOWN_PAIRS if pair.head.lower() == name.lower()]
    return round(known[0] * 1e9) if known else None


def _taken(parameters: float, dtype: torch.dtype) -> int:
    return round(parameters * dtype.itemsize * known_pairs.OVERHEAD)
