"""A link that brings back prompt, settings and round: the page's query string, written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from urllib.parse import urlencode

from visual.page.form import Form

MOST_CHARACTERS = 4000


@dataclass(frozen=True)
class Link:
    """Where a link leads: a recording by name, or a prompt with settings; then a round (from 1), or none."""

    recording: str = ""
    prompt: str = ""
    system: str = ""
    form: Form = field(default_factory=Form)
    round: int = 0

    def query(self) -> str:
        """The query string, only what differs from the defaults."""
        told = {"recording": self.recording} if self.recording else {"prompt": self.prompt, "system": self.system}
        if not self.recording:
            plain = asdict(Form())
            told |= {name: value for name, value in asdict(self.form).items() if value != plain[name]}
        told["round"] = self.round
        return urlencode({name: value for name, value in told.items() if value not in ("", 0)})


def fits(*texts: str) -> bool:
    """Whether a link can hold these: what is longer would come back cut."""
    return max(map(len, texts)) <= MOST_CHARACTERS


def read(query: Mapping[str, str], most_new_tokens: int = Form().max_new_tokens) -> Link:
    """The link of a page's query parameters; unknown ones are ignored, values are checked where they are used.

    most_new_tokens: what the page allows; a link that asks for no number gets no more.
    """
    given = {name: str(value)[:MOST_CHARACTERS] for name, value in query.items()}
    default = Form(max_new_tokens=min(Form().max_new_tokens, most_new_tokens))
    form = replace(default, **{f.name: given[f.name] for f in fields(Form) if f.name in given})
    number = given.get("round", "0")
    place = int(number) if number.isdecimal() and len(number) < 7 else 0
    return Link(given.get("recording", ""), given.get("prompt", ""), given.get("system", ""), form, place)
