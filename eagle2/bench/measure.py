"""The procedure: every method on every question, side by side, timed apart from prefill and checked token by token.

A trial is one prompt at one temperature: all methods answer it one after another, so that a noisy machine hurts all
alike; who begins changes with the question and the repeat. The device is waited for before the clock is read. The first
answers of a process are thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList
from transformers.generation.streamers import BaseStreamer

from eagle2.analysis import metrics
from eagle2.bench.plan import TRANSFORMERS, Method, Plan
from eagle2.bench.records import Measurement, Timed, Trial
from eagle2.bench.work import Question
from eagle2.decoding.clock import Clock
from eagle2.decoding.engine import Engine
from eagle2.decoding.sampling import drawer
from eagle2.methods import WALK
from eagle2.settings import Sampling

WARM_UP_TOKENS = 8


def measure(
    engine: Engine, plan: Plan, questions: Sequence[Question], done: Sequence[Measurement] = ()
) -> Iterator[list[Measurement]]:
    """All trials in order, each as one list of measurements, plain first; those that `done` holds are not run again."""
    known: dict[Trial, list[Measurement]] = {}
    for measurement in done:
        known.setdefault(measurement.trial, []).append(measurement)
    warm = False
    for place, question in enumerate(questions):
        for temperature in plan.temperatures:
            prompt: list[int] = []
            answer: tuple[int, ...] = ()
            for turn in range(len(question.turns)):
                prompt = _prompt(engine, question, turn, [*prompt, *answer])
                if len(prompt) >= engine.target.context_limit:
                    break  # what was said so far fills the context
                for repeat in range(plan.repeats):
                    trial = Trial(question.id, question.family, turn, temperature, repeat)
                    found = known.get(trial)
                    if found is None:
                        if not warm:
                            warm_up(engine, plan, prompt)
                            warm = True
                        found = run_trial(engine, plan, prompt, trial, shift=place + repeat)
                    yield found
                    answer = found[0].timed.ids


def count(plan: Plan, questions: Sequence[Question]) -> int:
    """How many trials there are, if every conversation fits into the context."""
    return sum(len(question.turns) for question in questions) * len(plan.temperatures) * plan.repeats


def first_prompt(engine: Engine, question: Question) -> list[int]:
    """Ids of the first turn's prompt."""
    return engine.encode_chat([{"role": "user", "content": question.turns[0]}])


def first_prompts(engine: Engine, questions: Sequence[Question]) -> list[list[int]]:
    """The prompts of first turns; those that fill the context are left out."""
    prompts = [first_prompt(engine, question) for question in questions]
    return [prompt for prompt in prompts if len(prompt) < engine.target.context_limit]


def can_run(engine: Engine, method: Method) -> bool:
    """Whether the models it needs are loaded."""
    return method.name in ("plain", TRANSFORMERS) or engine.drafter_of(method.tree) is not None


def _prompt(engine: Engine, question: Question, turn: int, before: list[int]) -> list[int]:
    """Ids of a turn's prompt. before: the ids of the turns before it, as plain decoding answered them."""
    if turn == 0:
        return first_prompt(engine, question)
    return engine.encode_follow_up([{"role": "user", "content": question.turns[0]}], before, question.turns[turn])


def order(methods: Sequence[Method], shift: int) -> list[Method]:
    """The methods in turn, begun at another one each time."""
    start = shift % len(methods)
    return [*methods[start:], *methods[:start]]


def run_trial(engine: Engine, plan: Plan, prompt: list[int], trial: Trial, shift: int) -> list[Measurement]:
    """All methods' answers to one prompt, checked against plain decoding's; in the plan's order, plain first."""
    sampling = plan.sampling(trial.temperature)
    answers = {
        method.label: timed(engine, method, plan, prompt, sampling, plan.max_new_tokens)
        for method in order(plan.methods, shift)
    }
    plain = answers["plain"].ids
    room = min(plan.max_new_tokens, engine.target.context_limit - len(prompt))
    measurements = []
    for method in plan.methods:
        answer = answers[method.label]
        lossless, near_ties = compare(engine, prompt, answer.ids, plain, sampling, room)
        measurements.append(Measurement(trial, method.label, answer, lossless, near_ties))
    return measurements


def warm_up(engine: Engine, plan: Plan, prompt: list[int]) -> None:
    """A few tokens by every method, thrown away: first calls allocate, compile and time themselves."""
    for temperature in plan.temperatures:
        for method in plan.methods:
            timed(engine, method, plan, prompt, plan.sampling(temperature), WARM_UP_TOKENS)


