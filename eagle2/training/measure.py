"""`python -m eagle2 measure`: heads against one another on real questions, greedily, in one run.

What a head is for: tau, acceptance by depth, and whether its confidences can be believed (EAGLE-2, figure 6). The text
is the target's, whatever drafts, so it is written once, the quickest way; every head is then replayed over it: its
rounds are those that decoding would have had, without the target's passes.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from eagle2 import checkpoint, embedded, hub, loading, metrics, statistics
from eagle2.bench.measure import first_prompt
from eagle2.bench.work import Question, read
from eagle2.config import AUTO, TreeShape
from eagle2.engine import Engine
from eagle2.head import EagleHead
from eagle2.target import Target
from eagle2.trace import Round
from eagle2.training.replay import replay

Chat = tuple[np.ndarray, np.ndarray, int]
"""Ids [n], features float32 [n, hidden], index of the first answer token."""
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Bins of confidence; the outer two are those that a tree's shape hangs on."""


@dataclass(frozen=True)
class Report:
    """tau: bonus included, the prefill's token not counted. by_depth: (walks that could choose there, those that did).

    reliability: bins of (lowest confidence, count, share that the target chose).
    """

    tau: float
    by_family: dict[str, float]
    by_depth: list[tuple[int, int]]
    reliability: list[tuple[float, int, float | None]]


def answer(engine: Engine, questions: Sequence[Question], max_new_tokens: int) -> list[Chat]:
    """The target's greedy answer to each question's first turn."""
    answers = []
    for question in _told(questions, "decoding"):
        prompt = first_prompt(engine, question)
        rounds = engine.rounds(prompt, max_new_tokens=max_new_tokens, policy=AUTO, record=False)
        ids = prompt + [token for r in rounds for token in r.committed]
        features, _ = engine.target.extend(engine.target.begin(), ids)
        answers.append((np.array(ids), features.float().cpu().numpy(), len(prompt)))
    return answers


def _told(items: Sequence, what: str) -> tqdm:
    return tqdm(items, what, unit="question", mininterval=1.0 if sys.stderr.isatty() else 60.0, miniters=1)


def report(questions: Sequence[Question], runs: Sequence[Sequence[Round]]) -> Report:
    """All runs as one: every target pass counts the same, whatever question it belongs to."""
    rounds = [r for run in runs for r in run]
    families: dict[str, list[Round]] = {}
    for question, run in zip(questions, runs, strict=True):
        families.setdefault(question.family, []).extend(run)
    return Report(
        tau=metrics.tau(rounds) or 0.0,
        by_family={name: metrics.tau(found) or 0.0 for name, found in families.items()},
        by_depth=metrics.acceptance_by_depth(rounds),
        reliability=[(b.low, b.count, b.share) for b in statistics.reliability(rounds, EDGES)],
    )


def run(options: argparse.Namespace) -> None:
    """Measure each head on the same questions; a table on stdout, everything in --json."""
    if options.every < 1:
        raise ValueError(f"--every is {options.every}; it must be at least 1")
    if options.json and not options.json.absolute().parent.is_dir():
        raise ValueError(f"the report cannot be written: {options.json.parent} is no folder")
    asked = read(options.questions)[:: options.every]
    shape = TreeShape(options.top_k, options.depth, options.max_nodes)
    first, *others = options.head or [str(embedded.HEAD)]
    engine = loading.load(options.target, first, options.device, options.dtype)
    target = engine.target
    heads = {first: engine.drafter.head}
    heads |= {name: another_head(target, name) for name in others}  # all of them before any takes its time
    questions = [question for question in asked if len(first_prompt(engine, question)) < target.context_limit]
    if len(questions) < len(asked):
        print(f"note: {len(asked) - len(questions)} of {len(asked)} questions fill the context and are left out")
    answers = answer(engine, questions, options.max_new_tokens)
    reports = {}
    for name, head in heads.items():
        head = head.to(target.device)
        runs = [replay(target, head, [chat], shape, options.max_new_tokens) for chat in _told(answers, "replaying")]
        reports[name] = report(questions, runs)
        print("\n".join(told(name, reports[name])), flush=True)
    if options.json:
        options.json.write_text(json.dumps({name: vars(r) for name, r in reports.items()}, indent=2), encoding="utf-8")


def another_head(target: Target, name: str) -> EagleHead:
    """A further head for the target. Raises ValueError where it reads other hidden states than the first one."""
    folder, _ = hub.fetch_head(name)
    head = checkpoint.load_head(folder, target.hidden_size, target.vocab_size, target.dtype, target.layers)
    if tuple(head.states) != tuple(target.states):
        raise ValueError(f"{name} reads other hidden states of the target than the first head; measure it by itself")
    return head


def told(name: str, found: Report) -> Iterable[str]:
    """A report as lines of text."""
    yield f"{name}: tau {found.tau:.3f}"
    yield "  tau by family: " + ", ".join(f"{family} {tau:.2f}" for family, tau in found.by_family.items())
    yield "  accepted by depth: " + ", ".join(f"{took / max(1, tried):.2f}" for tried, took in found.by_depth)
    bins = (f"{low:g}+ {'none' if share is None else f'{share:.1%}'} of {n:,}" for low, n, share in found.reliability)
    yield "  accepted by confidence: " + ", ".join(bins)
