"""Layers whose product is chosen by measurement: the same layer otherwise, for whoever else looks at the model."""

import pytest
import torch
from torch import nn

from eagle2.models import cpu_linear
from eagle2.models.cpu_linear import (
    FEWEST_WEIGHTS,
    ROWS,
    TALL,
    Choice,
    FewRowsLinear,
    choose_products,
    faster,
    fastest,
    transposed,
    weights_first,
)


@pytest.mark.parametrize("bias", [False, True])
def test_weights_first_is_the_same_product(bias):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    shift = torch.tensor([10.0, 20.0, 30.0]) if bias else None
    product = weights_first(x, weight, shift)
    wanted = [[1.0, 2.0, -1.0], [3.0, 4.0, -1.0]]
    assert product.tolist() == ([[11.0, 22.0, 29.0], [13.0, 24.0, 29.0]] if bias else wanted)
    assert product.is_contiguous()


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 3), (1, 2, 3), (1, 4, 3), (2, 2, 2, 3), (0, 3)])
@pytest.mark.parametrize("choice", [(), (True,) * 5, (False, False, True, False, True)])
@pytest.mark.parametrize("one_row", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_layer_gives_what_linear_gives_for_any_shape_and_choice(shape, choice, one_row, bias):
    torch.manual_seed(1)
    linear = nn.Linear(3, 5, bias=bias)
    x = torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(FewRowsLinear(linear, Choice(choice, one_row))(x), linear(x))


def test_exchanging_layers_keeps_parameters_names_and_ties():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(300, 256)
            self.inner = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
            self.head = nn.Linear(256, 300, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied().eval()
    before = {name: parameter.data_ptr() for name, parameter in model.named_parameters(remove_duplicate=False)}
    choose_products(model)
    assert {n: p.data_ptr() for n, p in model.named_parameters(remove_duplicate=False)} == before
    assert model.head.weight is model.embedding.weight
    kinds = [type(layer) for layer in (model.inner[0], model.inner[2], model.head)]
    assert kinds == [FewRowsLinear, nn.Linear, FewRowsLinear]
    assert 256 * 4 < FEWEST_WEIGHTS < 256 * 256 + 1
    assert not model.head.training
    model.load_state_dict(model.state_dict())


def test_a_subclass_of_linear_is_left_alone():
    class Own(nn.Linear):
        pass

    model = nn.Sequential(Own(256, 256))
    choose_products(model)
    assert type(model[0]) is Own


def test_the_choice_covers_every_count_and_is_made_once():
    choice = fastest(64, 32, torch.float32, 1)
    first = choice.weights_first
    assert len(first) == ROWS[-1] + 1
    assert first[:2] == (False, False)  # one row is the same product in either order
    assert all(first[r] == first[max(m for m in ROWS if m <= r)] for r in range(2, len(first)))
    assert not choice.one_row_transposed  # no LM head
    assert fastest(64, 32, torch.float32, 1) is choice


INPUTS = 96


def tall(monkeypatch, free=2**40):
    """A layer in an LM head's shape, and that layer where one row was found to be faster by a copy."""
    monkeypatch.setattr(cpu_linear, "fastest", lambda *_: Choice((False, False, True), True))
    monkeypatch.setattr(cpu_linear, "free_main_memory", lambda: free)
    embedding = nn.Embedding(TALL * INPUTS, INPUTS)
    layer = nn.Linear(INPUTS, TALL * INPUTS, bias=False)
    layer.weight = embedding.weight
    return layer, faster(layer)


def test_one_row_goes_by_a_transposed_copy_and_the_weights_stay_the_tied_ones(monkeypatch):
    layer, made = tall(monkeypatch)
    x = torch.randn(1, INPUTS)
    with torch.inference_mode():
        torch.testing.assert_close(made(x), layer(x))
    assert made.weight is layer.weight
    assert list(made.state_dict()) == ["weight"]
    assert made._transposed.is_contiguous()


def test_a_copy_of_weights_that_have_changed_is_not_used(monkeypatch):
    layer, made = tall(monkeypatch)
    x = torch.randn(1, INPUTS)
    with torch.no_grad():
        layer.weight.mul_(2)
        torch.testing.assert_close(made(x), layer(x))
        made.to(torch.bfloat16)
        assert made(x.bfloat16()).dtype == torch.bfloat16


def test_a_copy_that_would_take_much_of_the_memory_is_not_made(monkeypatch):
    layer, made = tall(monkeypatch, free=4 * INPUTS * TALL * INPUTS * 4)
    assert made._transposed is None
    x = torch.randn(1, INPUTS)
    torch.testing.assert_close(made(x), layer(x))


def test_the_timed_product_has_the_transposed_one_s_shape():
    x, weight = torch.ones(1, 3), torch.ones(5, 3)
    assert transposed(x, weight).tolist() == (x @ weight.T).tolist()


def test_gradients_pass_through():
    linear = nn.Linear(3, 2)
    layer = FewRowsLinear(linear, Choice((False, True, True), True))
    layer(torch.ones(2, 3)).sum().backward()
    assert linear.weight.grad.tolist() == [[2.0] * 3] * 2
    assert linear.bias.grad.tolist() == [2.0, 2.0]
    layer(torch.ones(1, 3)).sum().backward()
    assert linear.weight.grad.tolist() == [[3.0] * 3] * 2
