"""Pure functions from a Round, rounds or a Trace to a Plotly figure. No Gradio, no torch, no state."""

from visual.figures.mask import mask
from visual.figures.over_rounds import (
    acceptance_by_position,
    accepted_against_predicted,
    reliability,
    tau_by_max_nodes,
    values_by_fate,
)
from visual.figures.per_round import time_split, tokens_per_round
from visual.figures.training import training
from visual.figures.tree import tree
from visual.figures.values import values

__all__ = [
    "acceptance_by_position",
    "accepted_against_predicted",
    "mask",
    "reliability",
    "tau_by_max_nodes",
    "time_split",
    "tokens_per_round",
    "training",
    "tree",
    "values",
    "values_by_fate",
]