def compare(
    engine: Engine, prompt: Sequence[int], ids: Sequence[int], plain: Sequence[int], sampling: Sampling, room: int
) -> tuple[bool, int]:
    """Whether `ids` are what plain decoding writes after `prompt` and end where it would; and how many near-ties.

    Equal to plain decoding's own answer is all that is needed. Where rounding has led to another text, each of its
    tokens is scored where plain decoding would have drawn it. room: new ids that caps leave.
    """
    if tuple(ids) == tuple(plain):
        return True, 0
    verdict = engine.check(prompt, ids, sampling)
    ends = engine.target.end_ids
    ended = len(ids) == room or ids[-1] in ends
    return verdict.lossless and ended and not ends & set(ids[:-1]), len(verdict.near_ties)


def timed(
    engine: Engine, method: Method, plan: Plan, prompt: list[int], sampling: Sampling, max_new_tokens: int
) -> Timed:
    """One answer of one method."""
    if method.name == "plain":
        return _stamped(engine, lambda stamp: engine.plain(prompt, sampling, max_new_tokens, stop=stamp))
    if method.name == TRANSFORMERS:
        room = min(max_new_tokens, engine.target.context_limit - len(prompt))
        return _stamped(engine, lambda stamp: _generate(engine, prompt, sampling, room, stamp))
    clock = Clock(engine.target.device)
    # "sps" draws as all others do, so that its text can be checked token by token as theirs is.
    rounds = list(
        engine.rounds(prompt, plan.shape_of(method), sampling, max_new_tokens, method.tree, record=False, rule=WALK)
    )
    clock.lap("rest")
    prefill, draft, verify = (
        sum(getattr(r, f"{phase}_ms") for r in rounds) for phase in ("prefill", "draft", "verify")
    )
    return Timed(
        ids=tuple(token for r in rounds for token in r.committed),
        tokens=metrics.decoded(rounds),
        passes=metrics.passes(rounds),
        nodes=sum(r.kept for r in rounds),
        prefill_ms=prefill,
        draft_ms=draft,
        verify_ms=verify,
        rest_ms=clock.spent_ms["rest_ms"] - prefill - draft - verify,  # all else that the caller waited for
    )


def _stamped(engine: Engine, decode: Callable[[Callable[[object], None]], Sequence[int]]) -> Timed:
    """A decoder of one token a pass, which calls what it is given after each token: its first ends the prefill."""
    stamps: list[float] = []

    def stamp(_: object) -> None:
        stamps.append(time.perf_counter() * 1e3)  # the token is on the host by then, so the device is done

    Clock(engine.target.device)  # waits for the device
    start = time.perf_counter() * 1e3
    ids = decode(stamp)
    return Timed(tuple(ids), len(ids) - 1, len(ids) - 1, 0, stamps[0] - start, 0.0, stamps[-1] - stamps[0], 0.0)


def _generate(
    engine: Engine, prompt: list[int], sampling: Sampling, room: int, stamp: Callable[[object], None]
) -> list[int]:
    """Transformers' own loop on the same model, with the same stops and caps.

    Above temperature 0 a logits processor gives it our draws: its own distribution, our noise, so that its text can
    be checked token by token as well.
    """
    model, ends = engine.target.model, sorted(engine.target.end_ids)
    settings = GenerationConfig(
        max_new_tokens=room,
        do_sample=False,
        num_beams=1,
        repetition_penalty=1.0,  # a model's own generation config must not change the text
        no_repeat_ngram_size=0,
        eos_token_id=ends or None,
        pad_token_id=ends[0] if ends else 0,
    )
    ids = torch.tensor([prompt], device=engine.target.device)
    processors = LogitsProcessorList([] if sampling.greedy else [_KeyedDraw(sampling)])
    with torch.inference_mode():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=processors,
            streamer=_Stamps(stamp),
        )
    return out[0, len(prompt) :].tolist()


class _KeyedDraw(LogitsProcessor):
    """Leaves the one token that our sampling draws at this position."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        token = drawer(scores.float(), self.sampling, [input_ids.shape[1]])(0).token
        only = torch.full_like(scores, -torch.inf)
        only[0, token] = 0
        return only


class _Stamps(BaseStreamer):
    """Calls `stamp` for every new token; the prompt, which comes first, is no new token."""

    def __init__(self, stamp: Callable[[object], None]) -> None:
        self._stamp = stamp
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        if self._prompt_seen:
            self._stamp(value)
        self._prompt_seen = True

    def end(self) -> None:
        pass
