"""Chips and metrics table: the numbers of a run worked out by hand, and names that try to be markup."""

from __future__ import annotations

import re
from dataclasses import replace

from fixtures_edges import FIRST, SECOND, TRACE, plain_round

from eagle2.settings import Settings
from eagle2.trace.rounds import Pair, Round
from visual.figures.token_labels import for_html
from visual.page.html import Comparison, chips, metrics_table
from visual.server.conversation import Turn
from visual.words.say import say

TURN = Turn.recorded(TRACE, "by hand")
MADE = replace(TURN, name=None)


def table(turn, found=None) -> dict[str, str]:
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', metrics_table(turn, found))
    return dict(rows)


def test_the_table_of_a_run_worked_out_by_hand():
    # Committed 4 + 1, the first from the prefill: 4 tokens in 2 passes. Accepted 2 of 3 + 1 kept nodes.
    # Predicted: 2.14 and 1.25, halved 1.695; happened 3 and 1. Times: draft 2, verify 5, rest 3 of 10 ms.
    # Depth 1: tried twice, taken once; depth 2: tried and taken once.
    assert table(TURN) == {
        "τ, mean acceptance length, bonus included": "2.00",
        "accepted draft tokens per round, bonus not included": "1.00",
        "tokens written": "5",
        "target passes after the prefill": "2",
        "accepted share of verified nodes": "50.0% (2 / 4)",
        say("metrics.predicted"): say("metrics.against", a="1.69", b="2.00"),
        "tokens per second": "400.0",
        "time: draft / verify / rest": "20% / 50% / 30%",
        say("metrics.prefill"): "5 ms",
        "acceptance at depth 1, 2, …": "50% · 100%",
    }


def test_every_row_carries_its_formula():
    rows = re.findall(r'<tr title="(.*?)">', metrics_table(TURN, Comparison(1.0, 1.0, 1, 0, 0)))
    assert len(rows) == 12
    assert all(rows)


def test_a_slower_run_is_called_slower():
    told = table(MADE, Comparison(0.8, 500.0, 5, 0, 1))
    assert told["against plain decoding"] == say("chip.slower", speedup="0.80") + " (500.0 tokens/s)"
    assert told["losslessness"] == say("metrics.verdict", agreed="5", checked="5", near="1")
    assert "slower here" in chips(MADE, "", Comparison(0.8, 500.0, 5, 0, 1))


def test_a_faster_run_is_called_faster():
    told = table(MADE, Comparison(1.256, 318.5, 5, 0, 0))
    assert told["against plain decoding"] == "1.26× plain decoding (318.5 tokens/s)"


def test_a_run_that_differs_says_where_it_stands():
    shown = chips(MADE, "", Comparison(1.5, 1.0, 5, 2, 0))
    assert "differs at 2 of 5 tokens" in shown
    assert "es-bad" in shown
    assert "lossless ✓" not in shown


def test_a_run_too_short_to_be_timed_is_called_neither():
    found = Comparison(None, None, 1, 0, 0)
    assert table(MADE, found)["against plain decoding"] == "too short to compare speeds"
    assert "slower" not in chips(MADE, "", found)


def test_plain_rounds_have_no_share_and_no_prediction():
    rounds = [plain_round(0, 2, 3, (3, 4)), plain_round(1, 4, 4, (5,))]
    told = table(replace(MADE, rounds=rounds))
    assert told["accepted share of verified nodes"] == "–"
    assert told["τ, mean acceptance length, bonus included"] == "1.00"
    assert say("metrics.predicted") not in told


def test_nothing_verified_is_said_so():
    for turn in (None, replace(MADE, rounds=[])):
        assert "Nothing has been verified yet." in metrics_table(turn)


def test_the_chips_name_pair_method_and_numbers():
    shown = re.sub(r"<[^>]*>", "|", chips(TURN, ""))
    for text in (
        "a target · cpu float32",
        "EAGLE-2 · top_k 2 · depth 2 · 3 nodes",
        "τ 2.00",
        "400.0 tokens/s",
        "recorded",
    ):
        assert text in shown
    assert "recorded" not in re.sub(r"<[^>]*>", "|", chips(MADE, ""))


def test_a_draft_vocabulary_is_told_beside_the_pair_and_under_the_metrics():
    pair = Pair("a target", "a head", vocabulary=49152, draft_vocabulary=8192)
    turn = replace(TURN, pair=pair)
    told = for_html(say("chip.vocabulary_title", draft="8,192", all="49,152"))
    assert f'title="{told}">drafts from 8,192 of 49,152 tokens<' in chips(turn, "")
    assert metrics_table(turn).endswith(f">{told}</p>")
    others = [replace(turn, settings=Settings(policy)) for policy in ("plain", "ngram", "sps")]  # no head drafts there
    for other in (TURN, *others):
        assert "49,152" not in chips(other, "") + metrics_table(other)


def test_a_head_that_guesses_nothing_right_is_hinted_at():
    rounds = [Round(i, 5, 1, (), 9, (9,), None, drafted=3, kept=3) for i in range(1, 18)]
    told = f">{say('chip.misfit')}<"
    assert told in chips(replace(MADE, rounds=rounds), "")
    assert told not in chips(replace(MADE, rounds=rounds[:9]), "")
    assert told not in chips(replace(MADE, rounds=rounds, pair=Pair("a target")), "")
    for policy in ("ngram", "sps"):  # whose guesses are not the head's
        assert told not in chips(replace(MADE, rounds=rounds, settings=Settings(policy)), "")


def test_hostile_pair_names_are_text():
    evil = "\"><img src=x onerror=alert(1)>'&{target}{pair}"
    turn = replace(TURN, pair=Pair(evil, evil, evil, evil, evil, evil), rounds=[FIRST, SECOND])
    shown = chips(turn, "") + metrics_table(turn)
    assert "<img" not in shown
    assert shown.count('">') == len(re.findall(r'"[^"<>]*">', shown))
    assert "&lt;img src=x onerror=alert(1)&gt;&#x27;&amp;{target}{pair}" in shown
    assert "<img" not in chips(None, evil)
