"""What the tab Models says: the known pairs' table, how far a load is, what a pair is called."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from eagle2.loading.known_pairs import KNOWN_PAIRS
from visual.page.tabs import pairs
from visual.words.say import say


def test_the_known_pairs_are_all_listed_with_tree_memory_and_licence():
    told = pairs.known_table("bfloat16", "cuda", 20 * 2**30, True)
    for known in KNOWN_PAIRS:
        assert known.target in told
        assert known.head in told
    assert told.count("data-pair=") == len(KNOWN_PAIRS) + 1
    row = next(row for row in told.split("<tr") if "Llama-2-7b-chat-hf" in row)
    assert "10 · 6 · 59" in row
    assert "14.3 GiB" in row
    assert "fits" in row
    assert "gated" in row
    assert "Llama community licence" in row
    row = next(row for row in told.split("<tr") if "Llama-2-70b" in row)
    assert "too large here" in row


def test_names_are_shown_literally():
    evil = "<img src=x onerror=alert(1)>"
    load = SimpleNamespace(target=evil, head=None, step="begin", done=0, of=0, unwanted=False, estimate=None)
    assert "<img" not in pairs.progress(load)


@pytest.mark.parametrize(
    ("step", "done", "of", "words", "share"),
    [
        ("begin", 0, 0, say("pair.step.begin"), None),
        ("download", 3 * 2**29, 3 * 2**30, say("pair.step.download", done="1.5 GiB", of="3.0 GiB"), "50"),
        ("weights", 68, 272, "weights: 68 of 272 tensors", "25"),
        ("products", 211, 211, say("pair.step.products", done="211", of="211"), "100"),
    ],
)
def test_how_far_a_load_is(step, done, of, words, share):
    load = SimpleNamespace(target="a/b", head="c/d", step=step, done=done, of=of, unwanted=False, estimate=None)
    told = pairs.progress(load)
    assert f"Loading b with d · {words}" in told
    assert ('aria-valuenow="' in told) == (share is not None)
    assert share is None or f'aria-valuenow="{share}"' in told


@pytest.mark.parametrize(
    ("target", "head", "words"),
    [
        (None, None, "SmolLM2-135M-Instruct"),
        ("meta/Llama", "who/EAGLE", "Llama with EAGLE"),
        ("/models/mine/target", "~/heads/mine/head/", "mine/target with mine/head"),
        ("C:\\models\\mine", None, "models/mine without a head"),
    ],
)
def test_a_pair_s_name(target, head, words):
    assert pairs.named(target, head) == words
