"""What a visitor sees first: a link that the form takes, or the sentence that says what is wrong with it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from visual.page.tabs.viewing import Viewing


def came(query: dict[str, str]) -> SimpleNamespace:
    return SimpleNamespace(session_hash="visitor", query_params=query)


@pytest.mark.parametrize(
    "asked",
    [{"temperature": "5"}, {"top_p": "0.01"}, {"method": "sps"}, {"drafter": "draft-model"}, {"top_k": "33"}],
)
def test_a_link_beyond_what_the_form_offers_is_refused_in_a_sentence_and_a_recording_shown(common, asked):
    told = Viewing(common, None).load(came({"prompt": "hello", **asked}))
    assert 'role="alert"' in told[common.parts.status]
    assert told[common.parts.prompt] == "hello"
    assert common.parts.pending not in told, "nothing is to run"
    assert not any(field in told for field in common.parts.fields)
    assert common.visit(came({})).shown.rounds


def test_what_a_link_puts_into_the_form_the_form_takes_back(common):
    asked = {"temperature": "2", "top_p": "0.05", "method": "ngram", "drafter": "ngram", "top_k": "32"}
    told = Viewing(common, None).load(came({"prompt": "hello", **asked}))
    assert told[common.parts.pending] == -1
    for field in common.parts.fields:
        field.preprocess(told[field])
