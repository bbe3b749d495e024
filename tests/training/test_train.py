"""A head is trained on what it will meet: what it guesses in training is what it guesses when it drafts."""

import json

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from eagle2 import metrics
from eagle2.checkpoint import load_head
from eagle2.config import Sampling, TreeShape
from eagle2.draft import EagleDrafter
from eagle2.engine import Engine
from eagle2.training import features
from eagle2.training import objective as objectives
from eagle2.training.corpus import HELD_OUT, Batch, Corpus
from eagle2.training.data import Chats
from eagle2.training.objective import Objective, Weights
from eagle2.training.replay import replay
from eagle2.training.settings import TrainSettings
from eagle2.training.start import linear_start
from eagle2.training.train import Trainer, most_frequent, new_head, train
from eagle2.training.unroll import unroll

ANSWER = 6
SHORT = TrainSettings(steps=6, batch_tokens=96, vocabulary=200, loss_vocabulary=150, one_step=0.5, evaluate_every=3)


@pytest.fixture(scope="module")
def target(tiny_engine):
    return tiny_engine.target


@pytest.fixture(scope="module")
def chats(tiny_engine):
    """Fifty texts of the tiny target's own, of 20 to 29 tokens, each after six tokens of a prompt."""
    texts, temperatures = [], []
    for seed in range(50):
        prompt = [1, 2, 3, *torch.randint(256, (3,), generator=torch.Generator().manual_seed(seed)).tolist()]
        temperatures.append(0.7 * (seed % 2))
        sampling = Sampling(temperatures[-1], seed=seed)
        texts.append(prompt + tiny_engine.plain(prompt, sampling, max_new_tokens=14 + seed % 10))
    return Chats(
        np.concatenate([np.array(text, np.uint16) for text in texts]),
        np.array([len(text) for text in texts], np.int32),
        np.full(50, ANSWER, np.int32),
        np.array(temperatures, np.float32),
    )


@pytest.fixture(scope="module")
def corpus(target, chats, tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "features.f16"
    return Corpus(chats, features.compute(target.model, list(chats), path))


def objective_of(target, common=256, **weights):
    model = target.model
    embedding, lm_head = model.get_input_embeddings().weight.detach(), model.get_output_embeddings().weight.detach()
    return Objective(embedding, lm_head, torch.arange(common), torch.arange(common, 256), Weights(**weights))


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
    def test_one_prompt_in_24_is_held_out(self, corpus):
        assert corpus.held_out == [23, 47]
        assert sorted(corpus.train + corpus.held_out) == list(range(50))
        assert HELD_OUT == 24

    def test_all_answers_to_a_held_out_prompt_are_held_out(self):
        prompts = [*range(22), 22, 22, 23, 23, 23, 24, 22, 23]  # by their second token
        ids = [[1, 100 + prompt, 50, answer] for answer, prompt in enumerate(prompts)]
        tokens, count = np.concatenate(ids).astype(np.uint16), len(ids)
        chats = Chats(tokens, np.full(count, 4, np.int32), np.full(count, 3, np.int32), np.zeros(count, np.float32))
        assert Corpus(chats, np.zeros((4 * count, 2), np.float16)).held_out == [24, 25, 26, 29]

    def test_chats_whose_features_are_not_there_yet_are_left_out(self, chats, corpus):
        begun = Corpus(chats, corpus.features[: corpus.starts[30] + 5])
        assert sorted(begun.train + begun.held_out) == list(range(30))

    def test_an_epoch_holds_every_answer_once_and_counts_neither_prompts_nor_padding(self, corpus):
        batches = list(corpus.batches(corpus.train, size=96, seed=4))
        assert sum(batch.tokens for batch in batches) == corpus.tokens(corpus.train) - ANSWER * len(corpus.train)
        for batch in batches:
            assert batch.ids.numel() <= 96
            assert not batch.features[batch.weight == 0][:, :1].isnan().any()

    def test_the_first_row_to_compute_is_the_one_whose_guess_is_the_past_of_the_first_answer(self):
        weight = torch.tensor([[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 0]])
        batch = Batch(torch.zeros(2, 7, dtype=torch.int64), torch.zeros(2, 7, 4), weight.float())
        # Row 3 guesses position 4, where the earlier answer begins; step 3 there stands on the guesses of rows 1 and 2.
        assert [batch.first_row(steps) for steps in (1, 2, 3, 5)] == [3, 2, 1, 0]

    def test_chats_stand_side_by_side_and_end_to_end_in_turn(self, corpus):
        rows = [len(batch.ids) for batch in corpus.batches(corpus.train, size=96, seed=4)]
        assert all(count == 1 for count in rows[1::2])
        assert max(rows[::2]) > 1

    def test_the_seed_decides_the_order(self, corpus):
        def order(seed):
            return [batch.ids.flatten().tolist() for batch in corpus.batches(corpus.train, 96, seed)]

        assert order(1) == order(1) != order(2)


class TestObjective:
    def test_a_head_that_guesses_every_feature_has_the_entropy_left_and_agrees_everywhere(
        self, target, corpus, monkeypatch
    ):
        batch = next(corpus.batches([5], 96, 0))
        goal = batch.features[:, 1:]
        objective = objective_of(target)
        log_p = (goal @ objective.lm_head.T).log_softmax(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)[batch.weight[:, 1:] > 0].mean()
        monkeypatch.setattr(
            objectives, "unroll", lambda head, embeddings, features, steps, first: iter([goal[:, first:]] * steps)
        )
        loss, told = objective.loss(None, batch, 2)
        agreed, counted = objective.agreement(None, batch, 2)
        assert told[0] == pytest.approx(float(entropy), rel=1e-4)
        assert float(loss) == pytest.approx(told[0] + 0.8 * told[1], rel=1e-5)
        assert agreed.tolist() == counted.tolist()
        # The prompt's six tokens count nothing; the first row of step 2 has no guess, but it is in the prompt.
        assert counted.tolist() == [batch.ids.shape[1] - ANSWER] * 2

    def test_distributions_are_compared_over_common_tokens_the_answers_own_and_some_of_the_rest(self, target, corpus):
        objective, batch = objective_of(target, common=100), next(corpus.batches([5], 96, 0))
        compared = objective.compared(batch)
        answer = set(corpus.ids[5][ANSWER:].tolist())
        drawn = set(compared.tolist()) - set(range(100)) - answer
        assert set(range(100)) | answer <= set(compared.tolist())
        assert len(compared) == len(compared.unique())
        assert 50 - len(answer) <= len(drawn) <= 50  # 50 are drawn; a few may be the answer's
        assert torch.equal(objective.compared(batch), compared)  # a run that goes on draws the same
        assert not torch.equal(objective.compared(next(corpus.batches([6], 96, 0))), compared)

    def test_the_frozen_parts_get_no_gradient_and_the_head_does(self, target, corpus, tiny_engine):
        head = new_head(target.model, SHORT, None)
        linear_start(head, objective_of(target).embedding, map(corpus.chat, corpus.train))
        loss, _ = objective_of(target).loss(head, next(corpus.batches(corpus.train, 96, 0)), 3)
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in head.parameters())


