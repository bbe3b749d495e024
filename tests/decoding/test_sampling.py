"""The target's distribution and its keyed draws, against hand-made values and transformers' own logits processors."""

import math

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from eagle2.decoding.sampling import drawer, gumbel_noise, log_distribution
from eagle2.settings import Sampling


def distribution(probabilities, **settings):
    return np.exp(log_distribution(torch.tensor(probabilities).log(), Sampling(**{"temperature": 1.0, **settings})))


def test_temperature_one_is_the_softmax():
    np.testing.assert_allclose(distribution([0.5, 0.3, 0.2]), [0.5, 0.3, 0.2], rtol=1e-6)


def test_temperature_sharpens():
    np.testing.assert_allclose(distribution([0.6, 0.3, 0.1], temperature=0.5), np.array([36, 9, 1]) / 46, rtol=1e-6)


def test_top_k_keeps_ties_with_the_last_one_in():
    np.testing.assert_allclose(distribution([0.4, 0.2, 0.2, 0.2], top_k=2), [0.4, 0.2, 0.2, 0.2], rtol=1e-6)
    np.testing.assert_allclose(distribution([0.4, 0.3, 0.2, 0.1], top_k=2), [4 / 7, 3 / 7, 0, 0], rtol=1e-6)


def test_top_p_takes_the_likeliest_until_their_mass_reaches_it():
    np.testing.assert_allclose(distribution([0.5, 0.25, 0.125, 0.125], top_p=0.7), [2 / 3, 1 / 3, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(distribution([0.5, 0.25, 0.25], top_p=0.01), [1, 0, 0], rtol=1e-6)


def test_top_p_works_on_what_top_k_left():
    """Of (.4, .3) renormalised to (.571, .429), the first alone reaches .5; of the whole it would not."""
    np.testing.assert_allclose(distribution([0.4, 0.3, 0.2, 0.1], top_k=2, top_p=0.5), [1, 0, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("top_k", [0, 1, 5, 1000])
def test_the_distribution_is_that_of_transformers_processors(temperature, top_p, top_k):
    logits = torch.randn(8, 200, generator=torch.Generator().manual_seed(1)) * 4
    warped = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        warped = TopKLogitsWarper(min(top_k, 200))(None, warped)
    if top_p < 1:
        warped = TopPLogitsWarper(top_p)(None, warped)
    for row, wanted in zip(logits, warped.softmax(-1).numpy(), strict=True):
        np.testing.assert_allclose(
            np.exp(log_distribution(row, Sampling(temperature, top_p, top_k))), wanted, atol=1e-5
        )


@pytest.mark.parametrize("temperature", [1e-300, 1e-5, 0.01])
def test_a_tiny_temperature_is_as_good_as_greedy(temperature):
    logits = torch.tensor([1.0, 5.0, -3.0, 4.9])
    np.testing.assert_allclose(np.exp(log_distribution(logits, Sampling(temperature))), [0, 1, 0, 0], atol=1e-4)


def test_draws_follow_the_distribution():
    """5,000 positions: each frequency within five standard deviations of its probability."""
    probabilities = [0.51, 0.34, 0.1, 0.05]
    logits = torch.tensor(probabilities).log().expand(5_000, 4)
    draw = drawer(logits, Sampling(1.0, seed=3), range(5_000))
    counts = np.bincount([draw(row).token for row in range(5_000)], minlength=4)
    for count, p in zip(counts, probabilities, strict=True):
        assert abs(count / 5_000 - p) < 5 * math.sqrt(p * (1 - p) / 5_000)


def test_a_draw_tells_its_probability_under_the_distribution():
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    token, probability, _ = drawer(logits, Sampling(1.0, top_p=0.7), [9])(0)
    assert probability == pytest.approx({0: 2 / 3, 1: 1 / 3}[token])
    assert drawer(logits, Sampling(0.0), [9])(0) == (0, 1.0, None)


def test_noise_depends_on_seed_and_position_alone():
    first = gumbel_noise(1, 5, 8)
    gumbel_noise(1, 6, 8)
    np.random.default_rng(0).random()
    np.testing.assert_array_equal(first, gumbel_noise(1, 5, 8))
    assert not np.array_equal(first, gumbel_noise(2, 5, 8))
    assert not np.array_equal(first, gumbel_noise(1, 6, 8))
    assert not np.array_equal(gumbel_noise(2**40, 0, 8), gumbel_noise(0, 0, 8))  # more than 32 bits of the seed count


def test_the_callers_random_generators_are_untouched():
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    drawer(torch.zeros(2, 4), Sampling(1.0), [0, 1])(1)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()


def test_greedy_takes_the_lower_id_among_equals():
    assert drawer(torch.tensor([[1.0, 3.0, 3.0]]), Sampling(), [4])(0).token == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_no_numbers_are_an_error_in_one_sentence(temperature):
    draw = drawer(torch.tensor([[0.0, 1.0], [0.0, float("nan")]]), Sampling(temperature), [7, 8])
    assert draw(0).token in (0, 1)
    with pytest.raises(FloatingPointError, match=r"logits for position 8 are not finite .*try another dtype"):
        draw(1)
