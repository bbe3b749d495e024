"""Layers whose product is chosen by measurement: the same layer otherwise, for whoever else looks at the model."""

import pytest
import torch
from torch import nn

from eagle2.products import FEWEST_WEIGHTS, ROWS, FewRowsLinear, choose_products, faster_weights_first, weights_first


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
@pytest.mark.parametrize("bias", [False, True])
def test_the_layer_gives_what_linear_gives_for_any_shape_and_choice(shape, choice, bias):
    torch.manual_seed(1)
    linear = nn.Linear(3, 5, bias=bias)
    x = torch.randn(shape)
    torch.testing.assert_close(FewRowsLinear(linear, choice)(x), linear(x))


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
    choice = faster_weights_first(64, 32, torch.float32, 1)
    assert len(choice) == ROWS[-1] + 1
    assert choice[:2] == (False, False)  # one row is the same product either way
    assert all(choice[r] == choice[max(m for m in ROWS if m <= r)] for r in range(2, len(choice)))
    assert faster_weights_first(64, 32, torch.float32, 1) is choice


def test_gradients_pass_through():
    linear = nn.Linear(3, 2)
    layer = FewRowsLinear(linear, (False, True, True))
    layer(torch.ones(2, 3)).sum().backward()
    assert linear.weight.grad.tolist() == [[2.0] * 3] * 2
    assert linear.bias.grad.tolist() == [2.0, 2.0]
