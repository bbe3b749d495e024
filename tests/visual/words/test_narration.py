"""Sentences, word for word."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import TOKENS as SYNTHETIC
from synthetic import grown, plain_round, prefill_round, run
from tiny_round import ROUND, TOKENS

from eagle2.trace.rounds import ROOT, Check
from visual.figures.phases import phases
from visual.words.en import ENGLISH
from visual.words.narration import Narrator, Part, number, plain, told_apart
from visual.words.say import LANGUAGES, say


def told(r, tokens=TOKENS):
    narrator = Narrator(tokens)
    return {p.name: plain(narrator.narrate(r, p)) for p in phases(r)}


def test_the_phases_of_a_tiny_round_in_words():
    assert told(ROUND) == {
        "expand-1": "From the root I the drafter proposes its 2 likeliest next tokens; 'm leads with c = 0.60.",
        "expand-2": "Every node of level 1 is fed to the drafter; the 4 children make level 2, "
        "led by ·glad (V = 0.36).",
        "rerank": "Of all 6 drafted nodes the 5 of highest value stay: ·sorry (V = 0.12) is the last one in, "
        "·be (V = 0.030) the first one out.",
        "flatten": "Root and kept nodes become one sequence of 6 rows. Each row sees the 37 tokens before the root, "
        "its own ancestors and itself: 14 of 36 pairs, the rest is masked.",
        "verify": "One pass of the target over 6 rows. From the root it chooses 'm, then ·glad, each a child in the "
        "tree. There the branch ends; after ·glad it chooses ·you.",
        "accept": "The target agrees with 'm and ·glad, to the end of that branch; the token it adds there, ·you, is "
        "the bonus. Three tokens from one target pass; the kept values had predicted 2.5.",
    }


def test_a_walk_that_leaves_the_tree():
    checks = (ROUND.checks[0], Check(0, 7, 0.9, None, (7, 4, 8, 6, 5), (0.9, 0.05, 0.02, 0.01, 0.01)))
    fate = ("accepted", "rejected", "rejected", "rejected", "rejected", "pruned")
    r = dataclasses.replace(ROUND, accepted=(0,), committed=(1, 7), checks=checks, fate=fate)
    assert told(r)["accept"] == (
        "The target agrees with 'm; at 'm it wants ·you, which no branch holds, so ·you is the bonus. "
        "Two tokens from one target pass; the kept values had predicted 2.5."
    )
    assert told(r)["verify"] == (
        "One pass of the target over 6 rows. At the root it chooses 'm, a child in the tree. "
        "At 'm it chooses ·you, which no branch holds."
    )


def test_a_target_that_agrees_with_nothing():
    checks = (Check(ROOT, 8, 0.9, None, (8, 4, 7, 6, 5), (0.9, 0.05, 0.02, 0.01, 0.01)),)
    fate = ("rejected",) * 5 + ("pruned",)
    r = dataclasses.replace(ROUND, accepted=(), bonus=8, committed=(8,), checks=checks, fate=fate)
    assert told(r)["accept"] == (
        "The target agrees with none of the 2 first tokens: after I it wants ·think, so ·think is the bonus. "
        "One token from one target pass; the kept values had predicted 2.5."
    )


def test_a_stop_and_a_cap_say_what_the_text_keeps():
    fate = ("accepted", "rejected", "cut", "rejected", "rejected", "pruned")
    stopped = dataclasses.replace(ROUND, committed=(1,), finish="stop", fate=fate)
    assert told(stopped)["accept"].endswith(say("say.stop", total="3", committed="1"))
    capped = dataclasses.replace(stopped, finish="length")
    assert told(capped)["accept"].endswith(say("say.length", total="3", committed="1"))


def test_rounds_without_nodes():
    assert told(plain_round(), SYNTHETIC)["accept"] == (
        "The target's token is ·of. One token from one target pass, as in every round of plain decoding."
    )
    assert told(prefill_round(), SYNTHETIC)["prefill"] == (
        "The token drawn from the prompt's own pass, ·and, already ended the run; nothing was drafted."
    )


def test_a_policy_that_does_not_go_by_value_is_not_said_to():
    r = dataclasses.replace(
        ROUND,
        slot=(1, 2, 3, None, 4, 5),
        fate=("accepted", "rejected", "accepted", "pruned", "rejected", "rejected"),
    )
    assert told(r)["rerank"] == "The tree's policy keeps 5 of the 6 drafted nodes."


def test_long_paths_keep_their_ends():
    narrator = Narrator({})
    parts = [Part("token", letter) for letter in "abcdefgh"]
    assert plain(narrator.listed(parts, "say.and")) == "a, b, c, 4 more and h"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.634, "0.63"),
        (0.1, "0.10"),
        (0.07, "0.070"),
        (0.0048, "0.0048"),
        (0.00002, "2e-05"),
        (1.0, "1.00"),
        (0, "0.00"),
    ],
)
def test_numbers_keep_two_digits_that_say_something(value, text):
    assert number(value) == text


def test_the_last_in_and_the_first_out_are_told_apart():
    assert told_apart(0.0048, 0.0047) == ("0.0048", "0.0047")
    assert told_apart(0.00443, 0.00441) == ("0.00443", "0.00441")
    assert told_apart(0.5, 0.5) == ("0.5", "0.5")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(10, 6, 59), (1, 4, 4), (3, 2, 50), (5, 1, 3)]))
def test_every_round_can_be_told_in_finished_sentences(seed, shape):
    for text in told(grown(seed, *shape), SYNTHETIC).values():
        assert text.endswith(".")
        assert "{" not in text.replace("{x}", "").replace("${value}", "").replace("{{value}}", "")


def test_the_heading_numbers_and_sentences_of_a_run_agree():
    for r in run(6).rounds:
        total = len(r.accepted) + 1
        word = ENGLISH["numbers"].split()[total].capitalize()
        assert f"{word} token" in told(r, SYNTHETIC)["accept"]


def test_every_language_has_every_key():
    for table in LANGUAGES.values():
        assert set(table) == set(ENGLISH)
