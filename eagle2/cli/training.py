"""The commands of eagle2/training: data, train, cut, measure."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module

from eagle2.training.options import add_cut_options, add_data_options, add_measure_options, add_train_options


def add(commands: argparse._SubParsersAction) -> None:
    """The commands of eagle2/training, each a module there, imported when it is run."""
    for name, module, about, add_options in (
        ("data", "data", "write the target's own chats, to train a head on", add_data_options),
        ("train", "train", "train an EAGLE head on a target's own chats", add_train_options),
        ("cut", "cut", "let a head propose fewer tokens, or others, without training", add_cut_options),
        ("measure", "evaluate", "tau, acceptance by depth and calibration of one or more heads", add_measure_options),
    ):
        parser = commands.add_parser(name, help=about)
        parser.set_defaults(run=partial(_run, module))
        add_options(parser)


def _run(module: str, options: argparse.Namespace) -> None:
    import_module(f"eagle2.training.{module}").run(options)
