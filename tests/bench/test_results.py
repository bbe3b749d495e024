"""Tables from measurements made by hand."""

import pytest

from eagle2.bench.records import Measurement, Timed, Trial
from eagle2.bench.results import Result, overall, phases, results
from eagle2.bench.table import table, time_table


def measured(method, question, tokens, passes, verify_ms, *, family="chat", temperature=0.0, repeat=0, **more):
    split = {"draft_ms": more.get("draft_ms", 0.0), "verify_ms": verify_ms, "rest_ms": more.get("rest_ms", 0.0)}
    answer = Timed(tuple(range(tokens + 1)), tokens, passes, more.get("nodes", 0), 7.0, **split)
    trial = Trial(question, family, 0, temperature, repeat)
    return Measurement(trial, method, answer, more.get("lossless", True), more.get("near_ties", 0))


def test_speedup_is_the_median_over_questions_and_tau_that_of_all_passes():
    made = results(
        [
            measured("plain", "1", 10, 10, 1000),  # 10 tokens/s
            measured("eagle2", "1", 10, 4, 250, draft_ms=200, rest_ms=50),  # 20 tokens/s: twice as fast
            measured("plain", "2", 10, 10, 500),  # 20 tokens/s
            measured("eagle2", "2", 10, 5, 500),  # 20 tokens/s: no faster
            measured("plain", "3", 20, 20, 2000),  # 10 tokens/s
            measured("eagle2", "3", 20, 11, 500),  # 40 tokens/s: four times
        ]
    )
    assert made == [
        Result("plain", "chat", 0.0, tau=1.0, tokens_per_s=10.0, speedup=1.0, lossless=True),
        Result("eagle2", "chat", 0.0, tau=40 / 20, tokens_per_s=20.0, speedup=2.0, lossless=True),
    ]


def test_repeats_of_a_question_count_as_one_by_their_median_each_against_its_own_plain_pass():
    made = results(
        [
            *(measured("plain", "1", 10, 10, ms, repeat=i) for i, ms in enumerate((1000, 4000, 1000))),
            *(measured("eagle", "1", 10, 5, ms, repeat=i) for i, ms in enumerate((500, 1000, 200))),  # x2, x4, x5
        ]
    )
    assert made[1].speedup == 4
    assert made[1].tokens_per_s == 20
    assert made[1].tau == 2


def test_one_answer_that_differs_makes_a_family_not_lossless():
    made = results(
        [
            measured("plain", "1", 4, 4, 10),
            measured("eagle", "1", 4, 2, 10),
            measured("plain", "2", 4, 4, 10),
            measured("eagle", "2", 4, 2, 10, lossless=False),
        ]
    )
    assert [r.lossless for r in made] == [True, False]


def test_answers_without_decoding_have_no_speed_and_a_family_of_nothing_else_is_left_out():
    made = results(
        [
            measured("plain", "1", 4, 4, 400),
            measured("plain", "2", 0, 0, 0),
            measured("plain", "3", 0, 0, 0, family="code"),
        ]
    )
    assert [(r.family, r.tau, r.tokens_per_s) for r in made] == [("chat", 1.0, 10.0)]


def test_families_and_temperatures_are_kept_apart():
    made = results(
        [
            measured("plain", "1", 4, 4, 400),
            measured("plain", "1", 4, 4, 200, temperature=1.0),
            measured("plain", "2", 4, 4, 100, family="code"),
        ]
    )
    assert [(r.family, r.temperature, r.tokens_per_s) for r in made] == [
        ("chat", 0.0, 10.0),
        ("chat", 1.0, 20.0),
        ("code", 0.0, 40.0),
    ]


def test_where_the_time_of_a_round_went():
    (made,) = phases(
        [
            measured("eagle2", "1", 9, 4, 100, draft_ms=60, rest_ms=40, nodes=40, near_ties=1),
            measured("eagle2", "2", 9, 2, 100, draft_ms=60, rest_ms=40, nodes=20, near_ties=2, lossless=False),
            measured("eagle2", "3", 0, 0, 0),
        ]
    )
    assert (made.draft_ms, made.verify_ms, made.rest_ms) == (22.5, 37.5, 15.0)  # medians of 15 and 30, ...
    assert made.outside == pytest.approx(0.2)
    assert made.nodes == 10
    assert (made.prefill_ms, made.near_ties, made.differing) == (7.0, 3, 1)


def test_the_table_has_a_block_for_each_temperature_and_the_mean_of_families():
    made = [
        Result("plain", "chat", 0.0, 1.0, 12.0, 1.0, True),
        Result("eagle2", "chat", 0.0, 3.0, 24.0, 2.0, True),
        Result("plain", "code", 0.0, 1.0, 12.0, 1.0, True),
        Result("eagle2", "code", 0.0, 4.0, 30.0, 2.5, False),
        Result("plain", "chat", 1.0, 1.0, 12.0, 1.0, True),
    ]
    assert overall(made, "eagle2", 0.0) == (2.25, 3.5)
    assert overall(made, "eagle2", 1.0) is None
    assert table(made).splitlines() == [
        "temperature 0          chat            code          mean",
        "plain          1.00x / 1.00    1.00x / 1.00  1.00x / 1.00",
        "eagle2         2.00x / 3.00  2.50x / 4.00 *  2.25x / 3.50",
        "",
        "temperature 1          chat  code          mean",
        "plain          1.00x / 1.00     -  1.00x / 1.00",
        "",
        "speedup over plain decoding / tau (bonus included); * not plain decoding's text",
    ]


def test_the_time_table_names_every_phase():
    lines = time_table(phases([measured("eagle2", "1", 9, 4, 100, draft_ms=60, rest_ms=40, nodes=40)])).splitlines()
    assert lines[0].split("  ")[-1] == "near-ties"
    assert lines[1].split() == ["eagle2", "0", "10.0", "7.0", "15.0", "25.0", "10.0", "20.0%", "0"]
