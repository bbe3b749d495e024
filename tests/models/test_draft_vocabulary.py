"""Heads with a draft vocabulary: what they propose, what their files may hold, and that nothing is lost."""

import pytest
import torch
from accelerate import cpu_offload
from head_files import TENSORS, TINY, VOCABULARY, load, outputs, refusal, write_config
from safetensors.torch import save_file
from tiny import COMMON, FAMILIES, HIDDEN, VOCAB, random_head, random_model
from transformers import LlamaConfig

import eagle2
from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.drafters.eagle import EagleDrafter
from eagle2.loading.load import move
from eagle2.models.draft_vocabulary import offsets, target_ids
from eagle2.models.target import Target
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]
IDS = torch.tensor([3, 7, 50])
"""A draft vocabulary of three of the tiny families' 61 tokens."""


def reduced_head(ids=IDS, **changed):
    head = random_head(draft_vocab_size=len(ids), **changed)
    head.d2t.copy_(offsets(ids))
    return head


def steady_head(ids=IDS):
    """A head that predicts the feature (1, 0, 0, ...) whatever it is given."""
    head = reduced_head(ids)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.fc.bias[0] = 1
    return head


def steady_pair(shares, others=100.0):
    """The steady head and a target whose LM head gives its feature logits log(shares) at IDS, `others` elsewhere."""
    target = Target(random_model(FAMILIES["llama"]))
    with torch.no_grad():
        target.model.lm_head.weight.fill_(others)
        target.model.lm_head.weight[IDS, 0] = torch.tensor(shares).log()
    return target, EagleDrafter(target, steady_head())


def grown(drafter, shape):
    draft = drafter.begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:]), torch.zeros(len(PROMPT) - 1, HIDDEN))
    return draft.grow(make_policy("eagle2", shape, drafter.vocabulary), shape.depth)


