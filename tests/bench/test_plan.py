"""What is measured: methods by name and size, the quick plan, and what is refused before anything is loaded."""

import argparse

import pytest

from eagle2.bench.plan import PAPER, Method, Plan, add_options, make_plan
from eagle2.methods import METHODS
from eagle2.settings import TreeShape


def plan(*arguments):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return make_plan(parser.parse_args(arguments))


def labels(made):
    return [method.label for method in made.methods]


def test_without_options_all_methods_that_can_run_are_measured_at_both_temperatures():
    made = plan()
    assert labels(made)[:2] == ["plain", "transformers"]
    assert set(labels(made)) == {"transformers", *METHODS} - {"sps"}
    assert (made.temperatures, made.shape, made.max_new_tokens, made.repeats) == ((0.0, 1.0), PAPER, 128, 1)


def test_a_draft_model_brings_sps_in():
    assert "sps" in labels(plan("--draft-model", "small"))


def test_quick_is_greedy_and_short_with_the_methods_that_matter_most():
    made = plan("--quick")
    assert labels(made) == ["plain", "transformers", "eagle", "eagle2", "eagle2-auto"]
    assert (made.temperatures, made.shape, made.max_new_tokens) == ((0.0,), TreeShape(10, 6, 59), 64)


def test_what_is_given_stays_also_with_quick():
    made = plan("--quick", "--methods", "eagle2@16,eagle2", "--max-new-tokens", "9", "--temperatures", "0.5")
    assert labels(made) == ["plain", "eagle2@16", "eagle2"]
    assert (made.temperatures, made.max_new_tokens) == ((0.5,), 9)


def test_a_size_of_its_own_replaces_the_plan_s():
    made = plan("--methods", "eagle2@16,eagle2", "--top-k", "4", "--depth", "3", "--max-nodes", "20")
    assert [made.shape_of(method) for method in made.methods[1:]] == [TreeShape(4, 3, 16), TreeShape(4, 3, 20)]


def test_a_static_tree_of_ones_own_comes_last_and_brings_its_paths(tmp_path):
    file = tmp_path / "tree.json"
    file.write_text("[[0], [0, 0], [1]]", encoding="utf-8")
    made = plan("--methods", "eagle", "--tree", str(file))
    assert labels(made) == ["plain", "eagle", "static"]
    assert [method.tree for method in made.methods] == ["plain", "eagle", ((0,), (1,), (0, 0))]
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match="at least one path"):
        plan("--tree", str(file))


def test_above_temperature_0_everything_is_drawn_with_the_plan_s_seed():
    assert plan("--seed", "4").sampling(1.0).seed == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--methods", "magic"], "method 'magic' is unknown"),
        (["--methods", "plain@3"], "methods whose tree has a free size"),
        (["--methods", "eagle@3"], "methods whose tree has a free size"),
        (["--methods", "eagle2@big"], "a size is given as eagle2@16"),
        (["--methods", "eagle2@0"], "the size of 'eagle2@0' is 0; it must be at least 1"),
        (["--methods", "eagle2,eagle2"], "each may stand once"),
        (["--methods", "sps"], "needs an independent draft model"),
        (["--temperatures", "warm"], "--temperatures is 'warm'"),
        (["--temperatures", "0,0"], "each only once"),
        (["--temperatures", "-1"], "temperature is -1.0"),
        (["--max-new-tokens", "1"], "max_new_tokens is 1; it must be at least 2"),
        (["--repeats", "0"], "repeats is 0"),
        (["--depth", "0"], "depth is 0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        plan(*arguments)


def test_the_baseline_cannot_be_left_out():
    with pytest.raises(ValueError, match="plain comes first"):
        Plan((Method.of("eagle2"),))
