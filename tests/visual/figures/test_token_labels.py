"""What a reader sees of a token: short, visible, harmless."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import HOSTILE

from visual.figures.token_labels import LABEL_CELLS, cells, for_html, for_plotly, full, label, pieces, token_label


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (b" simple", "·simple"),
        (b"\n\n", "↵↵"),
        (b"\t", "⇥"),
        (b" " * 40, "·×40"),
        (b"a" * 60, "aaaaaaaaaaa…"),
        (b"\xf0\x9f", "<F0 9F>"),
        (b" \xe2\x80", "·<E2 80>"),
        (b"ok\xff", "ok<FF>"),
        (b"", "∅"),
        (b"\x00", "␀"),
        ("\u202e".encode(), "<U+202E>"),
        ("\u0301".encode(), "◌\u0301"),
        ("日本語".encode(), "日本語"),
        (b"<script>", "<script>"),
    ],
)
def test_a_label_shows_what_is_in_a_token(raw, seen):
    assert label(raw) == seen


def test_two_broken_characters_in_a_row_are_one_item():
    assert label(b"\xff\xfe") == "<FF FE>"


def test_the_full_text_keeps_what_the_label_cuts():
    assert full(b"a" * 60) == "a" * 60
    assert full(b"b" * 500) == "b" * 240 + "… (500)"


def test_an_id_without_bytes_shows_its_number():
    assert token_label(1234, {}) == "#1234"


@given(st.binary(max_size=80))
def test_a_label_is_one_short_visible_line(raw):
    text = label(raw)
    assert text
    assert text.strip() == text
    assert len(text.split()) <= max(1, text.count(" ") + 1)
    assert "\n" not in text
    assert "\ufffd" not in text or b"\xef\xbf\xbd" in raw
    assert cells(text) <= LABEL_CELLS + 2


@pytest.mark.parametrize("raw", HOSTILE)
def test_plotly_gets_no_markup_no_template_and_no_tex(raw):
    escaped = for_plotly(label(raw))
    assert "<" not in escaped
    assert "%{" not in escaped
    assert "$" not in escaped
    assert html.unescape(escaped).strip("\u2068\u2069") == label(raw)


def test_html_is_escaped_quotes_too():
    assert for_html("<b a=\"1\" c='2'>&") == "&lt;b a=&quot;1&quot; c=&#x27;2&#x27;&gt;&amp;"


def test_right_to_left_letters_are_isolated():
    assert for_plotly("שלום") == "\u2068שלום\u2069"


def test_a_character_over_three_tokens_comes_with_the_last():
    tokens = {1: b"a\xf0\x9f", 2: b"\x98", 3: b"\x80b", 4: b"!"}
    assert pieces([1, 2, 3, 4], tokens) == ["a", "", "😀b", "!"]


def test_bytes_that_never_become_a_character_are_shown_as_bytes():
    assert pieces([1, 2], {1: b"x\xf0\x9f", 2: b"y"}) == ["x", "<F0 9F>y"]
    assert pieces([1], {1: b"x\xf0\x9f"}) == ["x<F0 9F>"]


@given(st.text(max_size=30), st.data())
def test_pieces_of_any_cut_of_a_text_give_the_text(text, data):
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert "".join(pieces(range(len(parts)), dict(enumerate(parts)))) == text
