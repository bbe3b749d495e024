"""Preallocated key/value rows, for the target's layers and the draft model's one layer alike.

Appending copies into room reserved beforehand (torch.cat would copy the whole past in every layer of every pass). After
verification the rows of the accepted path, scattered over their slots, move up behind the committed ones.
"""

from __future__ import annotations

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

FIRST_CAPACITY = 256


class KeyValueRows:
    """Keys and values [B, H, length, D], growing at the end, cut or compacted from the end."""

    def __init__(self) -> None:
        self._keys: Tensor | None = None  # [B, H, capacity, D]
        self._values: Tensor | None = None
        self.length = 0

    @property
    def keys(self) -> Tensor:
        return self._keys[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        return self._values[:, :, : self.length]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add rows [B, H, T, D]; returns all keys and values, as views."""
        end = self.length + keys.shape[2]
        self._keys = self._with_room(self._keys, keys, end)
        self._values = self._with_room(self._values, values, end)
        self._keys[:, :, self.length : end] = keys
        self._values[:, :, self.length : end] = values
        self.length = end
        return self.keys, self.values

    def keep(self, committed: int, rows: Tensor) -> None:
        """Of all after the first `committed` rows keep `rows` (int64 [a], counted from there, ascending) alone."""
        if len(rows):
            end = committed + len(rows)
            chosen = rows.to(self._keys.device) + committed
            self._keys[:, :, committed:end] = self._keys.index_select(2, chosen)
            self._values[:, :, committed:end] = self._values.index_select(2, chosen)
        self.truncate(committed + len(rows))

    def truncate(self, length: int) -> None:
        """Drop all rows from `length` on; asking for more rows than there are drops none."""
        self.length = min(self.length, max(length, 0))

    def _with_room(self, buffer: Tensor | None, like: Tensor, needed: int) -> Tensor:
        if buffer is not None and buffer.shape[2] >= needed:
            return buffer
        batch, heads, _, width = like.shape
        capacity = max(FIRST_CAPACITY, needed + needed // 4)
        larger = like.new_empty(batch, heads, capacity, width)
        if buffer is not None:
            larger[:, :, : self.length] = buffer[:, :, : self.length]
        return larger


class TreeCache(Cache):
    """A stock model's cache whose layers can be compacted behind the committed rows."""

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=TreeLayer)

    def keep(self, committed: int, rows: Tensor) -> None:
        """In every layer, of all after the first `committed` rows keep `rows` alone (see `KeyValueRows.keep`)."""
        for layer in self.layers:
            layer.keep(committed, rows)


class TreeLayer(DynamicLayer):
    """One target layer's cache behind transformers' interface. It keeps every key: sliding windows are in the mask."""

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.rows = KeyValueRows()

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.device, self.dtype = key_states.device, key_states.dtype
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys, self.values = self.rows.append(key_states, value_states)
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self.rows.length

    def keep(self, committed: int, rows: Tensor) -> None:
        self.rows.keep(committed, rows)
        self.keys, self.values = self.rows.keys, self.rows.values
