"""The settings form: its numbers -> `Settings`, or the sentence that says what is wrong; and what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eagle2.methods import DRAFT_MODEL, DRAFTERS, EAGLE_PATHS, LOOKUP, METHODS, STATIC, WALK, drafter_of, method
from eagle2.settings import Sampling, Settings, TreeShape, effective_shape, pool_size
from eagle2.tree_paths import Paths, PathsError, parse, to_text
from visual.figures.token_labels import for_html, note
from visual.words.say import say

MOST = TreeShape(top_k=32, depth=12, max_nodes=256)
"""What a visitor can ask for: larger trees are neither faster nor readable."""

MOST_TEMPERATURE, LEAST_TOP_P = 2.0, 0.05
"""Beyond these a text is noise, or greedy under another name."""

MOST_CHARACTERS = {"prompt": 20_000, "system": 8_000, "answer": 100_000}
"""Of the texts that a visitor writes. The boxes hold no more; what is sent past them is refused."""

MOST_SEED = 2**53 - 1
"""The largest whole number that a browser holds exactly."""

NUMBERS = ("top_k", "depth", "max_nodes", "temperature", "top_p", "sample_top_k", "seed", "max_new_tokens")
FIELDS = ("method", *NUMBERS, "drafter", "tree")


@dataclass(frozen=True)
class Form:
    """The form's values as Gradio or a link delivers them; whole numbers may come as floats.

    drafter: one of `methods.DRAFTERS`, or "" for the method's own. tree: the text of the static tree that method
    "static" drafts; other methods have no use for it.
    """

    method: object = "eagle2"
    top_k: object = TreeShape().top_k
    depth: object = TreeShape().depth
    max_nodes: object = TreeShape().max_nodes
    temperature: object = 0.0
    top_p: object = 1.0
    sample_top_k: object = 0
    seed: object = 0
    max_new_tokens: object = 96
    drafter: object = ""
    tree: object = to_text(EAGLE_PATHS)

    @classmethod
    def of(cls, s: Settings) -> Form:
        """The form that asks for these settings."""
        sampling = (s.sampling.temperature, s.sampling.top_p, s.sampling.top_k, s.sampling.seed)
        shape = (s.shape.top_k, s.shape.depth, s.shape.max_nodes)
        tree = cls.tree if s.paths is None else to_text(s.paths)
        return cls(s.policy, *shape, *sampling, s.max_new_tokens, s.drafter or "", tree)

    def asks_for(self, s: Settings) -> bool:
        """Whether it asks for these settings and no others."""
        try:
            return self.settings(s.max_new_tokens) == s
        except ValueError:
            return False

    def settings(
        self, most_new_tokens: int, language: str = "en", methods: Sequence[str] = (*METHODS, STATIC)
    ) -> Settings:
        """Checked settings. Raises ValueError in one sentence, in the reader's language where we wrote it.

        methods: those that the page offers.
        """
        if self.method not in methods:
            raise ValueError(say("form.unknown_method", language, method=str(self.method)[:40]))
        if self.drafter not in drafters(methods):
            raise ValueError(say("form.unknown_drafter", language, drafter=str(self.drafter)[:40]))
        shape = TreeShape(
            self._whole("top_k", MOST.top_k, language),
            self._whole("depth", MOST.depth, language),
            self._whole("max_nodes", MOST.max_nodes, language),
        )
        sampling = Sampling(
            self._real("temperature", 0, MOST_TEMPERATURE, language),
            self._real("top_p", LEAST_TOP_P, 1, language),
            self._whole("sample_top_k", 2**31, language, least=0),
            self._whole("seed", MOST_SEED, language, least=0),
        )
        cap = self._whole("max_new_tokens", most_new_tokens, language)
        paths = read_tree(self.tree, language) if self.method == STATIC else None
        return Settings(str(self.method), shape, sampling, cap, paths, str(self.drafter) or None)

    def _number(self, name: str, language: str) -> float:
        value = getattr(self, name)
        shown = "" if value is None else str(value)[:40]
        fault = say("form.no_number", language, name=say(f"form.{name}", language), value=shown)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(fault) from error
        if not math.isfinite(number):
            raise ValueError(fault)
        return number

    def _real(self, name: str, least: float, most: float, language: str) -> float:
        value = self._number(name, language)
        if not least <= value <= most:
            told, bounds = say(f"form.{name}", language), {"least": f"{least:g}", "most": f"{most:g}"}
            raise ValueError(say("form.range_real", language, name=told, value=f"{value:g}", **bounds))
        return value

    def _whole(self, name: str, most: int, language: str, least: int = 1) -> int:
        value = self._number(name, language)
        if value != int(value) or not least <= value <= most:
            told = say(f"form.{name}", language)
            raise ValueError(say("form.range", language, name=told, value=f"{value:g}", least=least, most=most))
        return int(value)


def drafters(methods: Sequence[str]) -> tuple[str, ...]:
    """What can be chosen as drafter beside these methods; first "", the method's own."""
    return ("", *(who for who in DRAFTERS if who != DRAFT_MODEL or any(method(m).drafter == who for m in methods)))


