"""Looks up what a reader sees, by key and language. The tables are `words.en` and `words.zh`; no string is elsewhere.

`{name}` is filled in by `say` in Python and by `fill` in the browser. Plural forms are pairs: key "…_one", "…_many".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from visual.words.en import ENGLISH
from visual.words.zh import CHINESE

PLACE = re.compile(r"\{(\w+)\}")

LANGUAGES: Mapping[str, Mapping[str, str]] = MappingProxyType({"en": ENGLISH, "zh": {**ENGLISH, **CHINESE}})
"""What a table lacks is said in English: a sentence to read is better than a page that fails. A test names it."""


def say(key: str, language: str = "en", **values: object) -> str:
    """The string of a key, filled in. An unknown key raises: it is a fault, not a blank."""
    return PLACE.sub(lambda place: str(values.get(place[1], place[0])), LANGUAGES[language][key])
