"""`python -m eagle2 bench`: measure tau and speed on this machine, or check it."""

from __future__ import annotations

import argparse

from eagle2.bench.plan import add_options


def add(commands: argparse._SubParsersAction) -> None:
    """The command's options."""
    parser = commands.add_parser("bench", help="measure tau and speed on this machine, as the paper's tables do")
    parser.set_defaults(run=run)
    add_options(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, or check this device."""
    if options.selftest:
        from eagle2.bench.selftest import run as command
    else:
        from eagle2.bench.command import run as command

    command(options)
