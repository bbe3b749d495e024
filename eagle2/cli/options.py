"""Options that several commands take, and what they mean together. Knows no models."""

from __future__ import annotations

import argparse

from eagle2 import tree_paths
from eagle2.methods import DRAFT_MODEL, DRAFTERS, METHODS, POLICIES, combine, drafter_of
from eagle2.settings import Settings

DRAFT_MODEL_HELP = "folder or hub id of a smaller causal LM with the same tokenizer, for method sps or as a drafter"
DTYPE_HELP = "auto, float32, bfloat16, float16, or 4bit: a GGUF file's matrices as they are (default: %(default)s)"


def add_method_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """--method, or --policy and --drafter; returns the group, for more of its kind."""
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
