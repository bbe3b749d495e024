"""Handlers of the tab "Your tree": a static tree picked from a round's pool or written as paths, and what it brings.

The tab's text is the tree; the settings form reads the same text for the method "static".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import gradio as gr

from eagle2.analysis import static_trees
from eagle2.analysis.recut import places
from eagle2.methods import EAGLE_PATHS
from eagle2.tree_paths import Paths, to_json, to_text
from visual.figures.token_labels import for_html, note
from visual.page import html
from visual.page.context import Common
from visual.page.form import read_tree
from visual.page.tabs.your_tree import picker
from visual.page.tabs.your_tree.weighing import ROWS, Brought, Row, Weighing, kept_places
from visual.server.conversation import Turn

MOST_KB = 64
"""Of a file that a tree is read from."""


class Drawing:
    """One page's trees of one's own."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.parts, self.studio, self.language = common.parts, common.studio, common.language
        self.weighing = Weighing()

    def tab(self, event: gr.SelectData, request: gr.Request, text: str) -> dict:
        """The tab was opened: the pool of the round that is shown, with the tree as it stands."""
        if event.value != self.common.say("page.tab_own"):
            return {self.parts.own.note: gr.skip()}
        return self._round(request, text)

    def moved(self, event: gr.EventData, request: gr.Request, text: str) -> dict:
        """The player shows another round."""
        visit = self.common.visit(request)
        if visit.shown is not None and visit.shown.run == event._data.get("run"):
            visit.round = int(event._data.get("round") or 0)
        return self._round(request, text)

    def picked(self, event: gr.EventData, request: gr.Request) -> dict:
        """Nodes were picked: the tree comes as text."""
        text = str(event._data.get("paths") or "")
        try:
            tree = read_tree(text, self.language)
        except ValueError as error:
            return {self.parts.own.text: text, **self._told(request, None, text, error)}
        return {self.parts.own.text: to_text(tree), **self._told(request, tree)}

    def typed(self, event: gr.EventData, request: gr.Request) -> dict:
        """The text was edited. While it is no tree, the pool shows the last that was one."""
        text = str(event._data.get("text") or "")
        try:
            tree = read_tree(text, self.language)
        except ValueError as error:
            return self._told(request, None, text, error)
        return {self.parts.own.picker: picker.picks(tree), **self._told(request, tree)}

    def start(self, name: str) -> Callable[..., dict]:
        """The handler of one button of `parts.own.start`: another tree to go on from."""

        def put(request: gr.Request, text: str) -> dict:
            turn, index = self._shown(request)
            try:
                tree = self._beginning(name, turn, index, text)
            except ValueError as error:
                return {self.parts.own.note: note(str(error), alert=True)}
            told = self._told(request, tree or None)
            return {self.parts.own.text: to_text(tree), self.parts.own.picker: picker.picks(tree), **told}

        return put

    def _beginning(self, name: str, turn: Turn | None, index: int, text: str) -> Paths:
        """EAGLE's tree; what the round verified; what fits the run best, at as many nodes as now; or no tree at all."""
        if name == "nothing":
            return ()
        if name == "eagle":
            return EAGLE_PATHS
        if turn is None:
            raise ValueError(self.common.say("own.none"))
        if name == "round":
            return kept_places(turn, index)
        try:
            nodes = len(read_tree(text, self.language))
        except ValueError:
            nodes = len(EAGLE_PATHS)
        tree = static_trees.fitted(self.weighing.ways(turn), nodes)
        if not tree:
            raise ValueError(self.common.say("own.not_fitted"))
        return tree

    def opened(self, request: gr.Request, path: str | None) -> dict:
        """A tree from a file."""
        try:
            size = Path(path).stat().st_size
            if size > MOST_KB * 1024:
                raise ValueError(self.common.say("own.not_read", size=size // 1024, most=MOST_KB))
            tree = read_tree(Path(path).read_text(encoding="utf-8", errors="replace"), self.language)
        except (ValueError, OSError) as error:
            return {self.parts.own.note: note(str(error), alert=True)}
        return {
            self.parts.own.text: to_text(tree),
            self.parts.own.picker: picker.picks(tree),
            **self._told(request, tree),
        }

    def save(self, text: str) -> dict:
        """The tree as a file."""
        try:
            written = to_json(read_tree(text, self.language))
        except ValueError as error:
            return {self.parts.own.note: note(str(error), alert=True), self.parts.text: ""}
        return {self.parts.text: written, self.parts.name: "tree.json", self.parts.kind: "application/json"}

    def grow(self, request: gr.Request, text: str) -> Iterator[dict]:
        """The same trees grown by the model from the round's own text: nothing is missing then."""
        visit = self.common.visit(request)
        turn, index = self._shown(request)
        if visit.busy:
            yield {self.parts.own.note: self.common.tell("status.busy", True)}
            return
        if turn is None:
            yield {self.parts.own.note: self.common.tell("own.none")}
            return
        asked = visit.latest["own"] = object()
        try:
            tree = read_tree(text, self.language)
            self.common.allowed(replace(turn.settings, policy="eagle2", paths=None, drafter=None, max_new_tokens=1))
            self.common.check_models(turn)
            rows = self.weighing.grown(turn, tree, lambda settings: self.studio.regrow(turn, index, settings))
        except Exception as error:  # whatever a model raises, the tab says it
            yield {self.parts.own.note: self.common.told(error)}
            return
        if visit.latest["own"] is not asked or visit.shown is not turn:  # another tree or round is shown by now
            yield {self.parts.own.note: gr.skip()}
            return
        yield {self.parts.own.note: self.common.tell("own.grown"), self.parts.own.table: self._table(turn, index, rows)}

    def _shown(self, request: gr.Request) -> tuple[Turn | None, int]:
        visit = self.common.visit(request)
        turn = visit.shown
        if turn is None or not turn.rounds:
            return None, 0
        return turn, min(visit.round, len(turn.rounds) - 1)

    def _round(self, request: gr.Request, text: str) -> dict:
        turn, index = self._shown(request)
        self.common.visit(request).latest["own"] = object()
        if turn is None or not turn.rounds[index].token:
            told = self.common.tell("own.none" if turn is None else "own.no_nodes", round=index + 1)
            return {self.parts.own.note: told, self.parts.own.table: "", self.parts.own.picker: picker.empty()}
        try:
            tree, fault = read_tree(text, self.language), None
        except ValueError as error:
            tree, fault = None, error
        return {
            self.parts.own.picker: picker.message(turn, index, tree or ()),
            **self._told(request, tree, text, fault),
        }

    def _told(self, request: gr.Request, tree: Paths | None, text: str = "", fault: Exception | None = None) -> dict:
        """Note and table for a tree, or for a text that is none."""
        self.common.visit(request).latest["own"] = object()
        if tree is None:
            told = note(str(fault), alert=True) if text.strip() else self.common.tell("own.nothing_yet")
            return {self.parts.own.note: told, self.parts.own.table: ""}
        turn, index = self._shown(request)
        if turn is None or not turn.rounds[index].token:
            return {self.parts.own.note: self.common.tell("own.none"), self.parts.own.table: ""}
        rows = self.weighing.rows(turn, index, tree)
        outside = len(set(tree) - set(places(turn.rounds[index], turn.settings.paths)))
        told = self.common.tell("own.outside", count=outside) if outside else ""
        return {self.parts.own.note: told, self.parts.own.table: self._table(turn, index, rows)}

    def _table(self, turn: Turn, index: int, rows: list[Row]) -> str:
        """A row for each tree, and what its numbers mean."""
        say = self.common.say
        columns = ("nodes", "depth", "verified", "predicted", "tokens", "mean")
        heads = [say(f"own.col.{name}", round=index + 1) for name in columns]
        named = [(say(f"own.row.{row.key}", nodes=row.nodes), self._cells(row)) for row in rows]
        table = html.columns_table(heads, named, corner=say("own.tree"))
        told = [say("own.caption")]
        if not all(row.whole and row.here.exact and (row.mean is None or row.mean.exact) for row in rows):
            told.append(say("own.caption_open"))
        if len(rows) < len(ROWS):
            told.append(say("own.caption_missing"))
        return f'{table}<p class="es-muted">{for_html(" ".join(told))}</p>'

    def _cells(self, row: Row) -> list[str]:
        counts = [str(row.nodes), str(row.depth), str(row.nodes + 1)]
        predicted = self._brought(Brought(row.predicted, row.whole), ".2f")
        return [*counts, predicted, self._brought(row.here, "d"), self._brought(row.mean, ".2f")]

    def _brought(self, found: Brought | None, form: str) -> str:
        if found is None:
            return self.common.say("own.unknown")
        number = f"{found.tokens:{form}}"
        return number if found.exact else self.common.say("own.at_least", number=number)
