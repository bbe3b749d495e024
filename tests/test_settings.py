"""Settings: every bound, every wrong type, and what each says."""

import dataclasses

import pytest

from eagle2.settings import Sampling, TreeShape, effective_shape


def test_every_field_has_a_default():
    assert TreeShape() == TreeShape(8, 5, 16)
    assert Sampling() == Sampling(0.0, 1.0, 0, 0)


def test_settings_are_frozen_values():
    assert TreeShape(2, 3, 4) == TreeShape(top_k=2, depth=3, max_nodes=4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        TreeShape().depth = 2


@pytest.mark.parametrize("field", ["top_k", "depth", "max_nodes"])
class TestShape:
    def test_one_is_the_least(self, field):
        assert getattr(TreeShape(**{field: 1}), field) == 1

    @pytest.mark.parametrize("value", [0, -1])
    def test_less_is_refused_by_name_and_value(self, field, value):
        with pytest.raises(ValueError, match=f"^{field} is {value}; it must be at least 1$"):
            TreeShape(**{field: value})

    @pytest.mark.parametrize("value", [2.0, "2", None, True])
    def test_only_integers_count(self, field, value):
        with pytest.raises(TypeError, match=f"^{field} must be an integer, not {value!r} "):
            TreeShape(**{field: value})


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 0},
        {"temperature": 5e-324},
        {"temperature": 100.0},
        {"top_p": 1},
        {"top_p": 1e-9},
        {"top_k": 0},
        {"top_k": 10**9},
        {"seed": 0},
        {"seed": 2**64},
    ],
)
def test_what_sampling_allows(given):
    sampling = Sampling(**given)
    assert all(getattr(sampling, name) == value for name, value in given.items())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; it must be 0 (greedy) or more"),
        ({"temperature": float("nan")}, "temperature is nan; it must be finite"),
        ({"temperature": float("inf")}, "temperature is inf; it must be finite"),
        ({"top_p": 0}, "top_p is 0; it must be above 0 and at most 1 (1 keeps every token)"),
        ({"top_p": 1.01}, "top_p is 1.01; it must be above 0 and at most 1 (1 keeps every token)"),
        ({"top_p": float("nan")}, "top_p is nan; it must be finite"),
        ({"top_k": -1}, "top_k of sampling is -1; it must be at least 0"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
    ],
)
def test_sampling_out_of_bounds_says_what_is_allowed(given, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        Sampling(**given)
    assert str(caught.value) == sentence


def test_an_integer_that_no_float_holds_is_not_finite():
    with pytest.raises(ValueError, match="must be finite"):
        Sampling(temperature=10**400)


@pytest.mark.parametrize(
    "given", [{"temperature": "0"}, {"temperature": True}, {"top_p": None}, {"top_k": 1.0}, {"seed": 0.5}]
)
def test_sampling_of_a_wrong_type_is_a_type_error(given):
    with pytest.raises(TypeError, match=next(iter(given))):
        Sampling(**given)


def test_greedy_is_temperature_zero_only():
    assert Sampling(0).greedy
    assert Sampling(0.0, top_k=5).greedy
    assert not Sampling(1e-3).greedy


@pytest.mark.parametrize(
    ("method", "asked", "vocabulary", "effective"),
    [
        ("plain", TreeShape(8, 5, 16), 100, None),
        ("eagle", TreeShape(8, 5, 16), 100, TreeShape(4, 5, 25)),
        ("eagle2", TreeShape(10, 6, 59), 100, TreeShape(10, 6, 59)),
        ("eagle2", TreeShape(10, 6, 999), 100, TreeShape(10, 6, 510)),  # 10 + 5 x 100 nodes are drafted
        ("eagle2", TreeShape(10, 2, 59), 4, TreeShape(4, 2, 20)),  # 4 + 16
        ("eagle2-no-value", TreeShape(2, 1, 16), 100, TreeShape(2, 1, 2)),
        ("chain", TreeShape(8, 5, 3), 100, TreeShape(1, 5, 3)),
        ("chain", TreeShape(8, 5, 16), 100, TreeShape(1, 5, 5)),
        ("eagle2-no-rerank", TreeShape(8, 5, 3), 100, TreeShape(8, 5, 40)),
        ("eagle2-no-both", TreeShape(8, 5, 99), 6, TreeShape(6, 5, 30)),
    ],
)
def test_the_effective_shape_is_what_can_exist(method, asked, vocabulary, effective):
    assert effective_shape(method, asked, vocabulary) == effective


def test_an_unknown_method_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="policy 'magic' is unknown; choose one of plain, chain, eagle, eagle2, "):
        effective_shape("magic", TreeShape(), 100)
