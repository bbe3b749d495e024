"""Links: what is written comes back; what strangers write is bounded and never trusted."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from visual.page.form import Form
from visual.page.link import MOST_CHARACTERS, Link, fits, read


def back(query: str, most: int = 512) -> Link:
    return read(dict(parse_qsl(query, keep_blank_values=True)), most)


HOSTILE = "<script>alert(1)</script> $5 & 10% ?a=b#c +x 😀\n\t“quotes”"


@pytest.mark.parametrize("prompt", ["hello", HOSTILE, "a=1&prompt=b", "   spaces   "])
def test_a_prompt_with_its_settings_comes_back(prompt):
    form = Form("chain", 1, 4, 4, 0.5, 0.9, 5, 7, 20)
    made = back(Link(prompt=prompt, system=HOSTILE, form=form, round=3).query())
    assert (made.prompt, made.system, made.round) == (prompt, HOSTILE, 3)
    assert made.form.settings(512) == form.settings(512)


def test_only_what_differs_from_the_defaults_is_written():
    assert Link(prompt="hi").query() == "prompt=hi"
    assert Link(prompt="hi", form=Form(seed=4)).query() == "prompt=hi&seed=4"


def test_a_recording_comes_back():
    assert back(Link(recording="code", prompt="ignored", round=2).query()) == Link(recording="code", round=2)


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "", "9" * 30, "²", "1e3", "0"])
def test_a_round_that_is_no_number_is_none(number):
    assert read({"prompt": "a", "round": number}).round == 0


def test_what_is_too_long_is_cut_and_not_linked():
    assert len(read({"prompt": "x" * 10**6}).prompt) == MOST_CHARACTERS
    assert fits("x" * MOST_CHARACTERS, "")
    assert not fits("x" * (MOST_CHARACTERS + 1), "")
    assert not fits("", "x" * (MOST_CHARACTERS + 1))


def test_unknown_names_are_ignored():
    assert read({"prompt": "a", "target": "evil", "__class__": "x", "most": "9"}) == Link(prompt="a")


def test_hostile_values_are_refused_where_they_are_used():
    made = read({"prompt": "a", "top_k": "1e999", "method": "__import__"})
    with pytest.raises(ValueError, match="unknown"):
        made.form.settings(512)


def test_a_page_with_a_small_limit_still_opens_a_link_that_asks_for_no_number():
    assert back("prompt=hi", most=10).form.settings(10).max_new_tokens == 10
    with pytest.raises(ValueError, match="from 1 to 10"):
        back("prompt=hi&max_new_tokens=11", most=10).form.settings(10)


def test_a_tree_of_ones_own_comes_back_with_its_method_and_goes_with_no_other():
    form = Form("static", tree="[0], [1],\n[0, 0]")
    assert back(Link(prompt="hi", form=form).query()).form.settings(512).paths == ((0,), (1,), (0, 0))
    assert "tree" not in Link(prompt="hi", form=Form.of(Form("chain", tree="[0]").settings(512))).query()
