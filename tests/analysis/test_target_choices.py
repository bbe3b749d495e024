"""What the target chose after each round's root, on rounds worked out by hand."""

from dataclasses import replace

import pytest
from fixtures_edges import FIRST, SECOND, plain_round

from eagle2.analysis.target_choices import Descent, by_value, choices, descend, drawn, follows
from eagle2.trace.rounds import Round


def test_a_rounds_own_choices_are_its_walks_draws_before_the_cap():
    assert drawn(FIRST) == (4, 6, 8)
    assert drawn(replace(FIRST, committed=(3, 4), finish="length")) == (4, 6, 8)
    assert drawn(SECOND) == (9,)
    assert drawn(Round(0, 2, 3, (), None, (3,), "stop")) == ()


def test_without_recorded_nodes_the_draws_are_the_committed_ids():
    unrecorded = Round(0, 2, 3, (0, 2), 8, (3, 4, 6, 8), None, drafted=4, kept=3)
    assert drawn(unrecorded) == (4, 6, 8)
    with pytest.raises(ValueError, match="round 0 kept no record"):
        drawn(replace(unrecorded, committed=(3, 4), finish="length"))


def test_a_round_follows_the_one_whose_text_it_goes_on_with():
    assert follows(SECOND, FIRST)
    assert not follows(FIRST, SECOND)
    assert not follows(SECOND, replace(FIRST, finish="stop"))
    assert not follows(replace(SECOND, root=7), FIRST)
    assert not follows(replace(SECOND, prefix_length=6), FIRST)


def test_choices_go_on_through_the_rounds_behind_as_deep_as_the_pool():
    # SECOND's own walk drew 9; its pool is given three levels, so two more choices are looked for behind it
    deep = replace(SECOND, finish=None, drafted=3, token=(9, 5, 6), parent=(-1, 0, 1), depth=(1, 2, 3))
    behind = [plain_round(2, 6, 9, (5,)), plain_round(3, 7, 5, (4,)), plain_round(4, 8, 4, (4,))]
    assert choices([FIRST, deep, *behind], 1) == (9, 5, 4)
    assert choices([FIRST, deep, behind[0]], 1) == (9, 5)
    assert choices([deep, FIRST], 0) == (9,)


def test_the_descent_goes_through_pruned_nodes_too_and_says_when_it_ran_out_of_choices():
    # FIRST's pool: 4 (0), 5 (1, pruned), 6 (2, under 0), 7 (3, under 0)
    assert descend(FIRST, (4, 6, 8)) == Descent((0, 2), True)
    assert descend(FIRST, (5, 6)) == Descent((1,), True)
    assert descend(FIRST, (4, 9)) == Descent((0,), True)
    assert descend(FIRST, (4,)) == Descent((0,), False)
    assert descend(FIRST, (4, 7)) == Descent((0, 3), True)
    assert descend(FIRST, ()) == Descent((), False)


def test_equal_values_are_ordered_by_depth_then_place():
    assert by_value(FIRST) == [0, 1, 2, 3]
    assert by_value(replace(FIRST, value=(0.6, 0.3, 0.6, 0.24))) == [0, 2, 1, 3]
    assert by_value(replace(FIRST, value=(0.6, 0.2, 0.3, 0.3))) == [0, 2, 3, 1]
