"""Chats and features as training reads them: whole, in batches, and some prompts never."""

import numpy as np
import pytest
import torch
from tiny_chats import ANSWER

from eagle2.training import corpus as corpora
from eagle2.training import features
from eagle2.training.corpus import Batch, Corpus, answers, held_out
from eagle2.training.data import Chats


class TestFeatures:
    def test_they_are_what_the_engine_gives_the_drafter(self, target, corpus):
        ids, found, _ = corpus.chat(7)
        expected, _ = target.extend(target.begin(), ids.tolist())
        assert np.allclose(found, expected.numpy(), atol=2e-3)

    def test_a_run_that_was_stopped_goes_on_behind_the_last_block(self, target, chats, tmp_path, monkeypatch):
        monkeypatch.setattr(features, "BLOCK", 8)
        path, texts = tmp_path / "features.f16", list(chats)
        features.compute(target.model, texts[:20], path)
        before = path.read_bytes()
        found = features.compute(target.model, texts, path)
        assert path.read_bytes()[: len(before)] == before
        assert np.allclose(found, features.compute(target.model, texts, tmp_path / "again.f16"), atol=2e-3)

    def test_features_of_other_chats_are_refused_not_used(self, target, chats, tmp_path):
        path, texts = tmp_path / "features.f16", list(chats)
        features.compute(target.model, texts[:4], path)
        with pytest.raises(ValueError, match="holds features of other chats"):
            features.compute(target.model, texts[1:], path)


class TestCorpus:
    def test_some_prompts_are_held_out_and_no_chat_is_both(self, corpus):
        assert sorted(corpus.train + corpus.held_out) == list(range(50))
        assert [i for i in range(50) if held_out(corpus.ids[i][:ANSWER])] == corpus.held_out == [1, 28, 39, 41]

    def test_one_prompt_in_24_is_held_out(self):
        prompts = np.arange(24_000, dtype=np.uint16)
        assert 900 < sum(held_out(prompts[i : i + 1]) for i in range(len(prompts))) < 1100

    def test_all_answers_to_a_held_out_prompt_are_held_out_in_any_order_and_company(self):
        def kept(prompts):
            ids = [[1, prompt, 50, answer] for answer, prompt in enumerate(prompts)]
            tokens, count = np.concatenate(ids).astype(np.uint16), len(ids)
            chats = Chats(tokens, np.full(count, 4, np.int32), np.full(count, 3, np.int32), np.zeros(count, np.float32))
            return {prompts[i] for i in Corpus(chats, np.zeros((4 * count, 2), np.float16)).held_out}

        prompts = [prompt for prompt in range(100, 300) for _ in range(3)]
        found = kept(prompts)
        assert 3 <= len(found) <= 20
        assert kept(prompts[::-1]) == found
        assert kept([prompt for prompt in prompts if prompt % 2]) == {prompt for prompt in found if prompt % 2}

    @pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
    def test_the_width_of_the_ids_does_not_matter(self, dtype):
        openings = np.arange(3_000).reshape(1_000, 3)
        assert [held_out(o.astype(dtype)) for o in openings] == [held_out(o) for o in openings]

    def test_chats_whose_features_are_not_there_yet_are_left_out(self, chats, corpus):
        begun = Corpus(chats, corpus.features[: corpus.starts[30] + 5])
        assert sorted(begun.train + begun.held_out) == list(range(30))

    def test_an_epoch_holds_every_answer_once_and_counts_neither_prompts_nor_padding(self, corpus):
        batches = list(corpus.batches(corpus.train, size=96, seed=4))
        assert sum(batch.tokens for batch in batches) == corpus.tokens(corpus.train) - ANSWER * len(corpus.train)
        for batch in batches:
            assert batch.ids.numel() <= 96
            for ids, weight in zip(batch.ids, batch.weight, strict=True):  # a row: whole chats, then padding
                row = f" {' '.join(map(str, ids.tolist()))} "
                here = [text for text in corpus.ids if f" {' '.join(map(str, text.tolist()))} " in row]
                assert sorted(ids[weight > 0].tolist()) == sorted(t for text in here for t in text[ANSWER:].tolist())

    def test_prompts_are_learnt_in_a_share_of_batches_but_for_what_all_chats_begin_with(self, corpus):
        assert corpus.shared == 3  # 1, 2, 3, and then three tokens of each chat's own
        whole = list(corpus.batches(corpus.train, 96, seed=4, prompts=1.0))
        assert sum(batch.tokens for batch in whole) == corpus.tokens(corpus.train) - 3 * len(corpus.train)
        answers = [batch.tokens for batch in corpus.batches(corpus.train, 96, seed=4)]
        half = [batch.tokens for batch in corpus.batches(corpus.train, 96, seed=4, prompts=0.5)]
        learnt = [here > only for here, only in zip(half, answers, strict=True)]
        assert all(here in (only, batch.tokens) for here, only, batch in zip(half, answers, whole, strict=True))
        assert 0.2 < sum(learnt) / len(learnt) < 0.8

    def test_the_first_row_to_compute_is_the_one_whose_guess_is_the_past_of_the_first_answer(self):
        weight = torch.tensor([[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 0]])
        batch = Batch(torch.zeros(2, 7, dtype=torch.int64), torch.zeros(2, 7, 4), weight.float())
        # Row 3 guesses position 4, where the earlier answer begins; step 3 there stands on the guesses of rows 1 and 2.
        assert [batch.first_row(steps) for steps in (1, 2, 3, 5)] == [3, 2, 1, 0]

    def test_chats_stand_side_by_side_and_end_to_end_in_turn(self, corpus):
        rows = [len(batch.ids) for batch in corpus.batches(corpus.train, size=96, seed=4)]
        assert all(count == 1 for count in rows[1::2])
        assert max(rows[::2]) > 1

    def test_a_long_row_is_broken_and_a_chat_longer_than_a_batch_is_one_by_itself(self, corpus, monkeypatch):
        monkeypatch.setattr(corpora, "LONGEST_ROW", 60)
        batches = list(corpus.batches(corpus.train, size=150, seed=4))
        assert all(batch.ids.shape[1] <= 60 for batch in batches)
        assert sum(batch.tokens for batch in batches) == len(answers(corpus.chats))
        assert any(len(batch.ids) > 1 for batch in batches[1::2])
        alone = list(corpus.batches(corpus.train, size=8, seed=4))
        assert [len(batch.ids) for batch in alone] == [1] * len(corpus.train)

    def test_what_heads_shall_propose_are_the_answers_that_are_not_held_out(self, corpus):
        learnt = [token for i in corpus.train for token in corpus.ids[i][ANSWER:].tolist()]
        assert answers(corpus.chats).tolist() == learnt

    def test_the_seed_decides_the_order(self, corpus):
        def order(seed):
            return [batch.ids.flatten().tolist() for batch in corpus.batches(corpus.train, 96, seed)]

        assert order(1) == order(1) != order(2)
