"""What `generate` tells on stderr about options that have no effect, or another one than asked for. Knows no models."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from eagle2.analysis import metrics
from eagle2.methods import LOOKUP, method
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.rounds import Pair, Round


def note_unused(settings: Settings, tree: Iterable[str], given: Iterable[str]) -> None:
    """Say which of the options given have no effect with this method, or with greedy decoding."""
    sampling = settings.sampling
    used = ("depth", "max_nodes") if settings.drafter == LOOKUP else settings.method.uses
    note_idle([f"--{name.replace('_', '-')}" for name in tree if name not in used], f"with {combination(settings)}")
    spelled = {"top_p": "--sample-top-p", "top_k": "--sample-top-k", "seed": "--seed"}
    telling = [name for name in given if getattr(sampling, name) != getattr(Sampling(), name)]
    note_idle([spelled[name] for name in telling if sampling.greedy and name in spelled], "at temperature 0")


def note_known_head(target: str | None, head: str | None) -> None:
    """Say which public heads are known for a target that came without one."""
    from eagle2.loading import known_pairs

    known = known_pairs.heads_for(target) if target and not head else ()
    if known:
        heads = " or ".join(pair.head for pair in known)
        print(f"note: {target} came without a head; known for it: {heads}", file=sys.stderr)


def note_vocabulary(pair: Pair, settings: Settings) -> None:
    """Say that confidences are shares of a part of the vocabulary, where they are."""
    if pair.draft_vocabulary is not None and pair.head_drafts(settings):
        told = f"a draft vocabulary of {pair.draft_vocabulary:,} of {pair.vocabulary:,} tokens"
        print(f"note: confidences are shares of {told}, so values run high", file=sys.stderr)


def note_clamped(policy: object | None, asked: TreeShape, tree: Iterable[str]) -> None:
    """Say which of the tree options given were too large, and what they became."""
    for name in tree:
        wanted = getattr(asked, name)
        if policy is not None and name != "depth" and "top_k" in method(policy.name).uses:
            effective = getattr(policy.shape, name)
            if effective < wanted:
                told = f"--{name.replace('_', '-')} {wanted} becomes {effective}"
                print(f"note: {told}, all that can be drafted or kept here", file=sys.stderr)


def note_idle(idle: Sequence[str], where: str) -> None:
    """Say that these options have no effect there."""
    if idle:
        print(f"note: {', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect {where}", file=sys.stderr)


def combination(settings: Settings) -> str:
    """The method, and who drafts for it where that is not its own drafter."""
    return settings.policy + (f" drafted by {settings.drafter}" if settings.drafter else "")


def doubts(pair: Pair, settings: Settings, rounds: Sequence[Round]) -> Iterator[str]:
    """What is odd about a head's drafts."""
    if pair.head_drafts(settings):
        if metrics.gives_no_numbers(rounds):
            yield f"the head {pair.head} gives no numbers in {pair.dtype}: its drafts are arbitrary; try float32"
        elif metrics.near_floor(rounds):
            yield "the head's proposals are almost never right: it may belong to another target, or be untrained"
    if past := metrics.positions_past(pair, settings, rounds):
        made_for = f"{pair.head_positions:,} positions"
        yield f"the head was made for {made_for} and the text is {past} longer, where drafts get worse"
