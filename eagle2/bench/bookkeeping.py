"""What our own work costs beside the models': growing, selecting, masks, the walk, recording; and a far larger tree.

Measured apart from the table, on one prompt a family: the same rounds with recording off and on, and how long the
models' own modules were at work in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median

import torch
from torch import nn
from tqdm import tqdm

from eagle2.bench.plan import Method, Plan
from eagle2.bench.results import Overhead
from eagle2.decoding import tree
from eagle2.decoding.clock import Clock
from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import Dynamic
from eagle2.drafters.eagle import EagleDrafter
from eagle2.settings import TreeShape

MEASURED = ("eagle2", "eagle2-auto")
TOKENS = 32
"""New tokens of each answer, at most."""
LARGE = TreeShape(top_k=32, depth=6, max_nodes=1024)
SAMPLES = 20


def overheads(engine: Engine, plan: Plan, prompts: Sequence[list[int]]) -> list[Overhead]:
    """Of those of `MEASURED` that the plan holds and an EAGLE head drafts for, at its first temperature."""
    methods = [method for method in plan.methods if method.label in MEASURED]
    drafters = [engine.drafter_of(method.tree) for method in methods]
    pairs = [(method, d) for method, d in zip(methods, drafters, strict=True) if isinstance(d, EagleDrafter)]
    made = []
    with tqdm(total=len(pairs) * len(prompts), unit="prompt", desc="bookkeeping") as bar:
        for method, drafter in pairs:
            recorded, costs = [], []
            for place, prompt in enumerate(prompts):
                order = (True, False) if place % 2 else (False, True)  # neither is always the second
                spent = {record: _decode(engine, drafter, plan, method, prompt, record) for record in order}
                bar.update()
                if spent[True][0]:
                    recorded.append(spent[True])
                    costs.append(spent[True][0] / spent[False][0] - 1)
            if costs:
                decoding, inside = map(sum, zip(*recorded, strict=True))
                made.append(Overhead(method.label, 1 - inside / decoding, median(costs)))
    return made


def _decode(
    engine: Engine, drafter: EagleDrafter, plan: Plan, method: Method, prompt: list[int], record: bool
) -> tuple[float, float]:
    """Milliseconds of all rounds but the first, which holds the prefill; and of the models in them."""
    sampling, tokens = plan.sampling(plan.temperatures[0]), min(TOKENS, plan.max_new_tokens)
    rounds = engine.rounds(prompt, plan.shape_of(method), sampling, tokens, method.tree, record=record)
    next(rounds)
    with _at_work(_modules(engine, drafter), engine.target.device) as clock_of_models:
        clock = Clock(engine.target.device)
        more = sum(1 for _ in rounds)
        clock.lap("rest")
    return (clock.spent_ms["rest_ms"], clock_of_models.spent_ms["verify_ms"]) if more else (0.0, 0.0)


def _modules(engine: Engine, drafter: EagleDrafter) -> list[nn.Module]:
    """Whatever computes: the target, the head, and the LM head it drafts with."""
    lm_head = drafter.lm_head if isinstance(drafter.lm_head, nn.Module) else engine.target.model.get_output_embeddings()
    return list(dict.fromkeys([engine.target.model, drafter.head, lm_head]))


@contextmanager
def _at_work(modules: Sequence[nn.Module], device: torch.device) -> Iterator[Clock]:
    """A clock whose "verify" runs while any of the modules does, and whose "rest" runs otherwise."""
    clock, within = Clock(device), 0

    def enter(*_: object) -> None:
        nonlocal within
        if not within:
            clock.lap("rest")
        within += 1

    def leave(*_: object) -> None:
        nonlocal within
        within -= 1
        if not within:
            clock.lap("verify")

    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_pre_hook(enter).remove)
            hooks.callback(module.register_forward_hook(leave).remove)
        yield clock


@torch.inference_mode()
def large_tree_ms(device: torch.device) -> float:
    """Median milliseconds to select `LARGE.max_nodes` nodes of a pool of random values, lay them out and mask them."""
    policy, random = Dynamic("eagle2", LARGE), torch.Generator().manual_seed(0)
    pool = tree.Pool.empty(device)
    parents = torch.full((1,), tree.ROOT, device=device)
    for _ in range(LARGE.depth):
        children = parents.repeat_interleave(LARGE.top_k)
        confidence = torch.rand(len(children), generator=random).log().to(device)
        pool = pool.grow(children, torch.arange(len(children), device=device), confidence)
        parents = policy.expand(pool)
    spent = []
    for _ in range(SAMPLES):
        clock = Clock(device)
        tree.flatten(pool, policy.keep(pool))
        clock.lap("draft")
        spent.append(clock.spent_ms["draft_ms"])
    return median(spent)
