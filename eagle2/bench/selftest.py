"""`python -m eagle2 bench --selftest`: is everything exact on this device, and where does a round's time go?

In float32 without TF32, where it must be exact: every method's text against plain decoding's, and each node's logits
against those of its path fed alone. Then in bfloat16, as one would run it: time by phase, and how often rounding chose
between tokens, which is counted and no fault. On a machine without an accelerator, and no models named, a tiny random
pair does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import eagle2
from eagle2.bench import bookkeeping, work
from eagle2.bench.measure import can_run, run_trial, warm_up
from eagle2.bench.plan import PAPER, Method, Plan, check_selftest
from eagle2.bench.records import Measurement, Trial
from eagle2.bench.results import phases
from eagle2.bench.table import overhead_table, time_table
from eagle2.decoding import tree
from eagle2.decoding.engine import Engine
from eagle2.drafters.draft_model import IndependentDrafter
from eagle2.drafters.eagle import EagleDrafter
from eagle2.loading.load import choose_device
from eagle2.methods import METHODS
from eagle2.models import memory
from eagle2.models.eagle_head import EagleHead, HeadConfig
from eagle2.models.target import Target
from eagle2.trace.rounds import Pair

TOKENS, TINY_TOKENS = 32, 8
"""New tokens of every answer; the tiny pair, for which no device waits, only shows that the script works."""
LOGIT_SLACK = 1e-3
"""How far float32 logits of one path may lie apart between a tree pass and passes of one token, per unit of the
largest."""
TINY = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}


def run(options: argparse.Namespace) -> None:
    """Print what was checked and measured. Raises ValueError, at the end, naming all that is not exact in float32."""
    check_selftest(options)
    load = loader(options)
    with full_precision():
        engine = load("float32")
        print(f"{engine.pair.target} on {engine.pair.device}, float32, TF32 off", flush=True)
        faults = list(inexact(engine))
        worst = tree_error(engine, prompts(engine)[0])
        print(f"a tree's logits against its paths': at most {worst:.1e} of the largest logit apart", flush=True)
        if worst > LOGIT_SLACK:
            faults.append(f"tree logits are off by {worst:.1e} of the largest, more than {LOGIT_SLACK:g}")
    del engine
    memory.release()  # or the next pair would not seem to fit
    engine = load("bfloat16")
    print(f"\n{engine.pair.target} on {engine.pair.device}, bfloat16", flush=True)
    plan = plan_of(engine)
    measurements = trials(engine, plan)
    print(time_table(phases(measurements)), flush=True)
    large = bookkeeping.LARGE.max_nodes, bookkeeping.large_tree_ms(engine.target.device)
    print(overhead_table(bookkeeping.overheads(engine, plan, prompts(engine)), *large), flush=True)
    other = sum(not m.lossless for m in measurements)
    print(f"{other} of {len(measurements)} texts differ by more than bfloat16 commonly rounds", flush=True)
    if faults:
        raise ValueError(f"the selftest failed: {'; '.join(faults)}")
    print("\nall exact", flush=True)


def inexact(engine: Engine) -> Iterator[str]:
    """Every method, greedy and at temperature 1, whose text is not plain decoding's."""
    found = trials(engine, plan_of(engine))
    exact = sum(m.lossless for m in found)
    ties = sum(m.near_ties for m in found)
    print(f"{exact} of {len(found)} answers are plain decoding's; {ties} near-ties", flush=True)
    yield from (told(m, "float32") for m in found if not m.lossless)


def told(measurement: Measurement, dtype: str) -> str:
    trial = measurement.trial
    return f"{measurement.method} at temperature {trial.temperature:g} differs on {trial.question} in {dtype}"


def trials(engine: Engine, plan: Plan) -> list[Measurement]:
    """All methods on a few prompts, warm."""
    asked = prompts(engine)
    warm_up(engine, plan, asked[0])
    return [
        measurement
        for place, prompt in enumerate(asked)
        for temperature in plan.temperatures
        for measurement in run_trial(
            engine, plan, prompt, Trial(f"prompt {place + 1}", "selftest", 0, temperature, 0), place
        )
    ]


def plan_of(engine: Engine) -> Plan:
    """Every method that the engine's models can run, greedy and at temperature 1, with the paper's tree."""
    methods = tuple(method for method in map(Method.of, METHODS) if can_run(engine, method))
    return Plan(methods, (0.0, 1.0), PAPER, TOKENS if engine.tokenizer else TINY_TOKENS)


def prompts(engine: Engine) -> list[list[int]]:
    """Two of our own questions; arbitrary ids where the pair has no tokenizer."""
    if engine.tokenizer is None:
        return [[(7 * place + 3 * i * i) % engine.target.vocab_size for i in range(24)] for place in range(2)]
    asked = work.one_each(work.own())[:2]
    return [engine.encode_chat([{"role": "user", "content": question.turns[0]}]) for question in asked]


@torch.inference_mode()
def tree_error(engine: Engine, prompt: list[int]) -> float:
    """Largest difference between a tree's logits and those of its paths, fed one token a pass, by the largest logit.

    The tree is arbitrary and wide: node i hangs under node i // 3, so that rows see few of the rows before them.
    """
    target = engine.target
    parent = torch.tensor([0, *(i // 3 for i in range(PAPER.max_nodes))])
    tokens = torch.arange(len(parent)) * 11 % target.vocab_size
    visible = tree.ancestor_mask(parent)
    depth = visible.sum(dim=1) - 1
    cache = target.begin()
    target.extend(cache, prompt)
    place = [x.to(target.device) for x in (tokens, depth + len(prompt), visible)]
    logits, _ = target.verify(cache, *place)
    worst = 0.0
    for row in (1, len(parent) // 2, len(parent) - 1):
        alone = target.begin()
        _, path = target.extend(alone, prompt)
        for token in tokens[visible[row]].tolist():
            _, path = target.extend(alone, [token])
        worst = max(worst, float((logits[row] - path).abs().max() / path.abs().max()))
    return worst


@contextmanager
def full_precision() -> Iterator[None]:
    """Products of float32 in float32, not TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def loader(options: argparse.Namespace) -> Callable[[str], Engine]:
    """dtype -> an engine on the device asked for."""
    named = any((options.target, options.head, options.draft_model))
    if named or choose_device(options.device) != "cpu":
        return lambda dtype: eagle2.load(options.target, options.head, options.device, dtype, options.draft_model)
    return tiny_engine


def tiny_engine(dtype: str) -> Engine:
    """A random target of three layers, a random head and a random draft model, on the CPU."""
    kind = getattr(torch, dtype)
    target = Target(_tiny_model(layers=3).to(kind))
    head = EagleHead(
        HeadConfig(
            hidden_size=64,
            intermediate_size=128,
            heads=4,
            kv_heads=4,
            head_dim=16,
            vocab_size=TINY["vocab_size"],
            rms_norm_eps=1e-6,
            rope={"rope_type": "default", "rope_theta": 10000.0},
            max_positions=512,
        )
    ).to(kind)
    draft_model = IndependentDrafter(Target(_tiny_model(layers=1).to(kind)), target)
    pair = Pair("a tiny random pair", "random", device="cpu", dtype=dtype, draft_model="random")
    return Engine(target, EagleDrafter(target, head), None, pair, draft_model=draft_model)


def _tiny_model(layers: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        **TINY,
        num_hidden_layers=layers,
        max_position_embeddings=512,
        initializer_range=0.2,  # large, so that choices are not near-ties
        eos_token_id=None,
        bos_token_id=1,
    )
    return LlamaForCausalLM(config).eval()
