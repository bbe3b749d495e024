"""The languages of the page: where each has its page and how browsers name it. The words: `words.en`, `words.zh`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

from visual.words.say import LANGUAGES, say

DEFAULT = "en"
"""The language of the page at the app's own address."""


@dataclass(frozen=True)
class Place:
    """path: of the language's page, behind the app's own. tag: what browsers and Gradio call the language."""

    path: str
    tag: str


PLACES: Mapping[str, Place] = MappingProxyType({DEFAULT: Place("", "en"), "zh": Place("zh", "zh-CN")})


def others(language: str) -> tuple[str, ...]:
    """The languages one can change to."""
    return tuple(name for name in LANGUAGES if name != language)


def address(language: str, query: str = "") -> str:
    """The address of a language's page, relative to any other's. The default one is named, or a visitor whose browser
    speaks another language would be led away from it.
    """
    named = f"lang={DEFAULT}" if language == DEFAULT else ""
    told = "&".join(part for part in (named, query) if part)
    return f"./{PLACES[language].path}{'?' if told else ''}{told}"


def for_browser() -> dict:
    """What `language.js` knows of each language."""
    return {name: {**asdict(place), "title": say("page.title", name)} for name, place in PLACES.items()}
