"""The settings form: numbers as sliders, links and scripts send them; errors as sentences; what settings mean."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from eagle2.methods import METHODS
from eagle2.settings import Sampling, Settings, TreeShape
from visual.figures.token_labels import for_html
from visual.page.form import MOST, MOST_SEED, NUMBERS, Form, explain
from visual.server.studio import Options
from visual.words.say import say


def said(form: Form, most: int = 512) -> list[str]:
    return re.findall(r"<p[^>]*>(.*?)</p>", explain(form, most))


def test_sliders_send_whole_numbers_as_floats():
    form = Form("eagle2", 3.0, 4.0, 8.0, 0.5, 0.9, 5.0, 7.0, 20.0)
    assert form.settings(512) == Settings("eagle2", TreeShape(3, 4, 8), Sampling(0.5, 0.9, 5, 7), 20)


def test_links_send_strings():
    form = Form("chain", "1", "4", "8", "0.5", "0.9", "5", "7", "20")
    assert form.settings(512) == Settings("chain", TreeShape(1, 4, 8), Sampling(0.5, 0.9, 5, 7), 20)


def test_settings_give_their_form_back():
    settings = Settings("eagle", TreeShape(4, 5, 6), Sampling(0.7, 0.8, 9, 10), 11)
    assert Form.of(settings).settings(512) == settings


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_be_asked_for(method):
    assert Form(method=method).settings(512).policy == method
    assert "es-fault" not in explain(Form(method=method), 512)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [None, "", "many", math.nan, math.inf, "nan", "-inf", [1], {}, 10**400, "9" * 5000])
def test_what_is_no_number_is_said_so(name, value):
    with pytest.raises(ValueError, match="must be a") as caught:
        replace(Form(), **{name: value}).settings(512)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"top_k": 0}, "top_k is 0; it must be a whole number from 1 to 32."),
        ({"top_k": 33}, "top_k is 33; it must be a whole number from 1 to 32."),
        ({"depth": 2.5}, "depth is 2.5; it must be a whole number from 1 to 12."),
        ({"depth": MOST.depth + 1}, "depth is 13; it must be a whole number from 1 to 12."),
        ({"max_nodes": 257}, "max_nodes is 257; it must be a whole number from 1 to 256."),
        ({"max_new_tokens": 513}, "New tokens at most is 513; it must be a whole number from 1 to 512."),
        ({"seed": -1}, "Seed is -1; it must be a whole number from 0 to 9007199254740991."),
        ({"seed": None}, "Seed is “”; it must be a number."),
        ({"sample_top_k": -1}, "Top-k of sampling is -1; it must be a whole number from 0 to 2147483648."),
        ({"temperature": "hot"}, "Temperature is “hot”; it must be a number."),
        ({"temperature": -1}, "Temperature is -1; it must be a number from 0 to 2."),
        ({"temperature": "5"}, "Temperature is 5; it must be a number from 0 to 2."),
        ({"top_p": 0}, "Top-p is 0; it must be a number from 0.05 to 1."),
        ({"top_p": 0.01}, "Top-p is 0.01; it must be a number from 0.05 to 1."),
        ({"method": "magic"}, say("form.unknown_method", method="magic")),
        ({"method": ["eagle2"]}, say("form.unknown_method", method="['eagle2']")),
        ({"method": None}, say("form.unknown_method", method="None")),
        ({"drafter": "oracle"}, say("form.unknown_drafter", drafter="oracle")),
        ({"drafter": None}, say("form.unknown_drafter", drafter="None")),
        (
            {"method": "eagle", "drafter": "ngram"},
            "prompt lookup guesses one continuation, which fills no static tree; choose chain or an eagle2 policy",
        ),
    ],
)
def test_a_bad_value_gets_a_sentence(changed, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the sentence is compared below)
        replace(Form(), **changed).settings(512)
    assert str(caught.value) == sentence
    assert 'role="alert"' in explain(replace(Form(), **changed), 512)


def test_the_largest_values_are_allowed():
    form = Form("eagle2", MOST.top_k, MOST.depth, MOST.max_nodes, 2, 1, 2**31, MOST_SEED, 512)
    assert form.settings(512).sampling.seed == MOST_SEED


def test_a_fault_never_becomes_markup():
    assert "<img" not in explain(Form(method="<img src=x>"), 512)
    assert "<img" not in explain(Form(seed="<img src=x>"), 512)


def test_eagle2_is_explained_with_pool_and_cost():
    assert said(Form(top_k=10, depth=6, max_nodes=59)) == [
        "EAGLE-2: expand by value, then keep the best of all drafted nodes.",
        "Pool: 10 + 5 × 10² = 510 nodes are drafted; the 59 best are kept.",
        say("form.cost", rows="60", passes="6", most="7"),
        say("form.greedy"),
    ]


def test_more_nodes_than_the_pool_holds_are_clamped():
    assert said(Form(top_k=3, depth=2, max_nodes=50)) == [
        "EAGLE-2: expand by value, then keep the best of all drafted nodes.",
        "Pool: 3 + 1 × 3² = 12 nodes are drafted; the 12 best are kept.",
        say("form.cost", rows="13", passes="2", most="3"),
        say("form.clamped", asked="50", kept="12"),
        say("form.greedy"),
    ]


def test_a_chain_is_explained():
    assert said(Form(method="chain", top_k=8, depth=4, max_nodes=4)) == [
        "A chain: one guess per level, as in classic speculative decoding.",
        "A chain: 4 nodes are drafted, 4 are kept.",
        say("form.cost", rows="5", passes="4", most="5"),
        say("form.greedy"),
    ]


def test_the_static_tree_is_explained():
    assert said(Form(method="eagle", temperature=1, seed=3)) == [
        "EAGLE&#x27;s static tree: the shape never changes, only the tokens in it do.",
        "25 nodes in 5 levels, at the same places in every round.",
        say("form.cost", rows="26", passes="5", most="6"),
        "top_k, depth and max_nodes have no effect here.",
        say("form.sampled", seed="3"),
    ]


def test_plain_decoding_is_explained():
    assert said(Form(method="plain")) == [
        "Plain decoding: no draft, the baseline.",
        say("form.cost_plain"),
        say("form.greedy"),
    ]


def test_prompt_lookup_costs_no_draft_pass():
    assert said(Form(method="ngram", depth=4, max_nodes=4)) == [
        say("method.ngram"),
        say("form.pool_lookup", kept="4"),
        say("form.cost_lookup", rows="5", most="5"),
        say("form.greedy"),
    ]


def test_a_sampled_chain_is_explained():
    assert said(Form(method="sps", depth=4, max_nodes=4, temperature=1, seed=3))[-1] == for_html(
        say("form.sampled_sps", seed=3)
    )


def test_another_drafter_under_a_policy_is_explained():
    assert said(Form(method="eagle2", drafter="ngram", depth=4, max_nodes=9))[1:4] == [
        say("form.drafted_by", drafter="prompt lookup"),
        say("form.pool_lookup", kept="4"),
        say("form.cost_lookup", rows="5", most="5"),
    ]
    assert said(Form(method="eagle2-auto", drafter="draft-model"))[1] == say(
        "form.drafted_by", drafter="independent draft model"
    )


def test_drafter_and_policy_are_read_as_the_method_they_are():
    assert Form(method="chain", drafter="draft-model").settings(512).policy == "sps"
    settings = Form(method="eagle2", drafter="draft-model").settings(512)
    assert (settings.policy, settings.drafter) == ("eagle2", "draft-model")
    assert Form.of(settings).settings(512) == settings


@pytest.mark.parametrize(("draft_model", "offered"), [(None, False), ("a-small-model", True)])
def test_sps_is_offered_where_its_draft_model_was_given(draft_model, offered):
    methods = Options(draft_model=draft_model).methods
    assert ("sps" in methods) == offered
    assert set(METHODS) - set(methods) <= {"sps"}


@pytest.mark.parametrize("asked", [{"method": "sps"}, {"drafter": "draft-model"}])
def test_what_a_page_does_not_offer_is_unknown_to_it(asked):
    offered = Options(draft_model="a-small-model").methods
    assert replace(Form(), **asked).settings(512, methods=offered)
    with pytest.raises(ValueError, match="unknown; choose one from the list"):
        replace(Form(), **asked).settings(512, methods=Options().methods)
