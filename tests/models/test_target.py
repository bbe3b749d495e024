"""Every supported family: tree logits equal path logits, commits leave a fresh prefill's cache, output equals plain and
transformers' own generate. What cannot verify a tree is refused in one sentence."""

import pytest
import torch
from tiny import COMMON, CONTEXT, FAMILIES, HIDDEN, VOCAB, WINDOW, random_engine, random_model
from transformers import (
    BloomConfig,
    GPT2Config,
    GPTNeoConfig,
    LlamaConfig,
    MambaConfig,
    Phi3Config,
    RecurrentGemmaConfig,
    T5Config,
)

from eagle2.decoding.tree import ancestor_mask
from eagle2.models.target import PREFILL_CHUNK, Target, check_tree_attention
from eagle2.settings import Sampling, TreeShape

PREFIX = [(7 * i + 3) % VOCAB for i in range(20)]  # longer than the window
TREE = [11, 5, 6, 7, 8, 9, 10]  # root first
PARENT = [0, 0, 0, 1, 1, 2, 4]
DEPTH = [0, 1, 1, 2, 2, 2, 3]
PATHS = [[0], [0, 1], [0, 2], [0, 1, 3], [0, 1, 4], [0, 2, 5], [0, 1, 4, 6]]


@pytest.fixture(params=FAMILIES.items(), ids=lambda item: item[0])
def target(request):
    return Target(random_model(request.param[1]))


def verify_tree(target, prefix=PREFIX):
    cache = target.begin()
    target.extend(cache, prefix)
    positions = torch.tensor(DEPTH) + len(prefix)
    logits, features = target.verify(cache, torch.tensor(TREE), positions, ancestor_mask(torch.tensor(PARENT)))
    return cache, logits, features


def test_each_node_s_logits_and_feature_are_those_of_its_path_alone(target):
    """The path goes through the stock model as an ordinary sequence: no cache, no mask, no positions of ours."""
    _, logits, features = verify_tree(target)
    for row, path in enumerate(PATHS):
        ids = PREFIX + [TREE[slot] for slot in path]
        with torch.no_grad():
            stock = target.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        torch.testing.assert_close(logits[row], stock.logits[0, -1], atol=2e-5, rtol=1e-5)
        torch.testing.assert_close(features[row], stock.hidden_states[-1][0, -1], atol=2e-5, rtol=1e-5)


def test_after_a_scattered_commit_the_cache_is_that_of_a_fresh_prefill(target):
    cache, _, _ = verify_tree(target)
    path = PATHS[-1]
    target.commit(cache, torch.tensor(path))
    fresh = target.begin()
    target.extend(fresh, PREFIX + [TREE[slot] for slot in path])
    assert cache.length == fresh.length == len(PREFIX) + 4
    for kept, wanted in zip(cache.layers.layers, fresh.layers.layers, strict=True):
        assert kept.get_seq_length() == cache.length
        torch.testing.assert_close(kept.keys, wanted.keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(kept.values, wanted.values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("slots", [[], [0], list(range(7))], ids=["none", "the root", "all"])
def test_a_commit_keeps_exactly_the_rows_it_is_given(target, slots):
    cache, _, _ = verify_tree(target)
    target.commit(cache, torch.tensor(slots, dtype=torch.int64))
    assert cache.length == len(PREFIX) + len(slots)
    assert {layer.get_seq_length() for layer in cache.layers.layers} == {cache.length}


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES.keys())
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tree_decoding_equals_plain_decoding(config, temperature):
    engine = random_engine(config)
    sampling = Sampling(temperature, seed=4)
    plain = engine.plain(PREFIX, sampling, max_new_tokens=24)
    for shape in (TreeShape(1, 3, 3), TreeShape(4, 3, 12), TreeShape(VOCAB, 2, 150)):
        rounds = list(engine.rounds(PREFIX, shape, sampling, max_new_tokens=24))
        assert [token for r in rounds for token in r.committed] == plain


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES.keys())
def test_greedy_output_equals_transformers_own_generate(config):
    engine = random_engine(config)
    with torch.no_grad():
        out = engine.target.model.generate(
            torch.tensor([PREFIX]), attention_mask=torch.ones(1, len(PREFIX)), max_new_tokens=30, do_sample=False
        )
    rounds = engine.rounds(PREFIX, TreeShape(3, 3, 9), max_new_tokens=30)
    assert [token for r in rounds for token in r.committed] == out[0, len(PREFIX) :].tolist()


def test_a_run_fills_the_context_to_the_last_position(target):
    engine = random_engine(target.config)
    rounds = list(engine.rounds(PREFIX, TreeShape(3, 5, 9), max_new_tokens=1000))
    assert sum(len(r.committed) for r in rounds) == CONTEXT - len(PREFIX)
    assert rounds[-1].finish == "length"
    assert [token for r in rounds for token in r.committed] == engine.plain(PREFIX, max_new_tokens=1000)


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2 with a window"])
def test_eager_attention_gets_an_additive_mask_too(family):
    """Eager attention adds whatever it is given: a bool mask there is silently wrong."""
    eager = verify_tree(Target(random_model(FAMILIES[family], "eager")))[1]
    fused = verify_tree(Target(random_model(FAMILIES[family], "sdpa")))[1]
    torch.testing.assert_close(eager, fused, atol=2e-5, rtol=1e-5)


