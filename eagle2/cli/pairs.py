"""`python -m eagle2 pairs`: known public targets and heads, and whether they fit here."""

from __future__ import annotations

import argparse

from eagle2.cli.options import DTYPE_HELP


def add(commands: argparse._SubParsersAction) -> None:
    """The command's options."""
    parser = commands.add_parser("pairs", help="list known public targets and heads, and whether they fit here")
    parser.set_defaults(run=run)
    parser.add_argument("--device", default="auto", help="the device whose memory counts (default: %(default)s)")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def run(options: argparse.Namespace) -> None:
    """Print the registry."""
    from eagle2.loading import known_pairs
    from eagle2.loading import load as loading
    from eagle2.models import memory

    device = loading.choose_device(options.device)
    dtype = str(loading.choose_dtype(options.dtype, device)).removeprefix("torch.")
    print(known_pairs.listing(dtype, memory.free_bytes(device)))
