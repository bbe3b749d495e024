"""The command line: python -m eagle2 generate "..." [options]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from eagle2 import tree_paths
from eagle2.analysis import metrics
from eagle2.bench.plan import add_options as add_bench_options
from eagle2.cli.hints import note_clamped, note_idle, note_known_head, note_unused, note_vocabulary
from eagle2.methods import DRAFT_MODEL, DRAFTERS, METHODS, POLICIES, STATIC, combine, drafter_of
from eagle2.settings import Sampling, Settings, TreeShape, check_integer
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Round
from eagle2.training.options import add_cut_options, add_data_options, add_measure_options, add_train_options

DRAFT_MODEL_HELP = "folder or hub id of a smaller causal LM with the same tokenizer, for method sps or as a drafter"

DTYPE_HELP = "auto, float32, bfloat16, float16, or 4bit: a GGUF file's matrices as they are (default: %(default)s)"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 with one sentence on stderr for what the user can mend."""
    parser = argparse.ArgumentParser(
        prog="python -m eagle2", description="EAGLE-2 speculative decoding with dynamic draft trees."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_generate(commands)
    add_record(commands)
    add_pairs(commands)
    add_training(commands)
    add_bench(commands)
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
    shape, sampling, settings = TreeShape(), Sampling(), Settings()
    shown = "(default: %(default)s)"
    parser = commands.add_parser("generate", help="answer one prompt, streaming")
    parser.set_defaults(run=generate)
    parser.add_argument("prompt", help="the user's turn")
    parser.add_argument("--system", help="a system turn before it")
    how = add_method_options(parser)
    how.add_argument("--tree", metavar="FILE", help="as policy, a static tree of one's own: [0], [1], [0, 0] ...")
    tree = parser.add_argument_group("size (unused by plain, eagle and --tree; chains take --depth and --max-nodes)")
    # No defaults here: what was not given cannot be told from a default, and options without effect are announced.
    tree.add_argument(
        "--top-k", type=int, help=f"nodes expanded per level and children of each (default: {shape.top_k})"
    )
    tree.add_argument("--depth", type=int, help=f"levels of draft tokens (default: {shape.depth})")
    tree.add_argument(
        "--max-nodes", type=int, help=f"nodes kept and verified, root not counted (default: {shape.max_nodes})"
    )
    law = parser.add_argument_group("sampling (only --temperature acts while it is 0)")
    law.add_argument("--temperature", type=float, help=f"0 is greedy (default: {sampling.temperature:g})")
    law.add_argument("--sample-top-p", type=float, help=f"1 is off (default: {sampling.top_p:g})")
    law.add_argument("--sample-top-k", type=int, help=f"0 is off (default: {sampling.top_k})")
    law.add_argument("--seed", type=int, help=f"same seed, same text, by any method but sps (default: {sampling.seed})")
    parser.add_argument("--max-new-tokens", type=int, default=settings.max_new_tokens, help=f"length cap {shown}")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--trace", metavar="FILE", help="write the whole run to this JSON file")
    parser.add_argument("--target", help="folder or hub id of a causal LM (default: the bundled SmolLM2-135M-Instruct)")
    parser.add_argument("--head", help="folder or hub id of its EAGLE head (default: the embedded target's)")
    parser.add_argument("--draft-model", help=DRAFT_MODEL_HELP)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps, or spread over all GPUs")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def add_method_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    how = parser.add_argument_group(
        "how drafts are made: by a method, or by a drafter and a tree policy of one's choice"
    )
    how.add_argument("--method", choices=METHODS, help=f"both at once, by name (default: {Settings().policy})")
    how.add_argument(
        "--policy", choices=POLICIES, help="which guesses a tree is made of and which of them are verified"
    )
    how.add_argument(
        "--drafter", choices=DRAFTERS, help="who guesses: the EAGLE head, an independent model, or lookup in the text"
    )
    return how


def chosen_method(options: argparse.Namespace) -> tuple[str, str | None]:
    """The method, and the drafter where that is not its own. Raises ValueError for what cannot be combined."""
    if options.method and (options.policy or options.drafter):
        raise ValueError("--method names a drafter and a policy at once; give it alone, or --policy and --drafter")
    method, drafter = combine(options.method or options.policy or Settings().policy, options.drafter)
    if drafter_of(method, drafter) == DRAFT_MODEL and not options.draft_model:
        who = f"drafter {drafter}" if drafter else f"method {method}"
        raise ValueError(f"{who} needs an independent draft model; give one with --draft-model")
    return method, drafter


def own_tree(options: argparse.Namespace) -> tree_paths.Paths | None:
    """The paths of a static tree, where a file gives one. Raises ValueError or OSError."""
    if options.tree is not None and (options.method or options.policy):
        raise ValueError(f"--tree is a policy and so is {options.method or options.policy}; give one of them")
    return None if options.tree is None else tree_paths.load(options.tree)