def test_a_prompt_longer_than_one_chunk_is_prefilled_like_one_pass():
    config = LlamaConfig(**{**COMMON, "max_position_embeddings": 2048})
    target = Target(random_model(config))
    ids = [(5 * i + 1) % VOCAB for i in range(PREFILL_CHUNK + 30)]
    cache = target.begin()
    features, logits = target.extend(cache, ids)
    with torch.no_grad():
        stock = target.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    torch.testing.assert_close(logits, stock.logits[0, -1], atol=2e-4, rtol=1e-4)
    torch.testing.assert_close(features, stock.hidden_states[-1][0], atol=2e-4, rtol=1e-4)


def test_all_end_tokens_of_config_and_generation_config_count():
    model = random_model(LlamaConfig(**{**COMMON, "eos_token_id": 4}))
    model.generation_config.eos_token_id = [4, 9]
    assert Target(model).end_ids == {4, 9}


def longrope():
    factors = {"short_factor": [1.0] * 4, "long_factor": [3.0] * 4}
    return Phi3Config(
        **{key: value for key, value in COMMON.items() if key != "head_dim"},
        original_max_position_embeddings=40,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, **factors},
    )


def test_no_tree_straddles_the_boundary_of_longrope():
    engine = random_engine(longrope())
    rounds = list(engine.rounds(PREFIX, TreeShape(2, 6, 8), max_new_tokens=60))
    reach = [(r.prefix_length, r.prefix_length + max(r.depth, default=0)) for r in rounds]
    assert any(root < 40 for root, _ in reach)
    assert any(root >= 40 for root, _ in reach)
    assert all(deepest < 40 or root >= 40 for root, deepest in reach)
    assert [token for r in rounds for token in r.committed] == engine.plain(PREFIX, max_new_tokens=60)


def test_an_unproven_family_is_admitted_if_a_tree_s_logits_are_its_paths():
    config = GPT2Config(vocab_size=VOCAB, n_embd=HIDDEN, n_layer=2, n_head=2, n_positions=CONTEXT, eos_token_id=None)
    engine = random_engine(config)
    rounds = engine.rounds(PREFIX, TreeShape(2, 3, 6), max_new_tokens=20)
    assert [token for r in rounds for token in r.committed] == engine.plain(PREFIX, max_new_tokens=20)


def test_a_model_that_does_not_follow_the_mask_is_refused():
    class Deaf(Target):
        def _mask(self, prefix, positions, visible):
            return super()._mask(prefix, positions, visible.new_ones(visible.shape).tril())

    with pytest.raises(ValueError, match="llama gives tree nodes other logits than their paths"):
        check_tree_attention(Deaf(random_model(FAMILIES["llama"])))


def test_a_model_whose_window_is_not_followed_is_refused():
    class Shortsighted(Target):
        def _by_layer_type(self):
            return False

    with pytest.raises(ValueError, match="qwen2 gives tree nodes other logits"):
        check_tree_attention(Shortsighted(random_model(FAMILIES["qwen2 with a window"])))
    assert WINDOW < PREFILL_CHUNK


def test_a_window_that_counts_rows_instead_of_positions_is_refused():
    config = GPTNeoConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, num_layers=2, num_heads=4, max_position_embeddings=CONTEXT,
        window_size=16, attention_types=[[["global", "local"], 1]], initializer_range=0.3,
    )  # fmt: skip
    with pytest.raises(ValueError, match="gpt_neo gives tree nodes other logits than their paths"):
        Target(random_model(config))


def test_a_family_whose_pass_fails_is_refused_in_one_sentence():
    config = BloomConfig(vocab_size=VOCAB, hidden_size=HIDDEN, n_layer=1, n_head=2)
    with pytest.raises(ValueError, match="bloom cannot verify a tree: its model refuses the pass"):
        Target(random_model(config))


def flash_model():
    model = random_model(FAMILIES["llama"])
    model.config._attn_implementation_internal = "flash_attention_2"
    return model


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: random_model(MambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, state_size=4)),
            r"mamba has recurrent or compressed layers \(linear_attention\); their state cannot branch",
        ),
        (
            lambda: random_model(RecurrentGemmaConfig(**{**COMMON, "hidden_size": 32}, lru_width=32)),
            "recurrent_gemma has recurrent or compressed layers",
        ),
        (flash_model, "'flash_attention_2' cannot take a tree mask; load the model with 'sdpa' or 'eager'"),
        (
            lambda: random_model(
                LlamaConfig(**COMMON, rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0})
            ),
            "llama is configured with rope type 'dynamic'",
        ),
    ],
    ids=["mamba", "recurrent gemma", "flash attention", "dynamic rope"],
)
def test_what_cannot_verify_a_tree_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        Target(make())


def test_an_encoder_decoder_is_refused():
    from transformers import AutoModelForSeq2SeqLM

    config = T5Config(vocab_size=VOCAB, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    with pytest.raises(ValueError, match="t5 is an encoder-decoder model"):
        Target(AutoModelForSeq2SeqLM.from_config(config))
