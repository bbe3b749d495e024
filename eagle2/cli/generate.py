"""`python -m eagle2 generate`: stream the answer to one prompt, then one line of counts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eagle2.analysis import metrics
from eagle2.cli.hints import doubts, note_clamped, note_idle, note_known_head, note_unused, note_vocabulary
from eagle2.cli.options import DRAFT_MODEL_HELP, DTYPE_HELP, add_method_options, chosen_method, own_tree
from eagle2.methods import STATIC
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Round

if TYPE_CHECKING:
    from eagle2.decoding.engine import Engine

TREE_OPTIONS = {"top_k": "top_k", "depth": "depth", "max_nodes": "max_nodes"}
SAMPLING_OPTIONS = {"temperature": "temperature", "sample_top_p": "top_p", "sample_top_k": "top_k", "seed": "seed"}
"""Names of options, and of the settings they stand for."""


def add(commands: argparse._SubParsersAction) -> None:
    """The command's options."""
    shape, sampling, settings = TreeShape(), Sampling(), Settings()
    shown = "(default: %(default)s)"
    parser = commands.add_parser("generate", help="answer one prompt, streaming")
    parser.set_defaults(run=run)
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
    how_drawn = parser.add_argument_group("sampling (only --temperature acts while it is 0)")
    how_drawn.add_argument("--temperature", type=float, help=f"0 is greedy (default: {sampling.temperature:g})")
    how_drawn.add_argument("--sample-top-p", type=float, help=f"1 is off (default: {sampling.top_p:g})")
    how_drawn.add_argument("--sample-top-k", type=int, help=f"0 is off (default: {sampling.top_k})")
    how_drawn.add_argument("--seed", type=int, help=f"same seed, same text, but with sps (default: {sampling.seed})")
    parser.add_argument("--max-new-tokens", type=int, default=settings.max_new_tokens, help=f"length cap {shown}")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--trace", metavar="FILE", help="write the whole run to this JSON file")
    parser.add_argument("--target", help="folder or hub id of a causal LM (default: the bundled SmolLM2-135M-Instruct)")
    parser.add_argument("--head", help="folder or hub id of its EAGLE head (default: the embedded target's)")
    parser.add_argument("--draft-model", help=DRAFT_MODEL_HELP)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps, or spread over all GPUs")
    parser.add_argument("--dtype", "--weights", default="auto", help=DTYPE_HELP)


def run(options: argparse.Namespace) -> None:
    """Answer. All that can be checked before models load is."""
    tree, drawing = _given(options, TREE_OPTIONS), _given(options, SAMPLING_OPTIONS)
    own = own_tree(options)
    method, drafter = (STATIC, options.drafter) if own else chosen_method(options)
    settings = Settings(method, TreeShape(**tree), Sampling(**drawing), options.max_new_tokens, own, drafter)
    if options.trace and not Path(options.trace).absolute().parent.is_dir():
        raise ValueError(f"the trace cannot be written: {Path(options.trace).parent} is no folder")
    if options.trace and Path(options.trace).is_dir():
        raise ValueError(f"the trace cannot be written: {options.trace} is a folder; give a file's name")
    engine = _load(options)
    note_vocabulary(engine.pair, settings)
    note_unused(settings, tree, drawing)
    if options.draft_model and engine.drafter_of(settings.tree, drafter) is not engine.draft_model:
        note_idle(["--draft-model"], f"with {method}")
    note_clamped(engine.policy(settings.tree, settings.shape, drafter), settings.shape, tree)
    messages = [{"role": "user", "content": options.prompt}]
    if options.system is not None:
        messages.insert(0, {"role": "system", "content": options.system})
    ids = engine.encode_chat(messages)
    rounds = _stream(engine, ids, settings, options.stop, record=bool(options.trace))
    if options.trace:
        trace_files.save(engine.trace(ids, rounds, settings, messages), options.trace)
    print(summary(rounds), flush=True)
    for doubt in doubts(engine.pair, settings, rounds):
        print(f"hint: {doubt}; the text is still exactly the target's", file=sys.stderr)


def _load(options: argparse.Namespace) -> Engine:
    """The pair that the options name, announced. Raises ValueError for one that has no text."""
    import eagle2
    from eagle2.loading.describe_head import announce

    note_known_head(options.target, options.head)
    engine = eagle2.load(options.target, options.head, options.device, options.dtype, options.draft_model)
    if engine.tokenizer is None:
        raise ValueError(f"{engine.pair.target} has no tokenizer; from Python, give token ids to engine.rounds")
    if options.head:
        announce(options.head, engine.drafter.head, engine.target.vocab_size)
    return engine


def _stream(
    engine: Engine, ids: list[int], settings: Settings, strings: Sequence[str] | None, record: bool
) -> list[Round]:
    """All rounds of the run, printed as they come up to the first of the stop `strings`."""
    from eagle2 import text

    stop = text.stop_strings(engine.tokenizer, strings) if strings else None
    stream, shown = text.TextStream(engine.tokenizer), text.TextBefore(strings or ())
    rounds = []
    for r in engine.run(ids, settings, stop=stop, record=record):
        rounds.append(r)
        print(shown.add(stream.add(r.committed)), end="", flush=True)
    ended = [token for r in rounds for token in r.committed][-1:]
    stopped = bool(strings) and rounds[-1].finish == "stop" and not engine.target.end_ids & set(ended)
    print("" if stopped else shown.rest())
    return rounds


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