def check_length(kind: str, text: str, language: str = "en") -> None:
    """Raise ValueError where a visitor's text is too long. kind: one of `MOST_CHARACTERS`."""
    if len(text) > MOST_CHARACTERS[kind]:
        name, most = say(f"form.text.{kind}", language), MOST_CHARACTERS[kind]
        raise ValueError(say("form.too_long", language, name=name, count=len(text), most=most))


def read_tree(text: object, language: str = "en") -> Paths:
    """The paths of a static tree's text. Raises ValueError in one sentence, in the reader's language."""
    try:
        return parse(str(text or ""), MOST)
    except PathsError as error:
        raise ValueError(say(f"own.fault.{error.kind}", language, **error.values)) from error


def explain(form: Form, most_new_tokens: int, language: str = "en") -> str:
    """What the settings mean, as HTML: pool, verified nodes and cost, what is clamped, or what is wrong."""
    try:
        settings = form.settings(most_new_tokens, language)
    except ValueError as error:
        return note(str(error), alert=True)
    row, asked = settings.method, settings.shape
    lookup = drafter_of(row.name, settings.drafter) == LOOKUP
    paths = settings.paths
    shape = TreeShape.around(paths) if paths else effective_shape(row.name, asked, 1 if lookup else 2**31)
    lines = [say(f"method.{row.name}", language)]
    if settings.drafter:
        lines.append(say("form.drafted_by", language, drafter=say(f"drafter.{settings.drafter}", language)))
    if shape is None:
        lines.append(say("form.cost_plain", language))
    else:
        static = row.static
        drafted = shape.max_nodes if static else pool_size(shape.top_k, shape.depth)
        sums = {"k": shape.top_k, "d": shape.depth, "less": shape.depth - 1, "pool": drafted, "kept": shape.max_nodes}
        pool = "form.pool_chain" if shape.top_k == 1 else "form.pool"
        pool = "form.pool_static" if static else "form.pool_auto" if row.needs_costs else pool
        lines.append(say("form.pool_lookup" if lookup else pool, language, **sums))
        cost = "form.cost_lookup" if lookup else "form.cost_auto" if row.needs_costs else "form.cost"
        lines.append(say(cost, language, rows=shape.max_nodes + 1, passes=shape.depth, most=shape.depth + 1))
        if not static and shape.max_nodes != asked.max_nodes:
            lines.append(say("form.clamped", language, asked=asked.max_nodes, kept=shape.max_nodes))
        if static and asked != shape:
            lines.append(say("form.fixed", language))
    sampled = "form.sampled" if settings.rule == WALK else "form.sampled_sps"
    lines.append(say("form.greedy" if settings.sampling.greedy else sampled, language, seed=settings.sampling.seed))
    return "".join(f"<p>{for_html(line)}</p>" for line in lines)
