"""The command line: python -m eagle2 COMMAND [options]. Each command is a module of `eagle2.cli`."""

from __future__ import annotations

import argparse
import sys

from eagle2.cli import bench, generate, pairs, record, training

COMMANDS = (generate, record, pairs, training, bench)
"""Modules with an `add(commands)`, which adds the command's options and names the function that runs it."""


def benchmark_figures(*results: object) -> dict:
    """What `bench` draws. Here, at the edge, the engine's command line meets the pictures; nothing else here does."""
    from visual.figures.benchmark import pages

    return pages(*results)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 with one sentence on stderr for what the user can mend."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # a Windows console may not know every character
    parser = argparse.ArgumentParser(
        prog="python -m eagle2", description="EAGLE-2 speculative decoding with dynamic draft trees."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in COMMANDS:
        command.add(commands)
    options = parser.parse_args(arguments)
    options.figures = benchmark_figures
    try:
        options.run(options)
    except (ValueError, TypeError, OSError, MemoryError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
