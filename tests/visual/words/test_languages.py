"""The tables of all languages against one another, and what the pages' addresses and sentences make of them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import gradio as gr
import pytest
from fixtures_edges import TRACE
from tiny_round import ROUND, TOKENS

import app
from visual.figures.phases import phases
from visual.page import chat
from visual.server.conversation import Turn
from visual.words import zh
from visual.words.en import ENGLISH
from visual.words.languages import DEFAULT, PLACES, address, others
from visual.words.narration import Narrator, plain
from visual.words.say import LANGUAGES

VISUAL = Path(app.__file__).parent / "visual"
ENGLISH_MODULES = sorted(path.stem for path in (VISUAL / "words" / "en").glob("[!_]*.py"))
PLACE = re.compile(r"\{(\w+)\}")

# Words of a Chinese sentence that are written in Latin letters: names, symbols, keys, and the settings' identifiers.
LATIN = set(
    re.findall(
        r"[A-Za-z][\w-]*",
        """EAGLE EAGLE-2 EAGLE-3 Python JSON HTML CPU LM head Top-k Top-p top_k top_k² top_p depth max_nodes
        Home Tab Esc home end esc tab shift ctrl V c d m p q min max sps “It is a good” arXiv Li Wei Zhang kB
        Faster Inference of Language Models with Dynamic Draft Trees
        Hugging Face hub hf auth login config json rope float32 eagle_aux_hidden_state_layer_ids
        SmolLM2-135M-Instruct""",
    )
)


def table(module: str) -> dict[str, str]:
    """The one table of a module of words; it has the module's name."""
    return getattr(importlib.import_module(module), module.rsplit(".", 1)[1].upper())


@pytest.mark.parametrize("name", ENGLISH_MODULES)
def test_each_english_module_has_its_chinese_one_with_the_same_keys(name):
    english, chinese = table(f"visual.words.en.{name}"), table(f"visual.words.zh.{name}")
    assert {"lacks": english.keys() - chinese.keys(), "has no": chinese.keys() - english.keys()} == {
        "lacks": set(),
        "has no": set(),
    }


def test_nothing_of_the_chinese_page_falls_back_to_english():
    assert zh.CHINESE.keys() ^ ENGLISH.keys() == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_places_to_fill(language):
    for key in ENGLISH.keys() - {"method.page"}:  # whose formulas have braces of their own
        assert set(PLACE.findall(LANGUAGES[language][key])) == set(PLACE.findall(ENGLISH[key])), key


def test_chinese_sentences_hold_no_english_words():
    for key, text in zh.CHINESE.items():
        bare = re.sub(r"\$\$?.*?\$\$?|`[^`]*`|\{\w+\}", " ", text, flags=re.S)
        assert set(re.findall(r"[A-Za-z][\w-]*", bare)) <= LATIN, key


def test_every_language_has_a_place_and_says_its_own_name():
    assert PLACES.keys() == LANGUAGES.keys()
    assert [LANGUAGES[name]["page.language"] for name in ("en", "zh")] == ["English", "中文"]
    assert others("en") == ("zh",)
    assert others("zh") == ("en",)


def test_the_default_language_is_named_in_its_address_so_that_no_browser_leads_away_from_it():
    assert address("zh") == "./zh"
    assert address("zh", "resume=k") == "./zh?resume=k"
    assert address(DEFAULT, "resume=k") == "./?lang=en&resume=k"


def test_each_language_has_its_page_in_the_app():
    blocks, _ = app.build(app.parse([]))
    assert [path for path, *_ in blocks.pages] == [place.path for place in PLACES.values()]
    ids = {path: [b.elem_id for b in blocks.blocks.values() if b.page == path and b.elem_id] for path in ("", "zh")}
    assert [name for name in ids["zh"] if not name.startswith("to-")] == [
        name for name in ids[""] if not name.startswith("to-")
    ]
    prompts = [b for b in blocks.blocks.values() if isinstance(b, gr.Textbox) and b.elem_id == "prompt"]
    assert [prompt.placeholder for prompt in prompts] == ["Ask something… (Enter sends)", "输入问题……（按回车发送）"]


def test_a_round_is_told_in_chinese_without_the_blanks_that_english_needs():
    narrator = Narrator(TOKENS, "zh")
    told = {phase.name: plain(narrator.narrate(ROUND, phase)) for phase in phases(ROUND)}
    assert told["rerank"] == (
        "全部 6 个草稿节点中，保留值最高的 5 个：·sorry（V = 0.12）最后一个入选，·be（V = 0.030）第一个落选。"
    )
    assert told["accept"] == (
        "目标模型认同 'm 和 ·glad，直到该分支的末端；它在那里补上的令牌 ·you 便是额外令牌。"
        "目标模型一次前向传播得到三个令牌；按保留节点的值预测，应得 2.5 个。"
    )


def test_a_recorded_run_is_named_in_the_page_s_language():
    shipped = Turn.recorded(TRACE, "pancakes")
    shipped.recording = "pancakes"
    assert chat.title(shipped, "zh").startswith("菜谱")
    assert '"运行记录：mine.json"' in chat.message([Turn.recorded(TRACE, "mine.json")], "zh")
    assert '"Recorded run: mine.json"' in chat.message([Turn.recorded(TRACE, "mine.json")])
