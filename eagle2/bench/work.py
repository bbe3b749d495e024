"""The questions of a benchmark: our own in assets/prompts, or a JSONL file in Spec-Bench's layout. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROMPTS = Path(__file__).resolve().parents[2] / "assets" / "prompts"
FAMILIES = ("chat", "code", "maths", "instructions", "summarising", "questions")
"""Our own families, like the paper's MT-bench, HumanEval, GSM8K, Alpaca, CNN/DM and Natural Questions."""

MT_BENCH = frozenset(("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"))
"""Spec-Bench counts MT-bench's eight categories as one family."""


@dataclass(frozen=True)
class Question:
    """turns: what the user says, one turn after another."""

    id: str
    family: str
    turns: tuple[str, ...]


def own() -> list[Question]:
    """Our own questions, family by family."""
    return [question for family in FAMILIES for question in read(PROMPTS / f"{family}.jsonl")]


def read(path: Path) -> list[Question]:
    """Questions from lines of {"question_id", "category", "turns"}. Raises ValueError naming file and line."""
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            questions.append(_question(line, f"line {number} of {path}"))
    if not questions:
        raise ValueError(f"{path} holds no question")
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise ValueError(f"{path} has question_id {twice} more than once")
    return questions


def _question(line: str, where: str) -> Question:
    try:
        body = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON ({error})") from error
    wanted = '{"question_id": ..., "category": "...", "turns": ["...", ...]}'
    if not isinstance(body, dict) or not {"question_id", "category", "turns"} <= body.keys():
        raise ValueError(f"{where} is no question; wanted is {wanted}")
    category, turns = body["category"], body["turns"]
    if not isinstance(category, str) or not isinstance(turns, list) or not turns:
        raise ValueError(f"{where} is no question; wanted is {wanted}")
    if not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise ValueError(f"{where} has a turn that is no text; wanted is {wanted}")
    return Question(str(body["question_id"]), "mt-bench" if category in MT_BENCH else category, tuple(turns))


def every(questions: Sequence[Question], step: int) -> list[Question]:
    """The first question of each family and every `step`-th one after it, in the order given."""
    if step < 1:
        raise ValueError(f"--every is {step}; it must be at least 1")
    seen: dict[str, int] = {}
    chosen = []
    for question in questions:
        place = seen.get(question.family, 0)
        seen[question.family] = place + 1
        if place % step == 0:
            chosen.append(question)
    return chosen


def one_each(questions: Sequence[Question]) -> list[Question]:
    """The first question of each family, first turns only."""
    first = {question.family: question for question in reversed(questions)}
    chosen = [question for question in questions if first[question.family] is question]
    return [Question(question.id, question.family, question.turns[:1]) for question in chosen]
