"""The English table: one module for each part of the page. To add a language, write a package like this one."""

from pathlib import Path

from visual.words.en.lab import LAB
from visual.words.en.lesson import LESSON
from visual.words.en.models import MODELS
from visual.words.en.page import PAGE
from visual.words.en.player import PLAYER
from visual.words.en.trees import TREES

METHOD = {"method.page": (Path(__file__).parent.parent / "method.en.md").read_text(encoding="utf-8")}
ENGLISH = {**PLAYER, **PAGE, **LAB, **MODELS, **TREES, **LESSON, **METHOD}
