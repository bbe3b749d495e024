"""The head over whole chats at once guesses what it would guess when it drafts."""

import pytest
import torch

from eagle2.models.kv_cache import KeyValueRows
from eagle2.training.unroll import unroll


@torch.inference_mode()
def test_every_step_guesses_what_drafting_that_deep_would_guess(tiny_engine):
    head, length, hidden = tiny_engine.drafter.head, 10, 64
    pairs = torch.randn(2, 1, length, hidden, generator=torch.Generator().manual_seed(0))
    steps = list(unroll(head, pairs[0], pairs[1], 4))
    for committed in range(1, length - 3):
        cache, causal = KeyValueRows(), torch.ones(committed, committed, dtype=torch.bool).tril()
        rows = pairs[:, 0, :committed]
        guess = head(rows[0], rows[1], torch.arange(committed), cache, causal)[-1:]
        for step, place in enumerate(range(committed - 1, committed + 3)):
            if step:
                visible = torch.ones(1, place + 1, dtype=torch.bool)
                guess = head(pairs[0, 0, place, None], guess, torch.tensor([place]), cache, visible)
            assert torch.allclose(steps[step][0, place], guess[0], atol=1e-5)


@pytest.mark.parametrize("first", [1, 4, 7])
@torch.inference_mode()
def test_rows_that_are_only_attended_to_leave_the_others_as_they_were(tiny_engine, first):
    head, pairs = tiny_engine.drafter.head, torch.randn(2, 3, 12, 64, generator=torch.Generator().manual_seed(2))
    for step, (whole, part) in enumerate(zip(unroll(head, *pairs, 3), unroll(head, *pairs, 3, first), strict=True)):
        assert part.shape[1] == 12 - first
        assert torch.allclose(whole[:, first + step :], part[:, step:], atol=1e-5)


@torch.inference_mode()
def test_what_is_padded_behind_changes_nothing_before_it(tiny_engine):
    pairs = torch.randn(2, 1, 8, 64, generator=torch.Generator().manual_seed(1))
    longer = torch.cat([pairs, torch.full((2, 1, 3, 64), 9.0)], dim=2)
    head = tiny_engine.drafter.head
    for short, long in zip(unroll(head, *pairs, 3), unroll(head, *longer, 3), strict=True):
        assert torch.allclose(short, long[:, :8], atol=1e-5)
