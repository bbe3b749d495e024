"""What a benchmark measures, and its command's options. Loads no torch, so that --help is quick."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from eagle2.methods import DRAFT_MODEL, METHODS, STATIC
from eagle2.settings import Sampling, TreeShape, check_integer
from eagle2.tree_paths import Paths, load

TRANSFORMERS = "transformers"
"""Transformers' own `generate` with the same model: an outside check of text and speed."""

QUICK = ("plain", TRANSFORMERS, "eagle", "eagle2", "eagle2-auto")
QUICK_TOKENS = 64
PAPER = TreeShape(top_k=10, depth=6, max_nodes=59)
"""The paper's tree: 60 tokens with the root, depth 6, 10 nodes."""


@dataclass(frozen=True)
class Method:
    """What one column of a table measures: a method, or "transformers"; `max_nodes` replaces the plan's, if given.

    paths: of a static tree of one's own, whose name is "static".
    """

    label: str
    name: str
    max_nodes: int | None = None
    paths: Paths | None = None

    @property
    def tree(self) -> str | Paths:
        """What an engine takes as its policy: the method's name, or the paths."""
        return self.name if self.paths is None else self.paths

    @classmethod
    def of(cls, label: str) -> Method:
        """From "eagle2", or "eagle2@16" for a size of its own. Raises ValueError for what no method is called."""
        name, at, size = label.partition("@")
        if name not in (*METHODS, TRANSFORMERS):
            raise ValueError(f"method {label!r} is unknown; choose from {TRANSFORMERS}, {', '.join(METHODS)}")
        if not at:
            return cls(label, name)
        if not size.isdigit() or name == TRANSFORMERS or "max_nodes" not in METHODS[name].uses:
            raise ValueError(f"method {label!r}: a size is given as eagle2@16, for methods whose tree has a free size")
        check_integer(f"the size of {label!r}", int(size), 1)
        return cls(label, name, int(size))


@dataclass(frozen=True)
class Plan:
    """methods: the first is "plain", the baseline. temperatures: 0 is greedy. repeats: passes over each question.

    max_new_tokens: the cap of every run. seed: of all draws above temperature 0. Raises ValueError or TypeError.
    """

    methods: tuple[Method, ...]
    temperatures: tuple[float, ...] = (0.0, 1.0)
    shape: TreeShape = PAPER
    max_new_tokens: int = 128
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        labels = [method.label for method in self.methods]
        if labels[:1] != ["plain"] or len(set(labels)) < len(labels):
            raise ValueError(f"methods are {', '.join(labels)}; plain comes first, and each may stand once")
        if not self.temperatures or len(set(self.temperatures)) < len(self.temperatures):
            raise ValueError("give at least one temperature, and each only once")
        check_integer("max_new_tokens", self.max_new_tokens, 2)
        check_integer("repeats", self.repeats, 1)
        for temperature in self.temperatures:
            self.sampling(temperature)

    def sampling(self, temperature: float) -> Sampling:
        return Sampling(temperature, seed=self.seed)

    def shape_of(self, method: Method) -> TreeShape:
        if method.max_nodes is None:
            return self.shape
        return TreeShape(self.shape.top_k, self.shape.depth, method.max_nodes)


def methods(labels: str | None, quick: bool, draft_model: bool, tree: Path | None = None) -> tuple[Method, ...]:
    """The methods to compare, plain first: those asked for, or all that can run; then a static tree, from its file.

    Raises ValueError for unknown ones.
    """
    if labels is not None:
        chosen = [label.strip() for label in labels.split(",") if label.strip()]
    elif quick:
        chosen = list(QUICK)
    else:
        chosen = [TRANSFORMERS, *(name for name, row in METHODS.items() if row.drafter != DRAFT_MODEL or draft_model)]
    found = [Method.of(label) for label in ["plain", *(label for label in chosen if label != "plain")]]
    needing = [row.name for row in METHODS.values() if row.drafter == DRAFT_MODEL]
    if not draft_model and any(method.name in needing for method in found):
        raise ValueError(f"method {needing[0]} needs an independent draft model; give one with --draft-model")
    if tree is not None:
        found.append(Method(STATIC, STATIC, paths=load(tree)))
    return tuple(found)


