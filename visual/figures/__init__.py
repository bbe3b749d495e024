"""Pure functions from a Round or Trace to a Plotly figure. No Gradio, no torch, no state."""

from visual.figures.mask import mask
from visual.figures.statistics import time_split, tokens_per_round
from visual.figures.tree import tree
from visual.figures.values import values

__all__ = ["mask", "time_split", "tokens_per_round", "tree", "values"]
