"""Two runs beside each other, on rounds worked out by hand."""

from dataclasses import replace

import pytest
from fixtures_edges import FIRST, SECOND, plain_round

from eagle2.analysis.aligned_runs import Totals, difference, round_at, text, totals
from eagle2.settings import TreeShape

# FIRST commits 3 (from the prefill), 4, 6, 8; SECOND 9. Plain decoding writes the same, a round a token.
DRAFTED = (FIRST, SECOND)
PLAIN = (
    plain_round(0, 2, 3, (3, 4)),
    plain_round(1, 3, 4, (6,)),
    plain_round(2, 4, 6, (8,)),
    plain_round(3, 5, 8, (9,)),
)


def test_the_texts_are_compared_id_by_id():
    assert text(DRAFTED) == text(PLAIN) == (3, 4, 6, 8, 9)
    assert difference(DRAFTED, PLAIN) is None
    assert difference(DRAFTED, PLAIN[:2]) is None
    assert difference(DRAFTED, (PLAIN[0], replace(PLAIN[1], committed=(7,)))) == 2


def test_a_position_belongs_to_the_round_that_wrote_it():
    assert [round_at(DRAFTED, position) for position in range(1, 6)] == [0, 0, 0, 0, 1]
    assert [round_at(PLAIN, position) for position in range(1, 6)] == [0, 0, 1, 2, 3]
    assert round_at(PLAIN, 99) == 3


def test_totals_count_passes_rows_and_time_up_to_a_round():
    # FIRST verifies 3 nodes and its root, 1 + 2 + 1 ms; SECOND one and its root, 1 + 3 + 2 ms
    assert totals(DRAFTED, 0) == Totals(3, 1, 4, 4)
    assert totals(DRAFTED, 1) == Totals(4, 2, 6, 10)
    assert totals(DRAFTED, 1).tau == 2
    assert totals(PLAIN, 3) == Totals(4, 4, 4, 16)
    assert totals(PLAIN, 3).tau == 1


def test_a_run_that_the_prefill_ended_has_no_tau():
    only = replace(FIRST, bonus=None, accepted=(), committed=(3,), finish="stop", drafted=0, kept=0, token=())
    assert totals([only], 0).tau is None


@pytest.mark.parametrize("method", ["eagle", "chain", "eagle2-no-value", "eagle2-no-rerank", "eagle2-no-both", "plain"])
def test_every_method_writes_the_text_of_eagle2(tiny_engine, method):
    shape = TreeShape(4, 3, 8)
    one = list(tiny_engine.rounds([5, 6, 7, 8], shape, None, 24))
    other = list(tiny_engine.rounds([5, 6, 7, 8], shape, None, 24, method))
    assert difference(one, other) is None
    assert text(one) == text(other)
