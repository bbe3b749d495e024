"""The tab Models without a browser: who may choose a pair, what is said of it before and after."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import tiny_pair
from picking_page import KEY, OWNER, VISITOR, Page, opened

from eagle2.loading.known_pairs import KNOWN_PAIRS
from visual.figures.token_labels import for_html
from visual.page import page
from visual.page.tabs import pairs
from visual.server.studio import Options, Studio
from visual.words.say import say


class TestWhoMay:
    def test_on_a_public_page_nobody_without_the_key(self, pair, other):
        page = opened(pair, key=KEY)
        for told in (
            page.picking.load(*other, VISITOR),
            page.picking.cancel(VISITOR),
            page.picking.weigh(*other, VISITOR),
        ):
            assert "Only the owner of this page" in told[page.fields.progress]
        assert page.studio.load.target == pair[0]
        assert "<button" not in page.picking._known(page.visits.of("visitor"))[page.fields.known]

    @pytest.mark.parametrize("wrong", ["", "a", KEY + "x", "ключ"])
    def test_a_wrong_key_is_refused(self, pair, wrong):
        page = opened(pair, key=KEY)
        assert "not the owner" in page.picking.prove(wrong, OWNER)[page.fields.progress]
        assert not page.picking.may(page.visits.of("owner"))

    def test_the_key_opens_the_form_for_that_visitor_alone(self, pair, other):
        page = opened(pair, key=KEY)
        told = page.picking.prove(f" {KEY} ", OWNER)
        assert told[page.fields.form]["visible"]
        assert not told[page.fields.proof]["visible"]
        assert "<button" in told[page.fields.known]
        assert "is in use" in page.switch(*other)[page.fields.progress]
        assert "Only the owner" in page.picking.load(*pair, VISITOR)[page.fields.progress]

    def test_the_page_says_that_it_is_the_owner_s_right(self, engine):
        blocks = page.build(Studio(Options(key=KEY), lambda *_: engine))
        words = json.dumps(blocks.get_config_file(), default=str)
        assert for_html(say("pair.public")) in words
        assert KEY not in words


class TestChoosing:
    def test_a_known_pair_fills_the_fields_and_is_weighed(self, pair):
        page = opened(pair)
        event = SimpleNamespace(_data={"pair": 9})
        told = page.picking.choose(event, OWNER)
        assert (told[page.fields.target], told[page.fields.head]) == (KNOWN_PAIRS[9].target, KNOWN_PAIRS[9].head)
        assert "in float32; cpu has" in told[page.fields.weight] or "Will not fit" in told[page.fields.weight]
        told = page.picking.choose(SimpleNamespace(_data={"pair": -1}), OWNER)
        assert (told[page.fields.target], told[page.fields.head]) == ("", "")
        assert "MiB" in told[page.fields.weight]

    @pytest.mark.parametrize("place", [None, True, "3", -2, 10**6])
    def test_what_no_button_sends_is_ignored(self, pair, place):
        page = opened(pair)
        assert page.fields.target not in page.picking.choose(SimpleNamespace(_data={"pair": place}), OWNER)

    def test_folders_are_weighed_at_once_and_the_hub_is_not_asked_while_one_types(self, pair, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        handlers = Page(Studio(Options(device="cpu"), lambda *_: None))
        assert " KiB in float32; cpu has " in handlers.picking.weigh(*pair, OWNER)[handlers.fields.weight]
        assert "The hub is asked" in handlers.picking.weigh("somebody/model", "", OWNER)[handlers.fields.weight]

    def test_what_is_no_model_is_said_beside_the_fields(self, tmp_path):
        handlers = Page(Studio(Options(), lambda *_: None))
        told = handlers.picking.weigh(str(tmp_path), "", OWNER)[handlers.fields.weight]
        assert "holds no config.json" in told
        assert 'role="alert"' in told


def test_a_head_whose_layers_were_guessed_is_marked_and_its_table_shown(tmp_path):
    page = opened(tiny_pair.write_eagle3(tmp_path))
    told = pairs.used_card(page.studio.used, "")
    assert page.studio.used.guessed == (2, 4, 5)
    assert "we assumed states 2, 4, 5" in told
    assert "hidden states 2, 4, 5 of the target (guessed" in told


def test_a_head_that_was_found_out_is_shown_folded(pair):
    told = pairs.used_card(opened(pair).studio.used, "")
    assert f"<details><summary>{say('pair.found')}" in told
    assert "EAGLE-1/2" in told
    assert "eagle_aux_hidden_state_layer_ids" not in told
    assert tiny_pair.VOCABULARY == 300
    assert "300 of 300 tokens" in told


@pytest.mark.parametrize("options", [{"device": "cuda:99"}, {"dtype": "float7"}])
def test_a_device_or_dtype_that_is_not_to_be_had_is_said_where_the_pairs_stand(options, engine):
    page = Page(Studio(Options(**options, key=KEY), load=lambda *_: engine))
    tab = SimpleNamespace(value=say("page.tab_models"))
    for told in (page.picking.tab(tab, OWNER), page.picking.prove(KEY, OWNER), page.picking.tick(OWNER)):
        assert next(iter(options.values())) in told[page.fields.known]
        assert 'role="alert"' in told[page.fields.known]


def test_an_owner_who_comes_from_another_language_s_page_finds_the_form(engine):
    page = Page(Studio(Options(key=KEY), load=lambda *_: engine))
    tab, arrived = SimpleNamespace(value=say("page.tab_models")), SimpleNamespace(session_hash="next page")
    page.picking.prove(KEY, OWNER)
    page.visits.resume(page.visits.park("owner"), "next page")
    for who, may in ((arrived, True), (VISITOR, False)):
        told = page.picking.tab(tab, who)
        assert [told[part]["visible"] for part in (page.fields.form, page.fields.proof)] == [may, not may]
