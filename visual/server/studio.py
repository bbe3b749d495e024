"""The models behind the page: loaded beside it, shared by all visitors; on ZeroGPU, run in its workers.

Knows the engine and no Gradio. A page asks for the next round of a turn and gets plain data.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eagle2.analysis import metrics
from eagle2.analysis.regrow import check_pair, regrow
from eagle2.methods import DRAFT_MODEL, METHODS, STATIC, WALK
from eagle2.progress import Cancelled
from eagle2.settings import Sampling, Settings
from eagle2.trace.rounds import Pair, Round, Trace
from visual.page.html import Comparison
from visual.server.conversation import Turn, absorb, advance
from visual.server.loads import Load, Used, describe

if TYPE_CHECKING:
    from eagle2.decoding.budget import Costs
    from eagle2.decoding.lossless import Verdict
    from eagle2.loading.estimate import Estimate

WORKER_DEVICE = "cuda"
"""Where a ZeroGPU worker runs the models."""

MOST_SECONDS = 120
"""Of GPU time, the most that one run asks a ZeroGPU Space for."""


class NotLoadedError(ValueError):
    """There are no models, since loading them was given up."""


@dataclass(frozen=True)
class Options:
    """What the owner of a page decides and no visitor can change. max_new_tokens: per run. runs: at once.

    key: what proves the owner, who alone may switch models, on a public page; "" where everybody may.
    """

    target: str | None = None
    head: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    draft_model: str | None = None
    max_new_tokens: int = 512
    runs: int = 4
    waiting: int = 32
    upload_mb: int = 32
    key: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """What visitors can choose from: "sps" only where its draft model was given; last, a tree of their own."""
        return (*(name for name, row in METHODS.items() if row.drafter != DRAFT_MODEL or self.draft_model), STATIC)


class Studio:
    """The pair in use, and how it is had. `load` is the latest attempt at one, `used` what came of the last good one.

    on_switch: called once another pair is in use, to let go of what the old one still has going on.
    """

    def __init__(self, options: Options, load: Callable[..., object] | None = None) -> None:
        self.options = options
        self.load: Load | None = None
        self.used: Used | None = None
        self.on_switch: list[Callable[[], None]] = []
        self._loader = load
        self._costs: dict[str | None, Costs] = {}  # by drafter
        self._lock = threading.Lock()
        self._worker: Callable[..., Iterator[Round]] | None = None
        if importlib.util.find_spec("spaces"):
            import spaces

            self._worker = spaces.GPU(duration=duration_s)(self._work)
            self._checker = spaces.GPU(duration=MOST_SECONDS)(self._check)
            self._timer = spaces.GPU(duration=MOST_SECONDS)(self._measure)
            self._grower = spaces.GPU(duration=MOST_SECONDS)(self._regrow)

    @property
    def state(self) -> str:
        """ "ready"; or, while there is no pair: "waiting" for the first prompt, "loading", "failed" with a `fault`."""
        if self.used is not None:
            return "ready"
        load = self.load
        if load is None or load.state == "cancelled":
            return "waiting"
        return "loading" if load.state == "running" else "failed"

    @property
    def fault(self) -> str:
        """Why the latest load failed, in one sentence."""
        return self.load.fault if self.load is not None else ""

    def start(self) -> Load:
        """Load the owner's pair in the background, so that the page is there before the models are."""
        with self._lock:
            if self.used is None and (self.load is None or self.load.state != "running"):
                o = self.options
                self._begin(Load(o.target, o.head, o.draft_model))
            return self.load

    def engine(self) -> object:
        """The engine in use, waiting where it is still being loaded. Raises ValueError with the reason it failed."""
        if self.used is None:
            load = self.start()
            load.ended.wait()
            if self.used is None:
                if load.state == "cancelled":
                    raise NotLoadedError("loading the models was cancelled; send the prompt again to load them")
                raise ValueError(load.fault)
        return self.used.engine

    def serves(self, pair: Pair) -> bool:
        """Whether this is the pair in use."""
        return self.used is not None and self.used.engine.pair == pair

    def switch(self, target: str | None, head: str | None) -> bool:
        """Begin to load another pair beside the one in use, which serves until the new one is there, and stays where
        that fails. The owner's draft model comes with the owner's pair only. False while a load is going on.
        """
        o = self.options
        draft_model = o.draft_model if (target, head) == (o.target, o.head) else None
        with self._lock:
            if self.load is not None and self.load.state == "running":
                return False
            self._begin(Load(target, head, draft_model, chosen=True))
            return True

    def estimate(self, target: str | None, head: str | None) -> Estimate:
        """What a pair takes and what there is beside the one in use. Raises ValueError where there is no such pair."""
        from eagle2.loading.estimate import estimate

        return estimate(target, head, *self._place())

    def room(self) -> tuple[str, str, int | None]:
        """Device and dtype that pairs are loaded with, and the bytes that are free there now."""
        from eagle2.loading import load as loading
        from eagle2.models import memory

        device, dtype = self._place()
        place = loading.choose_device(device)
        return place, str(loading.choose_dtype(dtype, place)).removeprefix("torch."), memory.room(place)

    def _begin(self, load: Load) -> None:
        self.load = load
        threading.Thread(target=self._run, args=(load,), daemon=True, name="load models").start()

    def _run(self, load: Load) -> None:
        """One load, to its end. What is chosen on the page and will not fit is refused before anything is fetched."""
        state, fault = "done", ""
        try:
            if load.chosen:
                self._refuse_too_large(load)
            self._use(load)
        except Cancelled:
            state = "cancelled"
        except Exception as error:  # a foreign folder can make the libraries raise nearly anything
            state = "cancelled" if load.unwanted else "failed"
            fault = "" if load.unwanted else str(error).rstrip(".") or type(error).__name__
        if load.chosen:
            release()
        load.end(state, fault)

    def _refuse_too_large(self, load: Load) -> None:
        from eagle2.loading.estimate import refuse_too_large

        load.estimate = self.estimate(load.target, load.head)
        refuse_too_large(load.target or "the default pair", load.estimate)

    def _use(self, load: Load) -> None:
        """Load the pair and put it in the old one's place."""
        engine = self._loaded(load)
        used = describe(engine, load)
        load.watch("ready", 1, 1)  # the last moment to give it up
        self.used, self._costs = used, {}
        for let_go in self.on_switch:
            let_go()

    def _place(self) -> tuple[str, str]:
        """Device and dtype. No process but a ZeroGPU worker may touch CUDA there; it moves the models over."""
        o = self.options
        if self._worker is not None:
            return "cpu", "bfloat16" if o.dtype == "auto" else o.dtype
        return o.device, o.dtype

    def _loaded(self, load: Load) -> object:
        asked = (load.target, load.head, *self._place(), load.draft_model, load.watch)
        if self._loader is not None:
            return self._loader(*asked)
        from eagle2.loading.describe_head import announce
        from eagle2.loading.load import load as load_pair

        engine = load_pair(*asked)
        if load.head:
            announce(load.head, engine.drafter.head, engine.target.vocab_size)
        return engine

    def engine_for(self, settings: Settings) -> object:
        """The engine; where the method decides by what rounds cost, it knows that of the machine they will run on."""
        engine = self.engine()
        if self._worker is None or not settings.method.needs_costs:
            return engine
        from eagle2.loading.load import move

        drafter = settings.drafter
        if drafter not in self._costs:  # under no lock: a worker is a fork, and would inherit it locked
            self._costs[drafter] = self._timer(drafter)
        return move(engine, engine.pair.device, self._costs[drafter])

    def rounds(self, turn: Turn) -> Iterator[Round]:
        """The rounds still to come, each added to the turn before it is yielded. Leaving off is always safe."""
        engine = self.engine()
        if engine.pair != turn.pair:  # it was switched a moment ago
            raise ValueError(f"this run was made by {turn.pair.target}, and {engine.pair.target} is in use now")
        if self._worker is None:
            try:
                while turn.open:
                    yield advance(turn, engine)
            finally:
                if engine is not self.used.engine:  # it was switched meanwhile, and lived on for this run alone
                    turn.close()
                    engine = None
                    release()
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
        from eagle2.loading.load import move

        return move(self.engine(), WORKER_DEVICE).check(prompt_ids, new_ids, sampling)

    def _measure(self, drafter: str | None) -> Costs:
        from eagle2.loading.load import move

        return move(self.engine(), WORKER_DEVICE).costs_with(drafter)

    def _regrow(self, trace: Trace, index: int, settings: Settings) -> Round:
        from eagle2.loading.load import move

        return regrow(move(self.engine(), WORKER_DEVICE), trace, index, settings)

    def _work(
        self, prompt_ids: list[int], settings: Settings, after: list[Round], costs: Costs | None
    ) -> Iterator[Round]:
        """One visitor's run in a ZeroGPU worker: plain data in, plain data out."""
        from eagle2.loading.load import move

        engine = move(self.engine(), WORKER_DEVICE, costs)
        yield from engine.run(prompt_ids, settings, after=after)


def release() -> None:
    """Give back the memory of models that nobody holds any more."""
    from eagle2.models.memory import release

    release()


def duration_s(prompt_ids: list[int], settings: Settings, after: list[Round], costs: Costs | None = None) -> int:
    """Seconds of GPU to ask for: moving the models, then a guess per token that errs on the long side, capped."""
    done = sum(len(r.committed) for r in after)
    return min(MOST_SECONDS, 15 + (settings.max_new_tokens - done) // 8 + len(prompt_ids) // 1000)
