"""The command line: python -m eagle2 generate "..." [options]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from eagle2 import metrics, paths, trace_file
from eagle2.bench.plan import add_options as add_bench_options
from eagle2.config import CHAINS, METHODS, STATIC, Sampling, TreeShape, check_integer
from eagle2.trace import Pair, Round, Settings
from eagle2.training.settings import add_data_options, add_measure_options, add_train_options


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 with one sentence on stderr for what the user can mend."""
    parser = argparse.ArgumentParser(
        prog="python -m eagle2", description="EAGLE-2 speculative decoding with dynamic draft trees."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_generate(commands)
    add_record(commands)
    add_pairs(commands)
    add_data(commands)
    add_train(commands)
    add_measure(commands)
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
    parser.add_argument("--method", choices=METHODS, help=f"how drafts are made (default: {settings.policy})")
    parser.add_argument(
        "--tree", metavar="FILE", help="instead of a method: a static tree of one's own, as paths [0], [1], [0, 0] ..."
    )
    tree = parser.add_argument_group(
        "tree (unused by plain, eagle and --tree; chain, ngram, sps take --depth and --max-nodes)"
    )
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
    law.add_argument("--seed", type=int, help=f"same seed, same text, whatever the method (default: {sampling.seed})")
    parser.add_argument("--max-new-tokens", type=int, default=settings.max_new_tokens, help=f"length cap {shown}")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--trace", metavar="FILE", help="write the whole run to this JSON file")
    parser.add_argument(
        "--target", help="folder or hub id of a causal LM (default: the embedded SmolLM2-135M-Instruct)"
    )
    parser.add_argument("--head", help="folder or hub id of its EAGLE head (default: the embedded target's)")
    parser.add_argument(
        "--draft-model", help="folder or hub id of a smaller causal LM with the same tokenizer, for method sps"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps, or spread over all GPUs")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")


def add_record(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("record", help="make the page's recorded runs again, with the default pair")
    parser.set_defaults(run=record)
    parser.add_argument("--device", default="auto", help="where the models run %(default)s")
    parser.add_argument("--dtype", default="auto", help="of the weights %(default)s")


def add_pairs(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("pairs", help="list known public targets and heads, and whether they fit here")
    parser.set_defaults(run=pairs)
    parser.add_argument("--device", default="auto", help="the device whose memory counts (default: %(default)s)")
    parser.add_argument("--dtype", default="auto", help="of the weights (default: %(default)s)")


def pairs(options: argparse.Namespace) -> None:
    """Print the registry."""
    from eagle2 import loading, memory, registry

    device = loading.choose_device(options.device)
    dtype = str(loading.choose_dtype(options.dtype, device)).removeprefix("torch.")
    print(registry.listing(dtype, memory.free_bytes(device)))


def add_data(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("data", help="write the target's own chats, to train a head on")
    parser.set_defaults(run=data)
    add_data_options(parser)


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


def data(options: argparse.Namespace) -> None:
    """Add shards of chats to a folder."""
    from eagle2.training.data import run

    run(options)


def add_train(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("train", help="train an EAGLE head on a target's own chats")
    parser.set_defaults(run=train)
    add_train_options(parser)


def train(options: argparse.Namespace) -> None:
    """Train a head, or go on with one."""
    from eagle2.training.train import run

    run(options)


def add_measure(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("measure", help="tau, acceptance by depth and calibration of one or more heads")
    parser.set_defaults(run=measure)
    add_measure_options(parser)


def measure(options: argparse.Namespace) -> None:
    """Compare heads on the same questions."""
    from eagle2.training.measure import run

    run(options)


def record(options: argparse.Namespace) -> None:
    """Write assets/traces anew."""
    import eagle2
    from eagle2 import recordings

    engine = eagle2.load(device=options.device, dtype=options.dtype)
    for path in recordings.record(engine):
        trace = trace_file.load(path)
        print(f"{path.name}: {summary(trace.rounds)}", flush=True)


def generate(options: argparse.Namespace) -> None:
    """Stream the answer to stdout, then one line of counts. All that can be checked before models load is."""
    tree = _given(options, {"top_k": "top_k", "depth": "depth", "max_nodes": "max_nodes"})
    law = _given(
        options, {"temperature": "temperature", "sample_top_p": "top_p", "sample_top_k": "top_k", "seed": "seed"}
    )
    method, own = chosen_method(options)
    settings = Settings(method, TreeShape(**tree), Sampling(**law), options.max_new_tokens, own)
    check_integer("max_new_tokens", settings.max_new_tokens, 1)
    if options.trace and not Path(options.trace).absolute().parent.is_dir():
        raise ValueError(f"the trace cannot be written: {Path(options.trace).parent} is no folder")
    if method == "sps" and not options.draft_model:
        raise ValueError("method sps needs an independent draft model; give one with --draft-model")
    if options.trace and Path(options.trace).is_dir():
        raise ValueError(f"the trace cannot be written: {options.trace} is a folder; give a file's name")

    import eagle2
    from eagle2 import text
    from eagle2.found import announce

    note_known_head(options.target, options.head)
    engine = eagle2.load(options.target, options.head, options.device, options.dtype, options.draft_model)
    if engine.tokenizer is None:
        raise ValueError(f"{engine.pair.target} has no tokenizer; from Python, give token ids to engine.rounds")
    if options.head:
        announce(options.head, engine.drafter.head, engine.target.vocab_size)
    note_vocabulary(engine.pair, method)
    note_unused(method, tree, settings.sampling, law)
    if options.draft_model and engine.drafter_of(settings.tree) is not engine.draft_model:
        _note(["--draft-model"], f"with {method}")
    note_clamped(engine.policy(settings.tree, settings.shape), settings.shape, tree)
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
    ):
        rounds.append(r)
        print(shown.add(stream.add(r.committed)), end="", flush=True)
    ended = [token for r in rounds for token in r.committed][-1:]
    stopped = bool(options.stop) and rounds[-1].finish == "stop" and not engine.target.end_ids & set(ended)
    print("" if stopped else shown.rest())
    if options.trace:
        trace_file.save(engine.trace(ids, rounds, settings, messages), options.trace)
    print(summary(rounds), flush=True)
    if engine.pair.head_drafts(method) and metrics.near_floor(rounds):
        told = "the head's guesses are hardly ever right: it may belong to another target, or be untrained"
        print(f"hint: {told}; the text is the target's all the same", file=sys.stderr)


def chosen_method(options: argparse.Namespace) -> tuple[str, paths.Paths | None]:
    """The method's name and, where a file gives a static tree, its paths. Raises ValueError or OSError."""
    if options.tree is None:
        return options.method or Settings().policy, None
    if options.method is not None:
        raise ValueError(f"--tree is a method of its own and --method is {options.method}; give one of them")
    return STATIC, paths.load(options.tree)


def _given(options: argparse.Namespace, names: dict[str, str]) -> dict[str, int | float]:
    """Of the options `names` maps to settings, those that were given, by the settings' names."""
    values = {setting: getattr(options, option) for option, setting in names.items()}
    return {setting: value for setting, value in values.items() if value is not None}


def note_unused(method: str, tree: Iterable[str], sampling: Sampling, law: Iterable[str]) -> None:
    """Say on stderr which of the options given have no effect with this method, or with greedy decoding."""
    taken = {"plain": (), "eagle": (), STATIC: (), **dict.fromkeys(CHAINS, ("depth", "max_nodes"))}
    taken |= dict.fromkeys(("eagle2-no-rerank", "eagle2-no-both"), ("top_k", "depth"))
    _note([f"--{name.replace('_', '-')}" for name in tree if name not in taken.get(method, tree)], f"with {method}")
    spelled = {"top_p": "--sample-top-p", "top_k": "--sample-top-k", "seed": "--seed"}
    telling = [name for name in law if getattr(sampling, name) != getattr(Sampling(), name)]
    _note([spelled[name] for name in telling if sampling.greedy and name in spelled], "at temperature 0")


def note_known_head(target: str | None, head: str | None) -> None:
    """Say on stderr which public heads are known for a target that came without one."""
    from eagle2 import registry

    known = registry.heads_for(target) if target and not head else ()
    if known:
        heads = " or ".join(pair.head for pair in known)
        print(f"note: {target} came without a head; known for it: {heads}", file=sys.stderr)


def note_vocabulary(pair: Pair, method: str) -> None:
    """Say on stderr that confidences are shares of a part of the vocabulary, where they are."""
    if pair.draft_vocabulary is not None and pair.head_drafts(method):
        told = f"a draft vocabulary of {pair.draft_vocabulary:,} of {pair.vocabulary:,} tokens"
        print(f"note: confidences are shares of {told}, so values run high", file=sys.stderr)


def note_clamped(policy: object | None, asked: TreeShape, tree: Iterable[str]) -> None:
    """Say on stderr which of the tree options given were too large, and what they became."""
    for name in tree:
        wanted = getattr(asked, name)
        if policy is not None and name != "depth" and policy.name not in ("eagle", STATIC, *CHAINS):
            effective = getattr(policy.shape, name)
            if effective < wanted:
                told = f"--{name.replace('_', '-')} {wanted} becomes {effective}"
                print(f"note: {told}, all that can be drafted or kept here", file=sys.stderr)


def _note(idle: Sequence[str], where: str) -> None:
    if idle:
        print(f"note: {', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect {where}", file=sys.stderr)


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