@torch.no_grad()
def test_the_linear_start_solves_a_linear_world():
    """Features that follow f' = A e + B f + c, with A, B, c given: the start finds them, whatever the steps."""
    random = np.random.default_rng(0)
    hidden = 64
    embedding = random.normal(size=(256, hidden))
    a, b, c = random.normal(size=(hidden, hidden)) / 12, 0.5 * np.eye(hidden), random.normal(size=hidden)
    worlds = []
    for _ in range(40):
        ids = random.integers(256, size=60)
        feature = [random.normal(size=hidden)]
        for token in ids[1:]:
            feature.append(a @ embedding[token] + b @ feature[-1] + c)
        worlds.append((ids, np.array(feature, np.float32), 1))
    config = LlamaConfig(
        vocab_size=256, hidden_size=hidden, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4
    )
    head = new_head(LlamaForCausalLM(config), TrainSettings(), None)
    linear_start(head, torch.from_numpy(embedding).float(), worlds)
    assert np.allclose(head.fc.weight[:, :hidden].detach().numpy(), a, atol=0.01)
    ids, feature, _ = worlds[0]
    embeddings = torch.from_numpy(embedding[ids[1:]]).float()[None]
    for step, guess in enumerate(unroll(head, embeddings, torch.from_numpy(feature[:-1])[None], 4)):
        error = guess[0, step:] - torch.from_numpy(feature[1 + step :])
        assert float(error.square().mean()) < 0.02 * feature.var()  # what the ridge and the quiet layer leave


def test_the_most_frequent_tokens_are_taken_and_the_lower_id_among_equals():
    chats = Chats(np.array([5, 5, 3, 3, 9, 1], np.uint16), np.array([6]), np.array([1]), np.array([0.0]))
    assert most_frequent(chats, 12, 3).tolist() == [1, 3, 5]
    assert most_frequent(chats, 12, 5).tolist() == [0, 1, 3, 5, 9]
    with pytest.raises(ValueError, match="vocabulary of 13 tokens was asked for"):
        most_frequent(chats, 12, 13)


