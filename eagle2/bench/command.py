"""`python -m eagle2 bench`: loads models, measures with a progress bar, prints tables, writes JSON and figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
import transformers
from tqdm import tqdm

import eagle2
from eagle2.bench import bookkeeping, measure, work
from eagle2.bench.partial import Partial
from eagle2.bench.plan import TRANSFORMERS, Plan, make_plan
from eagle2.bench.records import Measurement
from eagle2.bench.results import Result, phases, results
from eagle2.bench.table import overhead_table, table, time_table
from eagle2.decoding.engine import Engine
from eagle2.fingerprint import fingerprint
from eagle2.trace.rounds import Round
from eagle2.tree_paths import to_text

RECORDED = "eagle2"
"""The method whose rounds are recorded for the figures."""


def run(options: argparse.Namespace) -> None:
    """The whole command. `options.figures`: (results, phases, recorded rounds) -> figures by file name.

    Raises ValueError or OSError in one sentence; what can be checked before loading is.
    """
    plan = make_plan(options)
    questions = chosen_questions(options)
    if options.json and not options.json.absolute().parent.is_dir():
        raise ValueError(f"the results cannot be written: {options.json.parent} is no folder")
    engine = eagle2.load(options.target, options.head, options.device, options.dtype, options.draft_model)
    if engine.tokenizer is None:
        raise ValueError(f"{engine.pair.target} has no tokenizer, so no question can be put to it")
    if options.methods is None:
        plan = replace(plan, methods=tuple(m for m in plan.methods if measure.can_run(engine, m)))
    for method in plan.methods:
        if method.name != TRANSFORMERS:
            engine.policy(method.tree, plan.shape_of(method))  # raises where its drafter is not loaded
    partial = Partial(options.out, heading(engine, plan, questions)) if options.out else None
    measurements = measured(engine, plan, questions, partial)
    made = results(measurements)
    if not made:
        raise ValueError("nothing was decoded: every answer ended with its first token")
    spent = phases(measurements)
    print(table(made), time_table(spent), sep="\n\n", flush=True)
    costs = bookkeeping.overheads(engine, plan, measure.first_prompts(engine, work.one_each(questions)))
    tree_ms = bookkeeping.large_tree_ms(engine.target.device)
    print("\n" + overhead_table(costs, bookkeeping.LARGE.max_nodes, tree_ms), flush=True)
    if options.json:
        where = machine(engine, plan) | {f"tree_of_{bookkeeping.LARGE.max_nodes}_ms": tree_ms}
        for cost in costs:
            where |= {f"{cost.method} outside": cost.outside, f"{cost.method} recording": cost.recording}
        options.json.write_text(to_json(made, where), encoding="utf-8")
    if options.out:
        names = {method.name for method in plan.methods}
        rounds = recorded(engine, plan, questions) if RECORDED in names else []
        for name, figure in options.figures(made, spent, rounds).items():  # plotly's script goes once beside them
            figure.write_html(options.out / f"{name}.html", include_plotlyjs="directory")


def recorded(engine: Engine, plan: Plan, questions: Sequence[work.Question]) -> list[Round]:
    """All rounds of EAGLE-2's answers to first turns, one run after another, at the plan's first temperature.

    They are run apart from the measurements, since recording takes time.
    """
    sampling = plan.sampling(plan.temperatures[0])
    rounds: list[Round] = []
    for ids in tqdm(measure.first_prompts(engine, questions), unit="prompt", desc="recording"):
        rounds += engine.rounds(ids, plan.shape, sampling, plan.max_new_tokens, RECORDED)
    return rounds


def chosen_questions(options: argparse.Namespace) -> list[work.Question]:
    questions = work.read(options.questions) if options.questions else work.own()
    if options.every is not None:
        questions = work.every(questions, options.every)
    return work.one_each(questions) if options.quick else questions


def measured(engine: Engine, plan: Plan, questions: list[work.Question], partial: Partial | None) -> list[Measurement]:
    """All measurements: those that an earlier, stopped run left, and the others now."""
    done = partial.load() if partial else []
    known = {measurement.trial for measurement in done}
    measurements: list[Measurement] = []
    with tqdm(total=measure.count(plan, questions), unit="prompt", desc="bench") as bar:
        for trial in measure.measure(engine, plan, questions, done):
            if partial and trial[0].trial not in known:
                partial.add(trial)
            measurements += trial
            bar.set_postfix_str(f"{trial[0].trial.family}, temperature {trial[0].trial.temperature:g}")
            bar.update()
        left_out = bar.total - bar.n
    if left_out:
        limit = engine.target.context_limit
        print(f"note: {left_out} of {bar.total} trials were left out: their prompts fill the context of {limit} tokens")
    return measurements


def heading(engine: Engine, plan: Plan, questions: list[work.Question]) -> dict[str, object]:
    """What must be the same for measurements to belong together."""
    return {
        "pair": asdict(engine.pair),
        "head": fingerprint(_weights(engine.pair.head)),
        "methods": [f"{m.label} {to_text(m.paths)}" if m.paths else m.label for m in plan.methods],
        "temperatures": plan.temperatures,
        "shape": asdict(plan.shape),
        "max_new_tokens": plan.max_new_tokens,
        "repeats": plan.repeats,
        "seed": plan.seed,
        "questions": [question.id for question in questions],
        "texts": fingerprint(turn.encode() for question in questions for turn in question.turns),
        "threads": torch.get_num_threads(),
    }


def _weights(head: str | None) -> Iterator[bytes]:
    """The files of a head in a folder, which may be trained on in place."""
    folder = Path(head).expanduser() if head else None
    if folder and folder.is_dir():
        yield from (path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())


def machine(engine: Engine, plan: Plan) -> dict[str, object]:
    """Where and with what was measured."""
    pair, device = engine.pair, engine.target.device
    return {
        "device": pair.device,
        "processor": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": pair.dtype,
        "target": pair.target,
        "head": pair.head or "none",
        "draft_model": pair.draft_model or "none",
        "max_new_tokens": plan.max_new_tokens,
        "repeats": plan.repeats,
        "seed": plan.seed,
        **{method.label: to_text(method.paths) for method in plan.methods if method.paths},
        **asdict(plan.shape),
    }


def processor() -> str:
    """The CPU's own name where the system tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine() or "unknown")


def to_json(made: list[Result], where: dict[str, object]) -> str:
    """{"results": [...], "machine": {...}}: numbers, booleans and names, never null."""
    return (
        json.dumps({"results": [asdict(result) for result in made], "machine": where}, indent=1, allow_nan=False) + "\n"
    )
