"""The recorded runs that the page shows before any model is loaded, made again by `python -m eagle2 record`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eagle2.decoding.engine import Engine
from eagle2.examples import paper_figures
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "traces"
SMALL = TreeShape(top_k=8, depth=5, max_nodes=16)
PAPER = TreeShape(top_k=10, depth=6, max_nodes=59)


@dataclass(frozen=True)
class Recording:
    """What to record. begun: how the answer begins, given as part of the prompt."""

    name: str
    prompt: str
    begun: str = ""
    shape: TreeShape = SMALL
    sampling: Sampling = field(default_factory=Sampling)
    max_new_tokens: int = 48


RECORDINGS = (
    Recording("pancakes", "Give me a recipe for pancakes.", shape=PAPER, max_new_tokens=40),
    Recording("counting", "Count from 1 to 20.", "1, 2, 3, 4,", max_new_tokens=40),
    Recording("ten-plus-two", "What is 10+2?", "10+2", max_new_tokens=12),
    Recording("ten-plus-two-equals", "What is 10+2?", "10+2=", max_new_tokens=12),
    Recording("code", "Write a Python function that adds two numbers.", max_new_tokens=64),
    Recording("list", "List the planets of the solar system.", max_new_tokens=56),
    Recording("story-at-temperature-1", "Tell me a short story about a fox.", sampling=Sampling(1.0, seed=1)),
)


def record(engine: Engine, folder: Path = FOLDER, method: str = "eagle2", drafter: str | None = None) -> Iterator[Path]:
    """Make every recording again, one file each, and the worked examples; yields each file as it is written."""
    folder.mkdir(parents=True, exist_ok=True)
    yield from paper_figures.write(folder)
    for wanted in RECORDINGS:
        messages = [{"role": "user", "content": wanted.prompt}]
        ids = engine.encode_chat(messages) + engine.encode_answer(wanted.begun)
        s = Settings(method, wanted.shape, wanted.sampling, wanted.max_new_tokens, drafter=drafter)
        rounds = list(engine.run(ids, s))
        if wanted.begun:
            messages.append({"role": "assistant", "content": wanted.begun})
        path = folder / f"{wanted.name}.json.gz"
        trace_files.save(engine.trace(ids, rounds, s, messages), path)
        yield path
