"""`python -m eagle2 measure`: heads compared in one run, on real questions or on held-out chats.

It reports tau, acceptance by depth, and whether confidences can be trusted (EAGLE-2, figure 6). The text is the
target's, whatever drafts, so questions are answered once, greedily, and chats already have their answers. Every head is
then replayed over the text: its rounds are those of real decoding, without the target's passes.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from eagle2.analysis import metrics, statistics
from eagle2.bench.measure import first_prompt
from eagle2.bench.work import Question, read
from eagle2.decoding.engine import Engine
from eagle2.loading import bundled_pair, head_files, hub
from eagle2.loading import load as loading
from eagle2.methods import AUTO
from eagle2.models.eagle_head import EagleHead
from eagle2.models.target import Target
from eagle2.settings import TreeShape
from eagle2.trace.rounds import Round
from eagle2.training.corpus import HELD_OUT, held_out
from eagle2.training.data import Chats, chat_files, load_chats
from eagle2.training.replay import replay

Chat = tuple[np.ndarray, np.ndarray, int]
"""Ids [n], features float32 [n, hidden], index of the first answer token."""
EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Bins of confidence; the outer two are those that a tree's shape hangs on."""


@dataclass(frozen=True)
class Report:
    """tau: bonus included, the prefill's token not counted. by_depth: (walks that could choose there, those that did).

    reliability: bins of (lowest confidence, count, share that the target chose, mean confidence).
    calibration_error: the mean distance of the last two.
    """

    tau: float
    by_family: dict[str, float]
    by_depth: list[tuple[int, int]]
    reliability: list[tuple[float, int, float | None, float | None]]
    calibration_error: float | None


def answer(engine: Engine, questions: Sequence[Question], max_new_tokens: int) -> list[Chat]:
    """The target's greedy answer to each question's first turn."""
    answers: list[Chat] = []
    for question in _told(questions, "decoding"):
        prompt = first_prompt(engine, question)
        rounds = engine.rounds(prompt, max_new_tokens=max_new_tokens, policy=AUTO, record=False)
        ids = prompt + [token for r in rounds for token in r.committed]
        answers.append(_chat(engine.target, ids, len(prompt)))
    return answers


def held_out_chats(target: Target, chats: Chats, every: int) -> tuple[list[str], list[Chat]]:
    """One in `every` of the chats that training holds out, to the end of their first answer; each one's temperature,
    in words, is its family. Raises ValueError where there are none.
    """
    families, found = [], []
    for ids, start, temperature in zip(chats, chats.answer_start, chats.temperature, strict=True):
        if held_out(ids[:start]):
            ends = [int(start) + i + 1 for i, token in enumerate(ids[start:].tolist()) if token in target.end_ids]
            families.append(f"temperature {temperature:g}")
            found.append((ids[: min(ends, default=len(ids))].tolist(), int(start)))
    if not found:
        raise ValueError(
            f"none of these {len(chats)} chats is held out (one prompt in {HELD_OUT} is); give more of them"
        )
    return families[::every], [_chat(target, *chat) for chat in _told(found[::every], "reading")]


def _chat(target: Target, ids: list[int], answer_start: int) -> Chat:
    features, _ = target.extend(target.begin(), ids)
    return np.array(ids), features.float().cpu().numpy(), answer_start


def _told(items: Sequence, what: str) -> tqdm:
    return tqdm(items, what, unit="text", mininterval=1.0 if sys.stderr.isatty() else 60.0, miniters=1)


def report(families: Sequence[str], runs: Sequence[Sequence[Round]]) -> Report:
    """All runs as one: every target pass counts the same, whatever it answers. families: of each run."""
    rounds = [r for run in runs for r in run]
    by_family: dict[str, list[Round]] = {}
    for family, run in zip(families, runs, strict=True):
        by_family.setdefault(family, []).extend(run)
    bins = statistics.reliability(rounds, EDGES)
    return Report(
        tau=metrics.tau(rounds) or 0.0,
        by_family={name: metrics.tau(found) or 0.0 for name, found in by_family.items()},
        by_depth=metrics.acceptance_by_depth(rounds),
        reliability=[(b.low, b.count, b.share, b.confidence) for b in bins],
        calibration_error=statistics.calibration_error(bins),
    )


def run(options: argparse.Namespace) -> None:
    """Measure each head on the same texts; a table on stdout, everything in --json."""
    if options.every < 1:
        raise ValueError(f"--every is {options.every}; it must be at least 1")
    if options.json and not options.json.absolute().parent.is_dir():
        raise ValueError(f"the report cannot be written: {options.json.parent} is no folder")
    read_texts = _questions(options) if options.questions else _chats(options)
    shape = TreeShape(options.top_k, options.depth, options.max_nodes)
    first, *others = options.head or [str(bundled_pair.HEAD)]
    engine = loading.load(options.target, first, options.device, options.dtype)
    target = engine.target
    heads = {first: engine.drafter.head}
    heads |= {name: another_head(target, name) for name in others}  # all of them before any takes its time
    families, answers = read_texts(engine)
    reports = {}
    for name, head in heads.items():
        head = head.to(target.device)
        runs = [replay(target, head, [chat], shape, options.max_new_tokens) for chat in _told(answers, "replaying")]
        reports[name] = report(families, runs)
        print("\n".join(told(name, reports[name])), flush=True)
    if options.json:
        options.json.write_text(json.dumps({name: vars(r) for name, r in reports.items()}, indent=2), encoding="utf-8")


def _questions(options: argparse.Namespace) -> Callable[[Engine], tuple[list[str], list[Chat]]]:
    """Reads the file and returns a function that answers its questions. Mistakes are reported before models load."""
    asked = read(options.questions)[:: options.every]

    def texts(engine: Engine) -> tuple[list[str], list[Chat]]:
        questions = [q for q in asked if len(first_prompt(engine, q)) < engine.target.context_limit]
        if len(questions) < len(asked):
            print(f"note: {len(asked) - len(questions)} of {len(asked)} questions fill the context and are left out")
        return [q.family for q in questions], answer(engine, questions, options.max_new_tokens)

    return texts


def _chats(options: argparse.Namespace) -> Callable[[Engine], tuple[list[str], list[Chat]]]:
    """Reads the shards and returns a function that takes the held-out chats."""
    chats = load_chats(path for given in options.data for path in chat_files(given))
    return lambda engine: held_out_chats(engine.target, chats, options.every)


def another_head(target: Target, name: str) -> EagleHead:
    """A further head for the target. Raises ValueError where it reads other hidden states than the first one."""
    folder, _ = hub.fetch_head(name)
    head = head_files.load_head(folder, target.hidden_size, target.vocab_size, target.dtype, target.layers)
    if tuple(head.states) != tuple(target.states):
        raise ValueError(f"{name} reads other hidden states of the target than the first head; measure it by itself")
    return head


def told(name: str, found: Report) -> Iterable[str]:
    """A report as lines of text."""
    yield f"{name}: tau {found.tau:.3f}"
    yield "  tau by family: " + ", ".join(f"{family} {tau:.2f}" for family, tau in found.by_family.items())
    yield "  accepted by depth: " + ", ".join(f"{took / max(1, tried):.2f}" for tried, took in found.by_depth)
    bins = (
        f"{low:g}+ {'none' if share is None else f'{share:.1%}'} of {n:,}" for low, n, share, _ in found.reliability
    )
    yield "  accepted by confidence: " + ", ".join(bins)
    if found.calibration_error is not None:
        yield f"  confidence and share accepted are {found.calibration_error:.3f} apart in the mean"