def make_plan(options: argparse.Namespace) -> Plan:
    """The plan that the command's options ask for; --quick fills in what was not given."""
    quick = options.quick
    temperatures = options.temperatures or ("0" if quick else "0,1")
    try:
        degrees = tuple(float(part) for part in temperatures.split(","))
    except ValueError as error:
        raise ValueError(f"--temperatures is {temperatures!r}; give numbers, as in 0,1") from error
    return Plan(
        methods(options.methods, quick, options.draft_model is not None, options.tree),
        degrees,
        TreeShape(options.top_k, options.depth, options.max_nodes),
        (QUICK_TOKENS if quick else Plan.max_new_tokens) if options.max_new_tokens is None else options.max_new_tokens,
        options.repeats,
        options.seed,
    )


def check_selftest(options: argparse.Namespace) -> None:
    """Raise ValueError for options that mean nothing to the selftest."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    known = ("selftest", "target", "head", "draft_model", "device")
    unused = [name for name, value in vars(parser.parse_args([])).items() if getattr(options, name) != value]
    unused = [f"--{name.replace('_', '-')}" for name in unused if name not in known]
    if unused:
        raise ValueError(f"--selftest takes models and a device alone; leave out {', '.join(unused)}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m eagle2 bench`."""
    shown = "(default: %(default)s)"
    parser.add_argument(
        "--quick", action="store_true", help="greedy, one prompt a family, 64 tokens, the methods that matter most"
    )
    parser.add_argument(
        "--selftest", action="store_true", help="instead: is everything exact on this device, and where does time go?"
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--methods", help="as in eagle,eagle2,eagle2@16 (16 nodes); plain is always there (default: all that can run)"
    )
    what.add_argument("--tree", type=Path, metavar="FILE", help="and a static tree of one's own, as method static")
    what.add_argument("--temperatures", help="as in 0,1 (default: 0,1; with --quick 0)")
    what.add_argument("--questions", type=Path, help="JSONL in Spec-Bench's layout (default: assets/prompts)")
    what.add_argument("--every", type=int, help="only every N-th question of each family")
    what.add_argument("--max-new-tokens", type=int, help=f"cap of each run (default: {Plan.max_new_tokens})")
    what.add_argument("--repeats", type=int, default=1, help=f"passes over each question; medians are taken {shown}")
    what.add_argument("--seed", type=int, default=0, help=f"of all draws {shown}")
    tree = parser.add_argument_group("tree (of the methods that have no tree of their own)")
    tree.add_argument("--top-k", type=int, default=PAPER.top_k, help=shown)
    tree.add_argument("--depth", type=int, default=PAPER.depth, help=shown)
    tree.add_argument("--max-nodes", type=int, default=PAPER.max_nodes, help=shown)
    out = parser.add_argument_group("results")
    out.add_argument("--json", type=Path, metavar="FILE", help="write results and machine")
    out.add_argument("--out", type=Path, metavar="FOLDER", help="figures, and measurements that a stopped run resumes")
    pair = parser.add_argument_group("models")
    pair.add_argument("--target", help="folder or hub id of a causal LM (default: the embedded SmolLM2-135M-Instruct)")
    pair.add_argument("--head", help="folder or hub id of its EAGLE head (default: the embedded target's)")
    pair.add_argument("--draft-model", help="folder or hub id of a smaller causal LM with the same tokenizer, for sps")
    pair.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N, mps, or spread over all GPUs")
    pair.add_argument("--dtype", "--weights", default="auto", help="auto, float32, bfloat16, float16 or 4bit")
