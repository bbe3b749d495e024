"""Random but valid rounds for the tests of `visual`: pools grown and cut by the paper's rules, confidences made up.

Plain Python with its own random numbers; knows neither models nor the engine.
"""

from __future__ import annotations

import random

from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.rounds import ROOT, Check, Pair, Round, Trace

# fmt: off
WORDS = (
    " the", " a", " to", " and", " of", " you", " I", " it", "'m", "'s", " is", " glad", " happy", " asked",
    " recipe", " pancakes", " simple", " delicious", " for", " with", " your", " help", " make", ",", ".", "\n", "!",
    ":", " sorry", " here", " curious", " ready", " would", " can", " ll", "'ve", " need", " just", " think", " know",
    " want", " share", " Here", " flour", " eggs", " milk", " butter", " recommend", " assist", " provide", " answer",
    " question", " will", " not", " that", " this", " be", " have", " been", " from", " about", " really", " first",
    " step", " mix", " bowl", " large", " pan", " medium", " heat", "1", "2", "3", " cup", " teaspoon", " salt",
    " sugar",
)
# fmt: on
HOSTILE = (
    b"<script>alert(1)</script>",
    b"%{x}",
    b"$5$",
    b"\n\n",
    b"\xf0\x9f",
    b" " * 40,
    b"a" * 60,
    b"${value}",
    b"{{value}}",
    b"<b>bold</b>",
    b"</script>",
    b"",
    "שלום".encode(),
    "日本語".encode(),
    "😀".encode(),
    b"\t",
    b"&amp;",
    b"`",
    "\u202eevil".encode(),
    b"\"quote'",
)
TOKENS = {i: word.encode() for i, word in enumerate(WORDS)} | {1000 + i: raw for i, raw in enumerate(HOSTILE)}
IDS = tuple(range(len(WORDS)))
HOSTILE_IDS = tuple(range(1000, 1000 + len(HOSTILE)))


def confidences(rng: random.Random, count: int, sharpness: float) -> list[float]:
    """The `count` largest of a made-up distribution, best first; they sum to less than 1."""
    weights = sorted((rng.expovariate(1) ** sharpness for _ in range(count * 3)), reverse=True)
    total = sum(weights) * 1.05
    return [w / total for w in weights[:count]]


def grown(
    seed: int,
    top_k: int = 10,
    depth: int = 6,
    max_nodes: int = 59,
    index: int = 1,
    prefix_length: int = 37,
    agree: float = 0.75,
    sharpness: float = 2.6,
    ids: tuple[int, ...] = IDS,
    root: int | None = None,
    finish: str | None = None,
    keep: int | None = None,
) -> Round:
    """One round. agree: how likely the made-up target takes the best kept child. keep: committed ids after a stop."""
    rng = random.Random(seed)
    token, parent, level, confidence, value, expanded = [], [], [], [], [], []
    frontier = [ROOT]
    for d in range(1, depth + 1):
        fresh = []
        for node in frontier:
            if node != ROOT:
                expanded[node] = True
            for t, c in zip(rng.sample(ids, top_k), confidences(rng, top_k, sharpness), strict=True):
                fresh.append(len(token))
                token.append(t)
                parent.append(node)
                level.append(d)
                confidence.append(c)
                value.append(c if node == ROOT else c * value[node])
                expanded.append(False)
        frontier = sorted(fresh, key=lambda i: (-value[i], i))[:top_k]
    order = sorted(range(len(token)), key=lambda i: (-value[i], level[i], i))
    kept = sorted(order[:max_nodes])
    slot: list[int | None] = [None] * len(token)
    for place, node in enumerate(kept):
        slot[node] = place + 1
    target = [None if s is None else min(1.0, confidence[i] * rng.uniform(0.3, 1.6)) for i, s in enumerate(slot)]
    checks, path, at = [], [], ROOT
    while True:
        children = [i for i in kept if parent[i] == at]
        if children and rng.random() < agree:
            child = rng.choices(children, [confidence[i] for i in children])[0]
            drawn = token[child]
        else:
            child = None
            drawn = rng.choice([t for t in ids if t not in {token[i] for i in children}] or [999])
        tops = [drawn, *rng.sample([t for t in IDS if t != drawn], 4)]
        distribution = sorted((rng.random() ** 3 for _ in range(5)), reverse=True)
        distribution = [p / (sum(distribution) + 0.2) for p in distribution]
        checks.append(Check(at, drawn, distribution[0], child, tuple(tops), tuple(distribution)))
        if child is None:
            break
        path.append(child)
        at = child
    bonus = checks[-1].drawn
    committed = (*(token[i] for i in path), bonus)
    root = rng.choice(ids) if root is None else root
    if index == 0:
        committed = (root, *committed)
    if keep is not None:
        committed = committed[:keep]
    alive = set(path[: len(committed) - (index == 0)])
    fate = [
        "pruned" if slot[i] is None else "accepted" if i in alive else "cut" if i in path else "rejected"
        for i in range(len(token))
    ]
    draft_ms, verify_ms, rest_ms = rng.uniform(30, 60), rng.uniform(150, 240), rng.uniform(2, 6)
    return Round(
        index=index,
        prefix_length=prefix_length,
        root=root,
        accepted=tuple(path),
        bonus=bonus,
        committed=committed,
        finish=finish,
        drafted=len(token),
        kept=len(kept),
        token=tuple(token),
        parent=tuple(parent),
        depth=tuple(level),
        confidence=tuple(confidence),
        value=tuple(value),
        expanded=tuple(expanded),
        slot=tuple(slot),
        target_probability=tuple(target),
        fate=tuple(fate),
        checks=tuple(checks),
        prefill_ms=90.0 if index == 0 else 0.0,
        draft_ms=draft_ms,
        verify_ms=verify_ms,
        rest_ms=rest_ms,
    )


def plain_round(index: int = 1, root: int = 3, bonus: int = 4, finish: str | None = None) -> Round:
    check = Check(ROOT, bonus, 0.8, None, (bonus, 5, 6, 7, 8), (0.8, 0.1, 0.05, 0.02, 0.01))
    return Round(index, 20 + index, root, (), bonus, (bonus,), finish, checks=(check,), verify_ms=80.0)


def prefill_round() -> Round:
    """A run that the token drawn from the prefill ended."""
    return Round(0, 20, 3, (), None, (3,), "stop", prefill_ms=90.0)


def run(rounds: int = 6, seed: int = 0, **shape: int) -> Trace:
    """A run whose rounds follow one another: each root is the round before's bonus token."""
    made: list[Round] = []
    length, root = 37, None
    for index in range(rounds):
        last = index == rounds - 1
        sharp = 2.0 + (index % 4) * 0.9
        made.append(
            grown(
                seed + index,
                index=index,
                prefix_length=length,
                root=root,
                sharpness=sharp,
                agree=0.55 + 0.1 * (index % 5),
                finish="stop" if last else None,
                **shape,
            )
        )
        length += len(made[-1].accepted) + 1
        root = made[-1].bonus
    shape_ = TreeShape(shape.get("top_k", 10), shape.get("depth", 6), shape.get("max_nodes", 59))
    settings = Settings("eagle2", shape_, Sampling(), 64)
    pair = Pair("synthetic target", "synthetic head")
    return Trace(IDS[:37], settings, shape_, pair, TOKENS, tuple(made), (("user", "Give me a recipe for pancakes."),))
