"""The models behind the page: loaded once, beside the page, shared by all visitors; on ZeroGPU, run in its workers.

Knows the engine and no Gradio. A page asks for the next round of a turn and gets plain data.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eagle2 import metrics
from eagle2.config import AUTO, METHODS, STATIC, WALK, Sampling
from eagle2.regrow import check_pair, regrow
from eagle2.trace import Round, Settings, Trace
from visual.panels import Comparison
from visual.session import Turn, absorb, advance

if TYPE_CHECKING:
    from eagle2.costs import Costs
    from eagle2.lossless import Verdict

WORKER_DEVICE = "cuda"
"""Where a ZeroGPU worker runs the models."""

MOST_SECONDS = 120
"""Of GPU time, the most that one run asks a ZeroGPU Space for."""


@dataclass(frozen=True)
class Options:
    """What the owner of a page decides and no visitor can change. max_new_tokens: per run. runs: at once."""

    target: str | None = None
    head: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    draft_model: str | None = None
    max_new_tokens: int = 512
    runs: int = 4
    waiting: int = 32
    upload_mb: int = 32

    @property
    def methods(self) -> tuple[str, ...]:
        """What visitors can choose from: "sps" only where its draft model was given; last, a tree of their own."""
        return (*(method for method in METHODS if method != "sps" or self.draft_model), STATIC)


class Studio:
    """state: "waiting", "loading", "ready" or "failed"; `fault` then says why, in one sentence."""

    def __init__(self, options: Options, load: Callable[..., object] | None = None) -> None:
        self.options = options
        self.state = "waiting"
        self.fault = ""
        self._load = load
        self._engine: object | None = None
        self._costs: dict[str | None, Costs] = {}  # by drafter
        self._lock = threading.Lock()
        self._worker: Callable[..., Iterator[Round]] | None = None
        if importlib.util.find_spec("spaces"):
            import spaces

            self._worker = spaces.GPU(duration=duration_s)(self._work)
            self._checker = spaces.GPU(duration=MOST_SECONDS)(self._check)
            self._timer = spaces.GPU(duration=MOST_SECONDS)(self._measure)
            self._grower = spaces.GPU(duration=MOST_SECONDS)(self._regrow)

    def start(self) -> None:
        """Load in the background, so that the page is there before the models are."""
        threading.Thread(target=self._try, daemon=True, name="load models").start()

    def engine(self) -> object:
        """The engine, waiting for it where it is still being loaded. Raises ValueError with the reason it failed."""
        self._try()
        if self._engine is None:
            raise ValueError(self.fault)
        return self._engine

    def engine_for(self, settings: Settings) -> object:
        """The engine; where the method decides by what rounds cost, it knows that of the machine they will run on."""
        engine = self.engine()
        if self._worker is None or settings.policy != AUTO:
            return engine
        from eagle2.loading import move

        drafter = settings.drafter
        if drafter not in self._costs:  # under no lock: a worker is a fork, and would inherit it locked
            self._costs[drafter] = self._timer(drafter)
        return move(engine, engine.pair.device, self._costs[drafter])

    def _try(self) -> None:
        with self._lock:
            if self._engine is not None:
                return
            self.state = "loading"
            try:
                self._engine = self._loaded()
            except Exception as error:  # a foreign folder can make the libraries raise nearly anything
                self.state, self.fault = "failed", str(error) or type(error).__name__
            else:
                self.state = "ready"

    def _loaded(self) -> object:
        o = self.options
        device, dtype = o.device, o.dtype
        if self._worker is not None:  # no process but a worker may touch CUDA there; it moves the models over
            device, dtype = "cpu", "bfloat16" if o.dtype == "auto" else o.dtype
        if self._load is not None:
            return self._load(o.target, o.head, device, dtype, o.draft_model)
        from eagle2.found import announce
        from eagle2.loading import load

        engine = load(o.target, o.head, device, dtype, o.draft_model)
        if o.head:
            announce(o.head, engine.drafter.head, engine.target.vocab_size)
        return engine

    def rounds(self, turn: Turn) -> Iterator[Round]:
        """The rounds still to come, each added to the turn before it is yielded. Leaving off is always safe."""
        engine = self.engine()
        if self._worker is None:
            while turn.open:
                yield advance(turn, engine)
            return
        for made in self._worker(turn.prompt_ids, turn.settings, turn.rounds, turn.costs):
            absorb(turn, made, engine)
            yield made

    def regrow(self, turn: Turn, index: int, settings: Settings) -> Round:
        """Round `index` of a turn, grown again under other settings from the same committed prefix."""
        engine = self.engine()
        if self._worker is None:
            return regrow(engine, turn.trace(), index, settings)
        check_pair(engine, turn.pair)
        return self._grower(turn.trace(), index, settings)

    def compare(self, turn: Turn) -> Comparison:
        """The turn's text and speed against plain decoding, on the machine that wrote it."""
        engine = self.engine()
        new = turn.ids[len(turn.prompt_ids) :]
        if self._worker is None:
            verdict = engine.check(turn.prompt_ids, new, turn.settings.sampling)
        else:
            verdict = self._checker(turn.prompt_ids, new, turn.settings.sampling)
        plain = 1e3 * (verdict.positions - 1) / verdict.plain_ms if verdict.plain_ms else None
        speed = metrics.speed(turn.rounds)
        ratio = speed.tokens_per_s / plain if speed and plain else None
        in_law = any(r.rule != WALK for r in turn.rounds)
        return Comparison(ratio, plain, verdict.positions, len(verdict.differing), len(verdict.near_ties), in_law)

    def _check(self, prompt_ids: list[int], new_ids: list[int], sampling: Sampling) -> Verdict:
        from eagle2.loading import move

        return move(self.engine(), WORKER_DEVICE).check(prompt_ids, new_ids, sampling)

    def _measure(self, drafter: str | None) -> Costs:
        from eagle2.loading import move

        return move(self.engine(), WORKER_DEVICE).costs_with(drafter)

    def _regrow(self, trace: Trace, index: int, settings: Settings) -> Round:
        from eagle2.loading import move

        return regrow(move(self.engine(), WORKER_DEVICE), trace, index, settings)

    def _work(
        self, prompt_ids: list[int], settings: Settings, after: list[Round], costs: Costs | None
    ) -> Iterator[Round]:
        """One visitor's run in a ZeroGPU worker: plain data in, plain data out."""
        from eagle2.loading import move

        engine = move(self.engine(), WORKER_DEVICE, costs)
        s = settings
        yield from engine.rounds(
            prompt_ids, s.shape, s.sampling, s.max_new_tokens, s.tree, after=after, drafter=s.drafter
        )


def duration_s(prompt_ids: list[int], settings: Settings, after: list[Round], costs: Costs | None = None) -> int:
    """Seconds of GPU to ask for: moving the models, then a guess per token that errs on the long side, capped."""
    done = sum(len(r.committed) for r in after)
    return min(MOST_SECONDS, 15 + (settings.max_new_tokens - done) // 8 + len(prompt_ids) // 1000)
