"""`python -m eagle2 record`: make the page's recorded runs again, with the default pair."""

from __future__ import annotations

import argparse
from pathlib import Path

from eagle2.cli.generate import summary
from eagle2.cli.options import DRAFT_MODEL_HELP, DTYPE_HELP, add_method_options, chosen_method
from eagle2.settings import Settings
from eagle2.trace import files as trace_files


def add(commands: argparse._SubParsersAction) -> None:
    """The command's options."""
    parser = commands.add_parser("record", help="make the page's recorded runs again, with the default pair")
    parser.set_defaults(run=run)
    add_method_options(parser)
    parser.add_argument("--draft-model", help=DRAFT_MODEL_HELP)
    parser.add_argument("--out", metavar="FOLDER", help="where to write them (default: where the page looks)")
    parser.add_argument("--device", default="auto", help="where the models run (default: %(default)s)")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def run(options: argparse.Namespace) -> None:
    """Write assets/traces anew, or the same prompts' runs by another method elsewhere."""
    method, drafter = chosen_method(options)
    if (method, drafter) != (Settings().policy, None) and not options.out:
        raise ValueError(f"the page's recordings are made by {Settings().policy}; give --out, a folder for others")

    import eagle2
    from eagle2.examples import recordings

    engine = eagle2.load(device=options.device, dtype=options.dtype, draft_model=options.draft_model)
    for path in recordings.record(engine, Path(options.out or recordings.FOLDER), method, drafter):
        trace = trace_files.load(path)
        print(f"{path.name}: {summary(trace.rounds)}", flush=True)
