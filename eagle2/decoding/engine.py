"""What callers use: runs as generators of `Round`s, plain decoding, checks, traces. It speaks ids, `text` the rest.

`Engine.rounds` is a generator: stepping, pausing and abandoning a run cost nothing. The lock is held while a round is
worked out, never between rounds; caches of runs that others have pushed out are made again from their committed ids.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

import torch

from eagle2 import text
from eagle2.decoding import cost_timing, lossless
from eagle2.decoding.budget import Costs
from eagle2.decoding.cache_pool import LiveCaches
from eagle2.decoding.plain import Output, StopRule, decode
from eagle2.decoding.policy import Policy, make_policy
from eagle2.decoding.step import Run, Stepper
from eagle2.drafters.base import Drafter
from eagle2.drafters.prompt_lookup import NgramDrafter
from eagle2.methods import AUTO, DRAFT_MODEL, LOOKUP, RULES, STATIC, WALK, combine, drafter_of, method
from eagle2.models.target import Target
from eagle2.settings import Sampling, Settings, TreeShape, check_ids, check_integer, check_tokens
from eagle2.trace.rounds import Pair, Round, Trace
from eagle2.tree_paths import as_paths

LIVE_RUNS = 4
"""Runs whose caches are kept at once."""


class Engine:
    """A target, a drafter and, if there is one, the tokenizer of the pair.

    drafter: what every method drafts with that brings no drafter of its own. draft_model: the drafter of method "sps".
    costs: what rounds cost, whoever drafts; else it is measured when "eagle2-auto" first asks.
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter | None = None,
        tokenizer: object | None = None,
        pair: Pair | None = None,
        live_runs: int = LIVE_RUNS,
        costs: Costs | None = None,
        draft_model: Drafter | None = None,
    ) -> None:
        self.target = target
        self.drafter = drafter
        self.draft_model = draft_model
        self.tokenizer = tokenizer
        self.pair = pair or Pair(
            target="unnamed", device=str(target.device), dtype=str(target.dtype).removeprefix("torch.")
        )
        self._lock = threading.RLock()  # a stop rule may ask the engine for something
        self._lookup = NgramDrafter()
        self._live = LiveCaches(live_runs)
        self._costs = costs
        self._measured: dict[Drafter, Costs] = {}
        self._stepper = Stepper(target, self._live)

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Prompt ids of a conversation ({"role", "content"} turns) under the model's chat template."""
        return text.encode_chat(self.tokenizer, messages)

    def encode_follow_up(self, messages: Sequence[dict[str, str]], ids: Sequence[int], content: str) -> list[int]:
        """Prompt ids of the next user turn: `ids` (the last prompt and its answer), unchanged, then the new turn."""
        return text.encode_follow_up(self.tokenizer, messages, ids, content, self.target.end_ids)

    def encode_answer(self, content: str) -> list[int]:
        """Ids of the beginning of an answer, which the run is to go on with; they follow the prompt's own."""
        return text.encode_answer(self.tokenizer, content)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens left out."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True) if self.tokenizer else ""

    def spell(self, ids: Iterable[int]) -> dict[int, bytes]:
        """The bytes that each of `ids` stands for."""
        return {token: self._spell(token) for token in sorted(ids)}

    @cached_property
    def _spell(self) -> Callable[[int], bytes]:
        return text.speller(self.tokenizer)

    def rounds(
        self,
        ids: Sequence[int],
        shape: TreeShape | None = None,
        sampling: Sampling | None = None,
        max_new_tokens: int = 64,
        policy: str | Sequence[Sequence[int]] = "eagle2",
        stop: StopRule | None = None,
        record: bool = True,
        after: Sequence[Round] = (),
        drafter: str | None = None,
        rule: str | None = None,
    ) -> Iterator[Round]:
        """`run` with settings given one by one.

        policy: a method's name, or a static tree as paths of child ranks; "eagle", paths and "plain" ignore `shape`
        (`policy` returns the shape actually used). drafter: one of `methods.DRAFTERS`, None for the method's own.
        """
        _check_type("shape", shape, TreeShape)
        _check_type("sampling", sampling, Sampling)
        named = isinstance(policy, str)
        settings = Settings(
            policy if named else STATIC,
            shape or TreeShape(),
            sampling or Sampling(),
            max_new_tokens,
            None if named else as_paths(policy),
            drafter,
        )
        return self.run(ids, settings, stop=stop, record=record, after=after, rule=rule)

    def run(
        self,
        ids: Sequence[int],
        settings: Settings,
        *,
        stop: StopRule | None = None,
        record: bool = True,
        after: Sequence[Round] = (),
        rule: str | None = None,
    ) -> Iterator[Round]:
        """Generate after `ids`, one round per `next()`; all rounds' `committed` together equal `plain`.

        stop: see `StopRule`. record: fill in nodes and checks; without it rounds hold ids, counts and times only.
        after: rounds of an earlier, unfinished call with the same arguments; the run continues after them (same seed,
        same tokens). rule: how drafts are verified (`methods.RULES`), None for the method's own, which for "sps" above
        temperature 0 is rejection sampling of a sampled chain: the same distribution, not the same tokens. Everything
        is checked at the call: raises TypeError or ValueError in one sentence.
        """
        chosen = self.policy(settings.tree, settings.shape, settings.drafter)
        who = self.drafter_of(settings.tree, settings.drafter)
        run = self._run(ids, settings.sampling, settings.max_new_tokens, stop, chosen, who, record)
        run.rule = _rule(settings.policy, run.sampling, rule)
        if len(after):
            self._resume(run, after)
        return self._iterate(run)

    def plain(
        self,
        ids: Sequence[int],
        sampling: Sampling | None = None,
        max_new_tokens: int = 64,
        stop: StopRule | None = None,
    ) -> list[int]:
        """The ids the target alone adds to `ids`, one pass a token: the baseline and the oracle."""
        run = self._run(ids, sampling, max_new_tokens, stop, None, None, False)
        with self._lock, self._memory_told(run):
            return decode(self.target, run.prompt, run.sampling, run.output)

    def check(self, ids: Sequence[int], new_ids: Sequence[int], sampling: Sampling) -> lossless.Verdict:
        """Whether `new_ids` are what plain decoding writes after `ids`; other runs take their turns meanwhile."""
        prompt = check_ids(ids, self.target.vocab_size, self.target.context_limit)
        written = check_tokens(new_ids, self.target.vocab_size, "the text to check")
        steps = lossless.steps(self.target, prompt, written, sampling)
        checked = []
        while True:
            with self._lock:
                step = next(steps, None)
            if step is None:
                return lossless.verdict(checked, self.target.dtype)
            checked.append(step)

    def policy(
        self, policy: str | Sequence[Sequence[int]], shape: TreeShape | None = None, drafter: str | None = None
    ) -> Policy | None:
        """The policy as it will act: its `shape` holds the effective values. None for "plain"."""
        _check_type("shape", shape, TreeShape)
        shape = shape or TreeShape()
        name = _name(policy, drafter)
        who = self.drafter_of(policy, drafter)
        row = method(name)
        if who is None and row.drafts:
            # What is wrong with the policy itself is said first.
            name = name if row.needs_costs else make_policy(policy, shape, self.target.vocab_size).name
            what = "an independent draft model" if drafter_of(name, drafter) == DRAFT_MODEL else "a head"
            raise ValueError(
                f"policy {name!r} needs a draft model and none is loaded; give {what}, or use 'ngram' or 'plain'"
            )
        vocabulary = who.vocabulary if who else self.target.vocab_size
        costs = self.costs_with(drafter) if row.needs_costs else None
        return make_policy(name if isinstance(policy, str) else policy, shape, vocabulary, costs)

    @property
    def costs(self) -> Costs:
        """What passes and levels cost here with the engine's own drafter."""
        return self.costs_with(None)

    def costs_with(self, drafter: str | None) -> Costs:
        """What they cost with this drafter: given, or measured when first asked for, which takes seconds on a CPU."""
        who = self.drafter_of(AUTO, drafter)
        with self._lock:
            if self._costs is not None:
                return self._costs
            if who not in self._measured:
                self._measured[who] = cost_timing.measure_costs(self.target, who)
            return self._measured[who]

    def deciding_by(self, costs: Costs | None) -> Engine:
        """The same engine, whose "eagle2-auto" decides by these costs instead of this machine's."""
        other = copy.copy(self)
        other._costs = costs
        return other

    def drafter_of(self, policy: str | Sequence[Sequence[int]], drafter: str | None = None) -> Drafter | None:
        """Who guesses for a method, or for a static tree's paths; None for "plain", and where nobody is loaded.

        Raises ValueError for a drafter that cannot be combined with the method.
        """
        name = _name(policy, drafter)
        who = drafter_of(name, drafter)
        if not method(name).drafts:
            return None
        if who == LOOKUP:
            return self._lookup
        if who == DRAFT_MODEL:
            return self.draft_model
        if who is not None and self.drafter is self.draft_model:  # which stands in for a head where there is none
            return None
        return self.drafter

    def trace(
        self, ids: Sequence[int], rounds: Sequence[Round], settings: Settings, messages: Sequence[dict[str, str]] = ()
    ) -> Trace:
        """The whole run as a record that needs neither models nor tokenizer to be read."""
        policy = self.policy(settings.tree, settings.shape, settings.drafter)
        trace = Trace(
            prompt_ids=tuple(ids),
            settings=settings,
            effective=policy.shape if policy else None,
            pair=self.pair,
            tokens={},
            rounds=tuple(rounds),
            messages=tuple((turn["role"], turn["content"]) for turn in messages),
            costs=self.costs_with(settings.drafter) if settings.method.needs_costs else None,
        )
        trace.tokens.update(self.spell(trace.used_ids()))
        return trace

    def _run(
        self,
        ids: Sequence[int],
        sampling: Sampling | None,
        max_new_tokens: int,
        stop: StopRule | None,
        policy: Policy | None,
        drafter: Drafter | None,
        record: bool,
    ) -> Run:
        prompt = check_ids(ids, self.target.vocab_size, self.target.context_limit)
        _check_type("sampling", sampling, Sampling)
        check_integer("max_new_tokens", max_new_tokens, 1)
        if stop is not None and not callable(stop):
            raise TypeError(f"stop must be a function of the new ids, or None, not {stop!r}")
        room = min(max_new_tokens, self.target.context_limit - len(prompt))
        output = Output(room, self.target.end_ids, stop)
        return Run(prompt, sampling or Sampling(), policy, drafter, output, record)

    def _resume(self, run: Run, after: Sequence[Round]) -> None:
        """Put `run` behind the last of `after`; its caches are made again at its first step."""
        for place, r in enumerate(after):
            _check_type(f"round {place} of after", r, Round)
            root_at = len(run.ids) - (place > 0)  # round 0 commits its own root
            run.output.new += check_tokens(r.committed, self.target.vocab_size, f"round {place} of after")
            if (r.index, r.prefix_length) != (place, root_at) or run.ids[root_at : root_at + 1] != [r.root]:
                raise ValueError(f"round {place} of after does not follow from this prompt and the rounds before it")
            if r.finish is not None:
                raise ValueError(f"the run ended with round {place} ({r.finish}); nothing goes on behind it")
        if len(run.output.new) >= run.output.room:
            raise ValueError(
                f"the run has {len(run.output.new)} new ids already; max_new_tokens, or the context, must leave room"
            )
        run.output.taken = run.output.rounded = len(run.output.new)
        run.index = len(after)

    def _iterate(self, run: Run) -> Iterator[Round]:
        held: list[Round] = []  # rounds that end in what may be the beginning of a stop string
        try:
            while run.output.finish is None:
                with self._lock, self._memory_told(run):
                    held.append(self._stepper.step(run))
                yield from self._ready(run.output, held)
        finally:
            self._live.drop(run)

    @staticmethod
    def _ready(output: Output, held: list[Round]) -> list[Round]:
        """Take from `held` the rounds whose ids are decided; at the end of a run all, up to where its text ends."""
        ready: list[Round] = []
        while held and (output.finish is not None or output.taken + len(held[0].committed) <= output.decided):
            r, left = held.pop(0), len(output.new) - output.taken
            if output.finish is not None and len(r.committed) >= left:
                r = r.ending(left, output.finish)
                held.clear()
            output.taken += len(r.committed)
            ready.append(r)
        return ready

    @contextmanager
    def _memory_told(self, run: Run) -> Iterator[None]:
        """Say what was too large where memory runs out, and let go of all caches; the engine stays usable."""
        try:
            yield
        except RuntimeError as error:  # torch.OutOfMemoryError is one; the CPU's allocator raises it bare
            if not isinstance(error, torch.OutOfMemoryError) and "allocate memory" not in str(error):
                raise
            self._live.clear()
            nodes = run.policy.shape.max_nodes if run.policy else 0
            raise MemoryError(
                f"a round of {nodes} nodes after {len(run.ids)} tokens ran out of memory on {self.target.device}; "
                "lower max_nodes, shorten the conversation, or free the device"
            ) from error


def _name(policy: str | Sequence[Sequence[int]], drafter: str | None) -> str:
    """The method's one name; "static" for a tree's paths."""
    return combine(policy if isinstance(policy, str) else STATIC, drafter)[0]


def _rule(name: str, sampling: Sampling, rule: str | None) -> str:
    """The rule that a run goes by. Raises ValueError where its draft does not allow the one asked for."""
    own = method(name).rule(sampling.greedy)
    if rule is not None and rule not in RULES:
        raise ValueError(f"rule {rule!r} is unknown; choose one of {', '.join(RULES)}")
    if rule not in (None, WALK, own):
        raise ValueError(
            f"rejection sampling needs a draft that was sampled: method sps above temperature 0, not {name} at "
            f"{sampling.temperature:g}"
        )
    return rule or own


def _check_type(name: str, value: object, kind: type) -> None:
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {value!r}")