def add_record(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("record", help="make the page's recorded runs again, with the default pair")
    parser.set_defaults(run=record)
    add_method_options(parser)
    parser.add_argument("--draft-model", help=DRAFT_MODEL_HELP)
    parser.add_argument("--out", metavar="FOLDER", help="where to write them (default: where the page looks)")
    parser.add_argument("--device", default="auto", help="where the models run (default: %(default)s)")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def add_pairs(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("pairs", help="list known public targets and heads, and whether they fit here")
    parser.set_defaults(run=pairs)
    parser.add_argument("--device", default="auto", help="the device whose memory counts (default: %(default)s)")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def pairs(options: argparse.Namespace) -> None:
    """Print the registry."""
    from eagle2.loading import known_pairs
    from eagle2.loading import load as loading
    from eagle2.models import memory

    device = loading.choose_device(options.device)
    dtype = str(loading.choose_dtype(options.dtype, device)).removeprefix("torch.")
    print(known_pairs.listing(dtype, memory.free_bytes(device)))


def add_bench(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("bench", help="measure tau and speed on this machine, as the paper's tables do")
    parser.set_defaults(run=bench)
    add_bench_options(parser)


def bench(options: argparse.Namespace) -> None:
    """Measure, or check this device."""
    if options.selftest:
        from eagle2.bench.selftest import run
    else:
        from eagle2.bench.command import run

    run(options)


def add_training(commands: argparse._SubParsersAction) -> None:
    """The commands of eagle2/training, each a module there, imported when it is run."""
    for name, module, about, add_options in (
        ("data", "data", "write the target's own chats, to train a head on", add_data_options),
        ("train", "train", "train an EAGLE head on a target's own chats", add_train_options),
        ("cut", "cut", "let a head propose fewer tokens, or others, without training", add_cut_options),
        ("measure", "evaluate", "tau, acceptance by depth and calibration of one or more heads", add_measure_options),
    ):
        parser = commands.add_parser(name, help=about)
        parser.set_defaults(run=partial(run_training, module))
        add_options(parser)


def run_training(module: str, options: argparse.Namespace) -> None:
    import_module(f"eagle2.training.{module}").run(options)


def record(options: argparse.Namespace) -> None:
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


def generate(options: argparse.Namespace) -> None:
    """Stream the answer to stdout, then one line of counts. All that can be checked before models load is."""
    tree = _given(options, {"top_k": "top_k", "depth": "depth", "max_nodes": "max_nodes"})
    law = _given(
        options, {"temperature": "temperature", "sample_top_p": "top_p", "sample_top_k": "top_k", "seed": "seed"}
    )
    own = own_tree(options)
    method, drafter = (STATIC, options.drafter) if own else chosen_method(options)
    settings = Settings(method, TreeShape(**tree), Sampling(**law), options.max_new_tokens, own, drafter)
    check_integer("max_new_tokens", settings.max_new_tokens, 1)
    if options.trace and not Path(options.trace).absolute().parent.is_dir():
        raise ValueError(f"the trace cannot be written: {Path(options.trace).parent} is no folder")
    if options.trace and Path(options.trace).is_dir():
        raise ValueError(f"the trace cannot be written: {options.trace} is a folder; give a file's name")

    import eagle2
    from eagle2 import text
    from eagle2.loading.describe_head import announce

    note_known_head(options.target, options.head)
    engine = eagle2.load(options.target, options.head, options.device, options.dtype, options.draft_model)
    if engine.tokenizer is None:
        raise ValueError(f"{engine.pair.target} has no tokenizer; from Python, give token ids to engine.rounds")
    if options.head:
        announce(options.head, engine.drafter.head, engine.target.vocab_size)
    note_vocabulary(engine.pair, settings)
    note_unused(settings, tree, law)
    if options.draft_model and engine.drafter_of(settings.tree, drafter) is not engine.draft_model:
        note_idle(["--draft-model"], f"with {method}")
    note_clamped(engine.policy(settings.tree, settings.shape, drafter), settings.shape, tree)
    messages = [{"role": "user", "content": options.prompt}]
    if options.system is not None:
        messages.insert(0, {"role": "system", "content": options.system})
    ids = engine.encode_chat(messages)
    stop = text.stop_strings(engine.tokenizer, options.stop) if options.stop else None
    stream, shown = text.TextStream(engine.tokenizer), text.TextBefore(options.stop or ())
    rounds = []
    for r in engine.rounds(
        ids,
        shape=settings.shape,
        sampling=settings.sampling,
        max_new_tokens=settings.max_new_tokens,
        policy=settings.tree,
        stop=stop,
        record=bool(options.trace),
        drafter=settings.drafter,
    ):
        rounds.append(r)
        print(shown.add(stream.add(r.committed)), end="", flush=True)
    ended = [token for r in rounds for token in r.committed][-1:]
    stopped = bool(options.stop) and rounds[-1].finish == "stop" and not engine.target.end_ids & set(ended)
    print("" if stopped else shown.rest())
    if options.trace:
        trace_files.save(engine.trace(ids, rounds, settings, messages), options.trace)
    print(summary(rounds), flush=True)
    if engine.pair.head_drafts(settings) and metrics.near_floor(rounds):
        told = "the head's guesses are hardly ever right: it may belong to another target, or be untrained"
        print(f"hint: {told}; the text is the target's all the same", file=sys.stderr)


def _given(options: argparse.Namespace, names: dict[str, str]) -> dict[str, int | float]:
    """Of the options `names` maps to settings, those that were given, by the settings' names."""
    values = {setting: getattr(options, option) for option, setting in names.items()}
    return {setting: value for setting, value in values.items() if value is not None}


def summary(rounds: Sequence[Round]) -> str:
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