class TestReplay:
    @pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, seed=5)], ids=["greedy", "sampled"])
    def test_it_tells_the_rounds_that_decoding_had(self, tiny_engine, target, sampling):
        prompt, shape = [1, 2, 3, 40, 50], TreeShape(4, 3, 8)
        rounds = list(tiny_engine.rounds(prompt, shape, sampling, max_new_tokens=40))
        text = prompt + [token for r in rounds for token in r.committed]
        found, _ = target.extend(target.begin(), text)
        again = replay(target, tiny_engine.drafter.head, [(text, found.numpy(), len(prompt))], shape, 40)
        assert [r.committed for r in again] == [r.committed for r in rounds]
        for one, other in zip(again[:-2], rounds, strict=False):  # the last ones are drafted less deep
            assert (one.token, one.slot, one.accepted) == (other.token, other.slot, other.accepted)
            assert np.allclose(one.value, other.value, atol=1e-4)

    def test_several_chats_are_laid_end_to_end(self, tiny_engine, target, corpus):
        rounds = replay(target, tiny_engine.drafter.head, map(corpus.chat, [0, 2]), TreeShape(4, 3, 8), 100)
        assert sum(r.index == 0 for r in rounds) == 2
        answers = sum(len(corpus.ids[i]) - ANSWER for i in (0, 2))
        assert sum(len(r.committed) for r in rounds) == answers


class TestTrain:
    def test_it_learns_and_what_it_writes_is_a_lossless_head(self, target, corpus, tmp_path, capsys):
        settings = TrainSettings(**{**vars(SHORT), "steps": 40, "evaluate_every": 40})
        train(target.model, corpus, settings, tmp_path)
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line]
        assert [len(loss) for loss in losses] == [1] * 20 + [3] * 20
        assert sum(loss[0] for loss in losses[-5:]) < sum(loss[0] for loss in losses[:5])
        assert len(lines[-1]["held_out"]) == 5
        head = load_head(tmp_path / "head", 64, 256)
        assert head.draft_ids.tolist() == most_frequent(corpus.chats, 256, 200).tolist()
        engine = Engine(target, EagleDrafter(target, head))
        rounds = list(engine.rounds([1, 2, 3, 40], TreeShape(4, 3, 8), max_new_tokens=24))
        assert [token for r in rounds for token in r.committed] == engine.plain([1, 2, 3, 40], max_new_tokens=24)
        assert metrics.tau(rounds) > 1

    def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(self, target, corpus, tmp_path):
        def trainer():
            torch.manual_seed(0)
            head = new_head(target.model, SHORT, None)
            linear_start(head, objective_of(target).embedding, map(corpus.chat, corpus.train))
            return Trainer(SHORT, head, objective_of(target), corpus)

        whole, stopped, resumed = trainer(), trainer(), trainer()
        list(whole.run())
        for line in stopped.run():
            if line.get("step") == 4 and "loss" in line:
                stopped.save(tmp_path / "state.pt")
                break
        resumed.restore(tmp_path / "state.pt")
        list(resumed.run())
        assert resumed.progress.step == whole.progress.step == 6
        for one, other in zip(whole.head.parameters(), resumed.head.parameters(), strict=True):
            assert torch.equal(one, other)

    def test_it_begins_from_a_head_that_is_given_and_gives_it_the_datas_draft_vocabulary(
        self, target, corpus, tiny_engine, tmp_path
    ):
        settings = TrainSettings(**{**vars(SHORT), "steps": 1, "learning_rate": 1e-9, "one_step": 1.0})
        given = tiny_engine.drafter.head
        head = train(target.model, corpus, settings, tmp_path, given)
        for name, parameter in head.named_parameters():
            assert torch.allclose(parameter, given.get_parameter(name), atol=1e-6)
        assert head.draft_ids.tolist() == most_frequent(corpus.chats, 256, 200).tolist()

    def test_a_head_of_other_sizes_is_refused_by_the_tensor_that_tells(self, target, corpus, tiny_engine, tmp_path):
        settings = TrainSettings(**{**vars(SHORT), "intermediate_size": 16})
        with pytest.raises(ValueError, match=r"mlp\.down_proj\.weight of \[64, \d+\], the one to train \[64, 16\]"):
            train(target.model, corpus, settings, tmp_path, tiny_engine.drafter.head)

    def test_other_settings_do_not_go_on_with_a_run(self, target, corpus, tmp_path):
        begun = Trainer(SHORT, new_head(target.model, SHORT, None), objective_of(target), corpus)
        begun.save(tmp_path / "state.pt")
        changed = TrainSettings(**{**vars(SHORT), "learning_rate": 1e-4})
        other = Trainer(changed, new_head(target.model, SHORT, None), objective_of(target), corpus)
        with pytest.raises(ValueError, match=r"learning_rate = 0\.0006, now it is 0\.0001"):
            other.restore(tmp_path / "state.pt")

    def test_a_loss_that_is_no_number_stops_it(self, target, corpus):
        head = new_head(target.model, SHORT, None)
        torch.nn.init.constant_(head.fc.weight, float("nan"))
        trainer = Trainer(SHORT, head, objective_of(target), corpus)
        with pytest.raises(FloatingPointError, match="try a lower rate"):
            next(trainer.run())

    @pytest.mark.parametrize(("change", "sentence"), [({"minutes": 0}, "minutes is 0"), ({"one_step": 2}, "one_step")])
    def test_settings_that_cannot_be_are_refused(self, change, sentence):
        with pytest.raises(ValueError, match=sentence):
            TrainSettings(**change)
