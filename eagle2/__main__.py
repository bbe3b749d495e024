"""The command line: python -m eagle2 generate "..." [options]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eagle2.config import Sampling, TreeShape


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 with one sentence on stderr for what the user can mend."""
    parser = argparse.ArgumentParser(
        prog="python -m eagle2", description="EAGLE-2 speculative decoding with dynamic draft trees."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_generate(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, TypeError, OSError, MemoryError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 0


def add_generate(commands: argparse._SubParsersAction) -> None:
    from eagle2.policy import METHODS

    shape, sampling = TreeShape(), Sampling()
    parser = commands.add_parser(
        "generate", help="answer one prompt, streaming", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.set_defaults(run=generate)
    parser.add_argument("prompt", help="the user's turn")
    parser.add_argument("--system", help="a system turn before it", default=None)
    parser.add_argument("--method", choices=METHODS, default="eagle2", help="how drafts are made")
    tree = parser.add_argument_group("tree (unused by plain and eagle; chain takes --depth and --max-nodes)")
    tree.add_argument(
        "--top-k", type=int, help=f"nodes expanded per level and children of each (default: {shape.top_k})"
    )
    tree.add_argument("--depth", type=int, help=f"levels of draft tokens (default: {shape.depth})")
    tree.add_argument(
        "--max-nodes", type=int, help=f"nodes kept and verified, root not counted (default: {shape.max_nodes})"
    )
    law = parser.add_argument_group("sampling")
    law.add_argument("--temperature", type=float, default=sampling.temperature, help="0 is greedy")
    law.add_argument("--sample-top-p", type=float, default=sampling.top_p, help="1 is off")
    law.add_argument("--sample-top-k", type=int, default=sampling.top_k, help="0 is off")
    law.add_argument("--seed", type=int, default=sampling.seed, help="same seed, same text, whatever the method")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="length cap")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--trace", metavar="FILE", help="write the whole run to this JSON file")
    parser.add_argument(
        "--target", help="folder or hub id of a causal LM (default: the embedded SmolLM2-135M-Instruct)"
    )
    parser.add_argument("--head", help="folder or hub id of its EAGLE head")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps, or spread over all GPUs")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")


def generate(options: argparse.Namespace) -> None:
    """Stream the answer to stdout, then one line of counts."""
    given = {name: getattr(options, name) for name in ("top_k", "depth", "max_nodes")}
    given = {name: value for name, value in given.items() if value is not None}
    shape = TreeShape(**given)
    sampling = Sampling(options.temperature, options.sample_top_p, options.sample_top_k, options.seed)
    if options.trace and not Path(options.trace).absolute().parent.is_dir():
        raise ValueError(f"the trace cannot be written: {Path(options.trace).parent} is no folder")

    import eagle2
    from eagle2 import metrics, text, trace_file
    from eagle2.trace import Settings

    engine = eagle2.load(options.target, options.head, options.device, options.dtype)
    if engine.tokenizer is None:
        raise ValueError(
            f"no tokenizer was found beside {options.target}; from Python, give token ids to engine.rounds"
        )
    note_unused(options.method, given)
    messages = [{"role": "user", "content": options.prompt}]
    if options.system is not None:
        messages.insert(0, {"role": "system", "content": options.system})
    ids = engine.encode_chat(messages)
    settings = Settings(options.method, shape, sampling, options.max_new_tokens)
    stop = text.stop_strings(engine.tokenizer, options.stop) if options.stop else None
    stream = text.TextStream(engine.tokenizer)
    rounds = []
    for r in engine.rounds(ids, shape, sampling, options.max_new_tokens, options.method, stop, bool(options.trace)):
        rounds.append(r)
        print(stream.add(r.committed), end="", flush=True)
    print()
    if options.trace:
        trace_file.save(engine.trace(ids, rounds, settings, messages), options.trace)
    print(summary(rounds, metrics), flush=True)


def note_unused(method: str, given: dict[str, int]) -> None:
    """Say on stderr which of the tree options given have no effect with this method."""
    taken = {"plain": (), "eagle": (), "chain": ("depth", "max_nodes")}
    taken |= dict.fromkeys(("eagle2-no-rerank", "eagle2-no-both"), ("top_k", "depth"))
    idle = [f"--{name.replace('_', '-')}" for name in given if name not in taken.get(method, given)]
    if idle:
        print(f"note: {', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect with {method}", file=sys.stderr)


def summary(rounds: list, metrics: object) -> str:
    """The last line: tokens, rounds, tau, tokens/s."""
    tokens = sum(len(r.committed) for r in rounds)
    tau, speed = metrics.tau(rounds), metrics.speed(rounds)
    line = f"{tokens} tokens, {len(rounds)} rounds, tau {'none' if tau is None else f'{tau:.2f}'} (bonus included)"
    rate = "none decoded" if speed is None else f"{speed.tokens_per_s:.1f} tokens/s"
    return f"{line}, {rate}, prefill {sum(r.prefill_ms for r in rounds):.0f} ms"


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # a Windows console may not know every character
    raise SystemExit(main())
