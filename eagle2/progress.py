"""Progress of a load, reported to whoever asked for it, who may also cancel it. Knows no models.

A watch is called with a step's name, how much of it is done and of how much: bytes of a "download", tensors of
"weights", layers of "products". It may raise `Cancelled`, from any thread, and the load ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tqdm.auto import tqdm

Watch = Callable[[str, int, int], None]


class Cancelled(BaseException):
    """The load was cancelled. Not an `Exception`, so that nothing on the way out mistakes it for a fault."""


def unwatched(step: str, done: int, of: int) -> None:
    """A watch that ignores progress."""


def bar_telling(watch: Watch, step: str) -> type[tqdm]:
    """A progress bar class for libraries to use: shown on terminals as usual, and reported to `watch` as well.

    Of a download's bars only those of bytes written tell, not those of files or of bytes on the wire.
    """

    class Bar(tqdm):
        def __init__(self, *arguments: object, **options: object) -> None:
            options.setdefault("disable", None)  # anywhere but on a terminal
            super().__init__(*arguments, **options)
            of_bytes = options.get("unit") == "B" and "downloading bytes" not in str(options.get("desc")).lower()
            self.telling = of_bytes or step != "download"

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            if self.disable:  # then tqdm counts nothing
                self.n += n or 0
            if self.telling:
                watch(step, int(self.n), int(self.total or 0))
            return shown

        def __iter__(self) -> Iterator[object]:
            for item in self.iterable:
                yield item
                self.update()

    return Bar
