"""A head is trained on what it will meet: what it guesses in training is what it guesses when it drafts."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_chats import ANSWER
from transformers import LlamaConfig, LlamaForCausalLM

from eagle2.analysis import metrics
from eagle2.decoding.engine import Engine
from eagle2.drafters.eagle import EagleDrafter
from eagle2.loading.head_files import load_head
from eagle2.models.eagle_head import EagleHead
from eagle2.settings import Sampling, TreeShape
from eagle2.training import features
from eagle2.training import objective as objectives
from eagle2.training.corpus import Corpus, answers
from eagle2.training.data import Chats
from eagle2.training.objective import Objective, Weights
from eagle2.training.options import TrainSettings
from eagle2.training.replay import replay
from eagle2.training.start import linear_start, new_head, over_vocabulary
from eagle2.training.train import Trainer, most_frequent, refuse_early, train
from eagle2.training.unroll import unroll

SHORT = TrainSettings(steps=6, batch_tokens=96, vocabulary=200, loss_vocabulary=150, one_step=0.5, evaluate_every=3)


def objective_of(target, common=256, **weights):
    model = target.model
    embedding, lm_head = model.get_input_embeddings().weight.detach(), model.get_output_embeddings().weight.detach()
    return Objective(embedding, lm_head, torch.arange(common), torch.arange(common, 256), Weights(**weights))


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

    def test_noise_moves_what_the_head_reads_and_follows_from_the_batch(self, target, corpus, tiny_engine):
        head, batch = tiny_engine.drafter.head, next(corpus.batches([5], 96, 0))
        with torch.no_grad():
            losses = [float(objective_of(target).loss(head, batch, 1, noise)[0]) for noise in (0.0, 0.5, 0.5)]
        assert losses[0] != losses[1] == losses[2]

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
    tokens = np.array([5, 5, 3, 3, 9, 1], np.uint16)
    assert most_frequent(tokens, 12, 3).tolist() == [1, 3, 5]
    assert most_frequent(tokens, 12, 5).tolist() == [0, 1, 3, 5, 9]
    with pytest.raises(ValueError, match="vocabulary of 13 tokens was asked for"):
        most_frequent(tokens, 12, 13)


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
        assert head.draft_ids.tolist() == most_frequent(answers(corpus.chats), 256, 200).tolist()
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
        assert head.draft_ids.tolist() == most_frequent(answers(corpus.chats), 256, 200).tolist()

    def test_a_head_of_other_sizes_is_refused_by_the_tensor_that_tells(self, target, corpus, tiny_engine, tmp_path):
        settings = TrainSettings(**{**vars(SHORT), "intermediate_size": 16})
        with pytest.raises(ValueError, match=r"mlp\.down_proj\.weight of \[64, \d+\], the one to train \[64, 16\]"):
            train(target.model, corpus, settings, tmp_path, tiny_engine.drafter.head)

    def test_a_stopped_command_goes_on_behind_its_last_save_and_logs_each_step_once(self, target, corpus, tmp_path):
        long = TrainSettings(**{**vars(SHORT), "steps": 9})
        train(target.model, corpus, SHORT, tmp_path)
        with open(tmp_path / "log.jsonl", "a", encoding="utf-8") as log:  # two steps more, then the plug was pulled
            log.write('{"step": 7, "loss": [1.0]}\n{"step": 8, "lo')
        train(target.model, corpus, long, tmp_path)
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if "loss" in line] == list(range(1, 10))

    def test_a_run_goes_on_with_what_it_was_begun_with_alone(self, target, corpus, tiny_engine, tmp_path):
        train(target.model, corpus, SHORT, tmp_path)
        changed = TrainSettings(**{**vars(SHORT), "learning_rate": 1e-4})
        with pytest.raises(ValueError, match=r"learning_rate = 0\.0006, now it is 0\.0001"):
            train(target.model, corpus, changed, tmp_path)
        fewer = Corpus(Chats(*(part[:-1] for part in vars(corpus.chats).values())), corpus.features)
        with pytest.raises(ValueError, match="begun with other chats"):
            train(target.model, fewer, SHORT, tmp_path)
        with pytest.raises(ValueError, match="begun with other weights to continue from"):
            train(target.model, corpus, SHORT, tmp_path, tiny_engine.drafter.head)

    def test_a_head_whose_positions_turn_otherwise_is_refused(self, target, corpus, tiny_engine, tmp_path):
        head = tiny_engine.drafter.head
        other = EagleHead(replace(head.config, rope={**head.config.rope, "rope_theta": 1.5}))
        with pytest.raises(ValueError, match="other rope settings"):
            train(target.model, corpus, SHORT, tmp_path, other)

    def test_where_nothing_is_held_out_nothing_is_evaluated_and_where_all_is_nothing_is_trained(
        self, target, corpus, tmp_path
    ):
        some = Corpus(corpus.chats, corpus.features)
        some.held_out = []
        train(target.model, some, SHORT, tmp_path)
        lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert not any("held_out" in line for line in lines)
        some.train = []
        with pytest.raises(ValueError, match="all chats are held out"):
            train(target.model, some, SHORT, tmp_path / "other")

    def test_what_can_be_refused_before_features_are_computed_is(self, target, corpus, tiny_engine, tmp_path):
        train(target.model, corpus, SHORT, tmp_path)
        with pytest.raises(ValueError, match="vocabulary of 999 tokens was asked for"):
            refuse_early(target.model, replace(SHORT, vocabulary=999), tmp_path / "other", None)
        with pytest.raises(ValueError, match="clip"):
            refuse_early(target.model, replace(SHORT, clip=2.0), tmp_path, None)
        with pytest.raises(ValueError, match="the one to train"):
            refuse_early(
                target.model, replace(SHORT, intermediate_size=16), tmp_path / "other", tiny_engine.drafter.head
            )
        refuse_early(target.model, SHORT, tmp_path, tiny_engine.drafter.head)

    def test_a_head_over_another_vocabulary_guesses_the_same_features(self, tiny_engine, corpus, target):
        given, ids = tiny_engine.drafter.head, torch.tensor([3, 5, 250])
        head = over_vocabulary(given, ids)
        assert head.draft_ids.tolist() == [3, 5, 250]
        batch, embedding = next(corpus.batches([5], 96, 0)), objective_of(target).embedding
        pairs = embedding[batch.ids[:, 1:]], batch.features[:, :-1]
        for one, other in zip(unroll(given, *pairs, 2), unroll(head, *pairs, 2), strict=True):
            assert torch.equal(one, other)

    def test_a_target_in_bfloat16_trains_a_float32_head_on_features_of_either(self, target, chats, tmp_path):
        half = deepcopy(target.model).bfloat16()
        path, texts = tmp_path / "features.f16", list(chats)
        whole = np.array(features.compute(target.model, texts[:20], path))
        found = features.compute(half, texts, path)  # goes on behind those that were computed in float32
        assert np.array_equal(found[: len(whole)], whole)
        assert np.abs(features.compute(half, texts, tmp_path / "half.f16") - found).mean() < 0.02
        head = train(half, Corpus(chats, found), SHORT, tmp_path)
        assert {p.dtype for p in head.parameters()} == {torch.float32}
        losses = [json.loads(line).get("loss") for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        assert all(np.isfinite(loss).all() for loss in losses if loss)

    def test_memory_that_is_not_there_is_told_with_what_to_do(self, target, corpus, monkeypatch):
        trainer = Trainer(SHORT, new_head(target.model, SHORT, None), objective_of(target), corpus)

        def step(batch):
            raise torch.OutOfMemoryError("CUDA out of memory")

        monkeypatch.setattr(trainer, "step", step)
        with pytest.raises(MemoryError, match=r"a step of \d+ tokens does not fit on cpu; give a smaller"):
            next(trainer.run())

    def test_a_loss_that_is_no_number_stops_it(self, target, corpus):
        head = new_head(target.model, SHORT, None)
        torch.nn.init.constant_(head.fc.weight, float("nan"))
        trainer = Trainer(SHORT, head, objective_of(target), corpus)
        with pytest.raises(FloatingPointError, match="try a lower rate"):
            next(trainer.run())

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [({"minutes": 0}, "minutes is 0"), ({"one_step": 2}, "one_step"), ({"prompts": 2}, "prompts")],
    )
    def test_settings_that_cannot_be_are_refused(self, change, sentence):
        with pytest.raises(ValueError, match=sentence):
            TrainSettings(**change)
