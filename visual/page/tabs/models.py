"""Handlers of the tab of models: choosing a pair, loading it, giving that up. On a public page all are the owner's."""

from __future__ import annotations

import secrets

import gradio as gr

from eagle2.loading.known_pairs import KNOWN_PAIRS
from visual.figures.token_labels import note
from visual.page.context import Common
from visual.page.tabs import pairs
from visual.page.tabs.models_parts import MOST_NAME
from visual.server.conversation import Visit
from visual.server.loads import Load


class Picking:
    """One page's tab of models. A load goes on in the background; each page that shows the tab asks how far it is."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.studio, self.language = common.studio, common.language
        self.fields = common.parts.models

    def may(self, visit: Visit) -> bool:
        """Whether a visitor may load pairs, and look for folders on this machine."""
        return visit.owner or not self.studio.options.key

    def tab(self, event: gr.SelectData, request: gr.Request) -> dict:
        """The tab was opened: what is in use, what is known and fits now, and the load that may be going on."""
        if event.value != self.common.say("page.tab_models"):
            return {self.fields.used: gr.skip()}
        visit, load = self.common.visit(request), self.studio.load
        running = load is not None and load.state == "running"
        shown = {self.fields.progress: pairs.progress(load, self.language)} if running else {}
        return {**self._used(), **self._known(visit), **self._rights(visit), **self._buttons(running), **shown}

    def prove(self, key: str, request: gr.Request) -> dict:
        """The owner's key was given."""
        visit = self.common.visit(request)
        visit.owner = secrets.compare_digest(key.strip().encode(), self.studio.options.key.encode())
        if not self.may(visit):
            return {self.fields.progress: self.common.tell("pair.key_wrong", True)}
        return {
            self.fields.key: "",
            self.fields.progress: "",
            **self._rights(visit),
            **self._known(visit),
        }

    def choose(self, event: gr.EventData, request: gr.Request) -> dict:
        """A known pair was chosen: its names go into the fields."""
        place = event._data.get("pair")
        if type(place) is not int or not -1 <= place < len(KNOWN_PAIRS):
            return {self.fields.weight: gr.skip()}
        target, head = ("", "") if place < 0 else (KNOWN_PAIRS[place].target, KNOWN_PAIRS[place].head)
        return {self.fields.target: target, self.fields.head: head, **self.weigh(target, head, request)}

    def weigh(self, target: str, head: str, request: gr.Request) -> dict:
        """What the pair in the fields takes, where that is known without asking the hub."""
        from eagle2.loading.estimate import asks_hub

        if not self.may(self.common.visit(request)):
            return self._refused()
        if fault := self._too_long(target, head):
            return {self.fields.weight: fault}
        asked = target.strip() or None, head.strip() or None
        if asks_hub(*asked):
            return {self.fields.weight: self.common.tell("pair.ask_hub")}
        try:
            told = pairs.weighed(self.studio.estimate(*asked), self.language)
        except ValueError as error:
            told = note(str(error), alert=True)
        return {self.fields.weight: told}

    def load(self, target: str, head: str, request: gr.Request) -> dict:
        """Begin to load the pair in the fields."""
        visit = self.common.visit(request)
        if not self.may(visit):
            return self._refused()
        if fault := self._too_long(target, head):
            return {self.fields.progress: fault}
        if not self.studio.switch(target.strip() or None, head.strip() or None):
            return {self.fields.progress: self.common.tell("pair.busy", True)}
        visit.awaited = self.studio.load
        return {
            self.fields.weight: "",
            self.fields.progress: pairs.progress(visit.awaited, self.language),
            **self._buttons(True),
        }

    def cancel(self, request: gr.Request) -> dict:
        """Give up the load that is going on."""
        load = self.studio.load
        if not self.may(self.common.visit(request)):
            return self._refused()
        if load is None or load.state != "running":
            return {self.fields.progress: gr.skip()}
        load.cancel()
        return {self.fields.progress: pairs.progress(load, self.language)}

    def tick(self, request: gr.Request) -> dict:
        """How far the load is; at its end, how it ended."""
        load = self.studio.load
        if load is not None and load.state == "running":
            return {self.fields.progress: pairs.progress(load, self.language)}
        visit = self.common.visit(request)
        awaited, visit.awaited = visit.awaited, None
        shown = {**self._used(), **self._known(visit), **self._buttons(False)}
        if load is None:
            return shown
        told = self._end(load)
        form = self.common.recommended() if awaited is load and load.state == "done" else {}
        visit.quiet = True
        return {**shown, **form, self.fields.progress: told, self.common.parts.status: told}

    def _end(self, load: Load) -> str:
        used = self.studio.used
        values = {"fault": load.fault, "asked": pairs.named(load.target, load.head, self.language)}
        if used is None:
            return self.common.tell(f"pair.{load.state}_none", True, **values)
        values["pair"] = pairs.told(used.engine.pair, self.language)
        return self.common.tell(f"pair.{load.state}", load.state == "failed", **values)

    def _used(self) -> dict:
        return {self.fields.used: pairs.used_card(self.studio.used, self.common.models(), self.language)}

    def _known(self, visit: Visit) -> dict:
        try:
            device, dtype, free = self.studio.room()
        except ValueError as error:  # the owner asked for a device or a dtype that is not to be had here
            return {self.fields.known: note(str(error), alert=True)}
        return {self.fields.known: pairs.known_table(dtype, device, free, self.may(visit), self.language)}

    def _rights(self, visit: Visit) -> dict:
        """The form for who may use it, else the field for the key: a visit can come from another language's page."""
        may = self.may(visit)
        return {self.fields.proof: gr.update(visible=not may), self.fields.form: gr.update(visible=may)}

    def _buttons(self, running: bool) -> dict:
        return {
            self.fields.load: gr.update(interactive=not running),
            self.fields.cancel: gr.update(interactive=running),
            self.fields.clock: gr.Timer(active=running),
        }

    def _too_long(self, *names: str) -> str:
        """The note that refuses a name no model can have; "" where there is none."""
        longest = max(map(len, names))
        return self.common.tell("pair.name_long", True, count=longest, most=MOST_NAME) if longest > MOST_NAME else ""

    def _refused(self) -> dict:
        return {self.fields.progress: self.common.tell("pair.not_owner", True)}
