"""The lean forward pass computes what the stock models do."""

import pytest
import torch
from tiny_chats import VOCAB, tiny_llama

from eagle2.training.fast_llama import LeanLlama

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 4},
        {"tie_word_embeddings": True},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0}},
    ],
    ids=["grouped", "ungrouped", "tied", "rope scaled"],
)
def test_lean_logits_are_the_stock_models_for_rows_of_any_length(changes):
    model = tiny_llama(**changes)
    slots = 20  # more than one block
    lean = LeanLlama(model, slots, 64)
    ids = torch.randint(3, VOCAB, (slots, 64), generator=torch.Generator().manual_seed(1))
    held = torch.zeros(slots, dtype=torch.int64)
    order = list(range(slots))
    with torch.inference_mode():
        stock = model(ids).logits
        for step in range(40):
            row = torch.tensor(order)
            logits = lean.step(ids[row, held[row]], held[row])
            torch.testing.assert_close(logits, stock[row, held[row]], rtol=0, atol=1e-4)
            held += 1
            held[step % slots] = 0  # a slot is freed and starts over, with no clearing
            if step % 9 == 8:
                new = torch.randperm(slots, generator=torch.Generator().manual_seed(step)).tolist()
                lean.reorder(new)
                order = [order[i] for i in new]


def test_a_filled_prefix_is_as_good_as_a_fed_one(model):
    lean = LeanLlama(model, 2, 16)
    prefix = lean.prefill([1, 5, 6, 9])
    lean.fill(1, prefix)
    logits = lean.step(torch.tensor([3, 11]), torch.tensor([0, 4]))
    with torch.inference_mode():
        torch.testing.assert_close(logits[1], model(torch.tensor([[1, 5, 6, 9, 11]])).logits[0, -1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "slots", "max_length", "message"),
    [
        ({"attention_bias": True}, 2, 16, "attention_bias"),
        ({"hidden_act": "gelu"}, 2, 16, "'gelu'"),
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, 2, 16, "'dynamic'"),
        ({}, 0, 16, "slots is 0"),
        ({}, 2, 129, "129 tokens; this model allows 1 to 128"),
    ],
)
def test_a_model_the_lean_pass_would_compute_wrongly_is_refused(changes, slots, max_length, message):
    with pytest.raises(ValueError, match=message):
        LeanLlama(tiny_llama(**changes), slots, max_length)
