"""One sentence per phase with that round's own numbers: a Round and a Phase in, parts of a sentence out.

Parts keep tokens apart from words, so that a page can set them in type without reading them as markup. Claims about
values ("of highest value") are checked against the round, so other tree policies get other words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eagle2.analysis.target_choices import by_value
from eagle2.methods import REJECTION
from eagle2.trace.rounds import ROOT, Round
from visual.figures.phases import FED, NEW, Phase, walk
from visual.figures.token_labels import token_label
from visual.words import say as words

LISTED = 5
"""Longer paths are told as the first ones, the number between, and the last one."""


@dataclass(frozen=True)
class Part:
    """kind: "text", "token" (of the draft), "root", "bonus" or "number"."""

    kind: str
    text: str


Sentence = tuple[Part, ...]


def plain(sentence: Sentence) -> str:
    return "".join(part.text for part in sentence)


def number(value: float) -> str:
    """Two decimals, or two significant digits where two decimals would say little: 0.63, 0.0048, 3e-7."""
    if value >= 0.0995 or value == 0:
        return f"{value:.2f}"
    return f"{value:.2g}" if value < 0.0001 else f"{value:.4f}".rstrip("0") if value < 0.00995 else f"{value:.3f}"


def told_apart(a: float, b: float) -> tuple[str, str]:
    """Both numbers with as few digits as show that they differ; up to six."""
    for digits in range(2, 7):
        pair = (number(a), number(b)) if digits == 2 else (f"{a:.{digits}g}", f"{b:.{digits}g}")
        if pair[0] != pair[1]:
            break
    return pair


class Narrator:
    """Speaks one language about one run's tokens."""

    def __init__(self, tokens: Mapping[int, bytes], language: str = "en") -> None:
        self.tokens = tokens
        self.language = language

    def narrate(self, round: Round, phase: Phase) -> Sentence:
        if phase.key == "prefill":
            return self.fill("say.prefill", root=self.root(round))
        if not round.token:
            return self.without_nodes(round, phase)
        return getattr(self, phase.key)(round, phase)

    # parts

    def root(self, round: Round) -> Part:
        return Part("root", token_label(round.root, self.tokens))

    def node(self, round: Round, index: int) -> Part:
        return self.root(round) if index == ROOT else Part("token", token_label(round.token[index], self.tokens))

    def bonus(self, round: Round) -> Part:
        return Part("bonus", token_label(round.bonus, self.tokens))

    def word(self, count: int) -> str:
        words = self.text("numbers").split()
        return words[count] if count < len(words) else str(count)

    def text(self, key: str) -> str:
        return words.say(key, self.language)

    def fill(self, key: str, **values: Part | Sentence | str | int | float) -> Sentence:
        """The template of a key with parts in its places; bare ints and floats become numbers."""
        parts: list[Part] = []
        for piece in re.split(r"(\{\w+\})", self.text(key)):
            if not piece.startswith("{"):
                parts.append(Part("text", piece))
                continue
            value = values[piece[1:-1]]
            if isinstance(value, Part):
                parts.append(value)
            elif isinstance(value, tuple):
                parts.extend(value)
            elif isinstance(value, str):
                parts.append(Part("text", value))
            else:
                parts.append(Part("number", number(value) if isinstance(value, float) else str(value)))
        return tuple(part for part in parts if part.text)

    def listed(self, parts: list[Part], last: str) -> Sentence:
        """a, b and c; long lists keep their ends. `last` is the key of the last separator."""
        if len(parts) > LISTED:
            more = Part("text", words.say("say.more", self.language, count=len(parts) - LISTED + 1))
            parts = [*parts[: LISTED - 2], more, parts[-1]]
        joined: list[Part] = []
        for place, part in enumerate(parts):
            if place:
                joined.append(Part("text", self.text(last if place == len(parts) - 1 else "say.comma")))
            joined.append(part)
        return tuple(joined)

    # phases

    def expand(self, round: Round, phase: Phase) -> Sentence:
        new = [i for i, state in enumerate(phase.nodes) if state == NEW]
        best = max(new, key=lambda i: (round.value[i], -i))
        if phase.level == 1:
            key = "say.expand_first_one" if len(new) == 1 else "say.expand_first_many"
            confidence = float(round.confidence[best])
            return self.fill(
                key, root=self.root(round), count=len(new), best=self.node(round, best), confidence=confidence
            )
        fed = [i for i, state in enumerate(phase.nodes) if state == FED]
        above = [i for i in range(len(round.token)) if round.depth[i] == phase.level - 1]
        first = max(fed, key=lambda i: (round.value[i], -i)) if fed else round.parent[best]
        top = sorted(above, key=lambda i: (-round.value[i], i))[: len(fed)]
        if len(fed) == 1 and len(new) == 1:
            key = "say.expand_one"
        elif set(fed) == set(above):
            key = "say.expand_all"
        else:
            key = "say.expand_top" if set(top) == set(fed) and len(fed) > 1 else "say.expand_policy"
        return self.fill(
            key,
            fed=self.node(round, first),
            fed_value=float(round.value[first]) if first != ROOT else 1.0,
            fed_count=len(fed),
            above=phase.level - 1,
            level=phase.level,
            count=len(new),
            best=self.node(round, best),
            value=float(round.value[best]),
        )

    def rerank(self, round: Round, phase: Phase) -> Sentence:
        order = by_value(round)
        kept, drafted = len(round.flattened), len(round.token)
        if kept == drafted:
            return self.fill("say.rerank_one" if kept == 1 else "say.rerank_all", drafted=drafted)
        if set(order[:kept]) != set(round.flattened):
            return self.fill("say.rerank_policy", kept=kept, drafted=drafted)
        last, out = order[kept - 1], order[kept]
        last_value, out_value = told_apart(round.value[last], round.value[out])
        return self.fill(
            "say.rerank_top",
            drafted=drafted,
            kept=kept,
            last=self.node(round, last),
            last_value=Part("number", last_value),
            out=self.node(round, out),
            out_value=Part("number", out_value),
        )

    def flatten(self, round: Round, phase: Phase) -> Sentence:
        rows = 1 + len(round.flattened)
        seen = rows + sum(round.depth[i] for i in round.flattened)
        return self.fill("say.flatten", rows=rows, prefix=round.prefix_length, seen=seen, pairs=rows * rows)

    def verify(self, round: Round, phase: Phase) -> Sentence:
        path = walk(round)
        rows = 1 + len(round.flattened)
        if round.rule == REJECTION:
            key = "say.sampled_all" if len(path) == round.kept else "say.sampled_some"
            return (
                *self.fill("say.sampled", rows=rows, accepted=len(path), kept=round.kept),
                *self.fill(key, bonus=self.bonus(round)),
            )
        if not path:
            return self.fill("say.verify_none", rows=rows, root=self.root(round), bonus=self.bonus(round))
        steps = self.listed([self.node(round, i) for i in path], "say.then")
        end = "say.verify_leaf" if is_leaf(round, path[-1]) else "say.verify_missing"
        return (
            *self.fill("say.verify_one" if len(path) == 1 else "say.verify_many", rows=rows, walk=steps),
            *self.fill(end, last=self.node(round, path[-1]), bonus=self.bonus(round)),
        )

    def accept(self, round: Round, phase: Phase) -> Sentence:
        path = walk(round)
        if not path:
            first = [i for i in round.flattened if round.parent[i] == ROOT]
            told = self.fill(
                "say.accept_none_one" if len(first) == 1 else "say.accept_none",
                first=self.node(round, first[0]),
                count=len(first),
                root=self.root(round),
                bonus=self.bonus(round),
            )
        else:
            key = "say.accept_leaf" if is_leaf(round, path[-1]) else "say.accept_path"
            steps = self.listed([self.node(round, i) for i in path], "say.and")
            told = self.fill(key, path=steps, last=self.node(round, path[-1]), bonus=self.bonus(round))
        total = len(path) + 1
        between = self.fill("say.between")
        sentence = (*told, *between, *self.tokens_said(total))
        sentence += self.fill("say.predicted", predicted=Part("number", f"{round.predicted:.1f}"))
        committed = len(round.committed) - round.first
        if committed < total and round.finish is not None:
            sentence += (*between, *self.fill(f"say.{round.finish}", total=total, committed=committed))
        return sentence

    def tokens_said(self, total: int) -> Sentence:
        if total == 1:
            return self.fill("say.tokens_one")
        return self.fill("say.tokens_many", count=self.word(total).capitalize())

    def without_nodes(self, round: Round, phase: Phase) -> Sentence:
        if round.drafted and phase.key == "accept":
            count = len(round.accepted)
            return self.fill("say.accept_unrecorded", accepted=count, bonus=self.bonus(round))
        return self.fill(f"say.{phase.key}_plain", root=self.root(round), bonus=self.bonus(round))


def is_leaf(round: Round, node: int) -> bool:
    """Whether a kept node has no kept child."""
    return not any(p == node and slot is not None for p, slot in zip(round.parent, round.slot, strict=True))
