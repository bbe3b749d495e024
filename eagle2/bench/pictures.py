"""A benchmark's figures, as HTML pages that need no network: the edge where `visual` comes in.

What nodes are worth is read off recorded rounds, which are run apart from the measurements: recording takes time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from eagle2.bench.measure import first_prompts
from eagle2.bench.plan import Plan
from eagle2.bench.results import Phases, Result
from eagle2.bench.work import Question
from eagle2.trace.rounds import Round
from visual import figures
from visual.figures import benchmark

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from eagle2.decoding.engine import Engine

RECORDED = "eagle2"
"""The method whose rounds are recorded."""


def recorded(engine: Engine, plan: Plan, questions: Sequence[Question]) -> list[Round]:
    """All rounds of EAGLE-2's answers to first turns, one run after another, at the plan's first temperature."""
    sampling = plan.sampling(plan.temperatures[0])
    rounds: list[Round] = []
    for ids in tqdm(first_prompts(engine, questions), unit="prompt", desc="recording"):
        rounds += engine.rounds(ids, plan.shape, sampling, plan.max_new_tokens, RECORDED)
    return rounds


def pages(made: Sequence[Result], phases: Sequence[Phases], rounds: Sequence[Round]) -> dict[str, go.Figure]:
    """File names and figures. rounds: recorded; may be empty, and those that need them are then left out."""
    drawn = {
        "time-by-method": benchmark.time_by_method(phases),
        "gain-by-nodes": benchmark.gain_by_nodes(made, phases),
    }
    if rounds:
        drawn["acceptance-by-position"] = figures.acceptance_by_position(rounds)
        drawn["reliability"] = figures.reliability(rounds)
        drawn["tau-by-max-nodes"] = figures.tau_by_max_nodes(rounds)
    return drawn


def write(folder: Path, drawn: dict[str, go.Figure]) -> None:
    """One file each; plotly's script goes once beside them."""
    for name, figure in drawn.items():
        figure.write_html(folder / f"{name}.html", include_plotlyjs="directory")