class TestDrafting:
    def test_confidences_are_shares_of_the_draft_vocabulary_and_nodes_hold_the_targets_ids(self):
        """Logits log 1, log 2, log 5 at ids 3, 7, 50: shares 1/8, 2/8, 5/8, whatever the other 58 tokens have."""
        _, drafter = steady_pair([1.0, 2.0, 5.0])
        pool = grown(drafter, TreeShape(2, 2, 6))
        assert pool.token.tolist() == [50, 7, 50, 7, 50, 7]
        assert pool.log_confidence.exp().tolist() == pytest.approx([5 / 8, 2 / 8] * 3)
        expected = [5 / 8, 2 / 8, 25 / 64, 10 / 64, 10 / 64, 4 / 64]
        assert pool.log_value.exp().tolist() == pytest.approx(expected)

    def test_among_equals_the_lower_id_of_the_target_comes_first(self):
        _, drafter = steady_pair([2.0, 2.0, 2.0])
        assert grown(drafter, TreeShape(3, 1, 3)).token.tolist() == [3, 7, 50]

    def test_the_drafter_counts_its_own_tokens_and_top_k_is_clamped_to_them(self):
        target, drafter = steady_pair([1.0, 2.0, 5.0])
        assert drafter.vocabulary == 3
        assert drafter.log_probs(torch.zeros(2, HIDDEN)).shape == (2, 3)
        engine = Engine(target, drafter)
        assert engine.policy("eagle2", TreeShape(10, 2, 99)).shape == TreeShape(3, 2, 12)
        assert next(engine.rounds(PROMPT, TreeShape(10, 2, 99), max_new_tokens=5)).drafted == 12

    def test_a_bias_of_the_targets_lm_head_counts(self):
        target = Target(random_model(FAMILIES["llama"]))
        bias = torch.zeros(VOCAB)
        bias[IDS] = torch.tensor([1.0, 2.0, 5.0]).log()
        target.model.lm_head.weight.data.zero_()
        target.model.lm_head.bias = torch.nn.Parameter(bias)
        shares = EagleDrafter(target, reduced_head()).log_probs(torch.ones(1, HIDDEN)).exp()
        assert shares[0].tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8])

    @pytest.mark.parametrize("tied", [False, True])
    def test_rows_are_those_of_the_whole_lm_head_also_where_it_is_offloaded(self, tied):
        model = random_model(LlamaConfig(**COMMON | {"tie_word_embeddings": tied}))
        features = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(0))
        expected = model.lm_head(features)[:, IDS]
        for place in (lambda model: model, lambda model: cpu_offload(model, execution_device=torch.device("cpu"))):
            part = Target(place(model)).lm_head_over(IDS)
            assert part.weight.shape == (3, HIDDEN)
            assert not part.weight.requires_grad
            torch.testing.assert_close(part(features), expected)

    def test_an_lm_head_without_plain_rows_is_refused(self):
        target = Target(random_model(FAMILIES["llama"]))
        packed = torch.zeros(VOCAB, HIDDEN // 2, dtype=torch.uint8)
        target.model.lm_head.weight = torch.nn.Parameter(packed, requires_grad=False)
        with pytest.raises(
            ValueError, match=r"the LM head of llama is stored as uint8 \(61, 16\), so the rows of a draft"
        ):
            EagleDrafter(target, reduced_head())

    @pytest.mark.parametrize("family", ["llama", "gemma2", "mistral"])
    @pytest.mark.parametrize("temperature", [0.0, 1.0])
    def test_nothing_is_lost(self, family, temperature):
        """The draft vocabulary holds 20 of 61 tokens: most of the text cannot be drafted, and is still the same."""
        target = Target(random_model(FAMILIES[family]))
        engine = Engine(target, EagleDrafter(target, reduced_head(torch.arange(1, VOCAB, 3))))
        rounds = list(engine.rounds(PROMPT, TreeShape(4, 3, 12), Sampling(temperature, seed=5), max_new_tokens=40))
        written = [token for r in rounds for token in r.committed]
        assert written == engine.plain(PROMPT, Sampling(temperature, seed=5), max_new_tokens=40)
        assert {token for r in rounds for token in r.token} <= set(range(1, VOCAB, 3))


def folder_with(tmp_path, ids=None, config=None, **tensors):
    """A tiny head's folder with the draft vocabulary `ids`, or with other tensors."""
    write_config(tmp_path, **(config or {}))
    if ids is not None:
        tensors = {"d2t": offsets(torch.tensor(ids))} | tensors
    save_file(TENSORS | tensors, tmp_path / "model.safetensors")
    return tmp_path


def inverse(ids, size=VOCABULARY):
    return torch.zeros(size, dtype=torch.bool).index_fill(0, torch.tensor(ids), True)


class TestFiles:
    def test_offsets_are_those_of_the_public_convention(self):
        assert offsets(torch.tensor([0, 2, 3, 9])).tolist() == [0, 1, 1, 6]
        assert target_ids(torch.tensor([0, 1, 1, 6])).tolist() == [0, 2, 3, 9]

    @pytest.mark.parametrize("config", [{}, {"draft_vocab_size": 4}])
    @pytest.mark.parametrize("more", [{}, {"t2d": inverse([0, 2, 3, 9])}])
    def test_a_head_with_a_draft_vocabulary_is_read(self, tmp_path, config, more):
        head = load(folder_with(tmp_path, [0, 2, 3, 9], config, **more))
        assert head.draft_ids.tolist() == [0, 2, 3, 9]
        assert head.config.draft_vocab_size == 4
        assert torch.equal(outputs(head), outputs(load(TINY)))

    def test_half_precision_leaves_ids_whole(self, tmp_path):
        head = load(folder_with(tmp_path, [0, 255]), dtype=torch.float16)
        assert head.draft_ids.tolist() == [0, 255]
        assert head.d2t.dtype == torch.int64

    def test_a_head_without_one_proposes_every_token(self):
        head = load(TINY)
        assert head.draft_ids is None
        assert "d2t" not in head.state_dict()

    def test_a_config_may_name_the_whole_vocabulary(self, tmp_path):
        assert load(folder_with(tmp_path, config={"draft_vocab_size": VOCABULARY})).draft_ids is None

    FAULTS = (
        ({"d2t": torch.zeros(3)}, {}, "d2t is float32 (3,); it must be int64, one offset for each draft token"),
        ({"d2t": torch.zeros(3, dtype=torch.int32)}, {}, "d2t is int32 (3,); it must be int64"),
        ({"d2t": torch.zeros(3, 1, dtype=torch.int64)}, {}, "d2t is int64 (3, 1); it must be int64, one offset"),
        ({"d2t": torch.zeros(0, dtype=torch.int64)}, {}, "d2t is empty, so nothing could be drafted"),
        ({"d2t": offsets(torch.tensor([5, 256]))}, {}, "d2t maps draft token 1 to id 256; the target has ids 0 to 255"),
        ({"d2t": offsets(torch.tensor([-1, 4]))}, {}, "d2t maps draft token 0 to id -1; the target has ids 0 to 255"),
        ({"d2t": torch.tensor([4, 3, 9])}, {}, "d2t maps several draft tokens to id 4; each must stand for another"),
        (
            {"d2t": offsets(torch.tensor([1, 9, 5]))},
            {},
            "d2t maps draft token 1 to id 9 and 2 to 5; target ids must ascend",
        ),
        (
            {"d2t": offsets(torch.tensor([1, 2]))},
            {"draft_vocab_size": 3},
            "config.json has draft_vocab_size = 3, but d2t holds 2 tokens",
        ),
        ({}, {"draft_vocab_size": 32}, "draft_vocab_size = 32, but no tensor d2t says which tokens these are"),
        ({}, {"draft_vocab_size": 0}, "config.json has draft_vocab_size = 0; it must be an integer of at least 1"),
        ({}, {"draft_vocab_size": "8"}, "draft_vocab_size = '8'; it must be an integer"),
        ({"t2d": inverse([1])}, {}, "there is a tensor t2d without d2t"),
        (
            {"d2t": offsets(torch.tensor([1, 2])), "t2d": inverse([1, 4])},
            {},
            "d2t and t2d disagree about 2 of the target's tokens, the first of them 2",
        ),
        (
            {"d2t": offsets(torch.tensor([1, 2])), "t2d": inverse([1, 2], 99).float()},
            {},
            "t2d is float32 (99,); it must be bool (256,), one for each of the target's tokens",
        ),
        (
            {"d2t": offsets(torch.tensor([1, 2])), "t2d": inverse([1, 2]).long()},
            {},
            "t2d is int64 (256,); it must be bool (256,)",
        ),
    )

    @pytest.mark.parametrize(("tensors", "config", "said"), FAULTS, ids=[said[:50] for _, _, said in FAULTS])
    def test_every_fault_has_its_sentence(self, tmp_path, tensors, config, said):
        message = refusal(folder_with(tmp_path, config=config, **tensors))
        assert message.startswith(f"the draft vocabulary of the head in {tmp_path} is not usable: ")
        assert said in message


@pytest.fixture
def loaded(tmp_path):
    """The tiny pair with a head of 64 draft tokens, as `eagle2.load` gives it."""
    head = folder_with(tmp_path, list(range(0, VOCABULARY, 4)))
    return eagle2.load(TINY.parent / "target", head, device="cpu")


class TestTold:
    def test_a_pair_says_what_it_drafts_from(self, loaded):
        assert (loaded.pair.vocabulary, loaded.pair.draft_vocabulary) == (256, 64)
        whole = eagle2.load(TINY.parent / "target", TINY, device="cpu").pair
        assert (whole.vocabulary, whole.draft_vocabulary) == (256, None)

    def test_traces_say_it_too(self, loaded, tmp_path):
        ids = [1, 2, 3]
        settings = Settings(shape=TreeShape(3, 2, 6), max_new_tokens=8)
        rounds = list(loaded.rounds(ids, settings.shape, max_new_tokens=8))
        trace = loaded.trace(ids, rounds, settings)
        trace_files.save(trace, tmp_path / "run.json")
        assert trace_files.load(tmp_path / "run.json").pair == loaded.pair

    def test_another_device_keeps_it(self, loaded):
        moved = move(loaded, "cpu")
        assert moved.pair == loaded.pair
        assert moved.drafter.vocabulary == 64
