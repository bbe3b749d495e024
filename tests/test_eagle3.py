"""EAGLE-3 heads: what they see and propose, checked by a computation of its own; their files; that nothing is lost."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tiny import COMMON, FAMILIES, HIDDEN, VOCAB, random_eagle3_head, random_head, random_model
from torch.nn import functional as F
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import rotate_half

import eagle2
from eagle2.checkpoint import load_head
from eagle2.config import Sampling, TreeShape
from eagle2.draft import EagleDrafter
from eagle2.eagle3 import Eagle3Head
from eagle2.engine import Engine
from eagle2.found import found, table
from eagle2.head import EagleHead
from eagle2.loading import move
from eagle2.policy import make_policy
from eagle2.states import feature_states
from eagle2.target import Target

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]
IDS = torch.arange(1, VOCAB, 3)
"""A draft vocabulary of 20 of the tiny families' 61 tokens."""
DEEP = LlamaConfig(**COMMON | {"num_hidden_layers": 8})
LAYERS = 8


def paired(config, head):
    target = Target(random_model(config)).handing_out(head.states)
    return target, EagleDrafter(target, head)


def entering(model, ids, states):
    """What enters the layers `states` of the stock model, side by side [n, 3 x hidden]: caught at the layers' doors."""
    caught = {}
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, args, kwargs, i=i: caught.update({i: (args or [kwargs["hidden_states"]])[0]}), with_kwargs=True
        )
        for i, layer in enumerate(model.model.layers)
    ]
    with torch.no_grad():
        model(input_ids=torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    return torch.cat([caught[i][0] for i in states], dim=-1)


def normed(x, weight, eps=1e-6):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def rotated(x, theta=10000.0):
    """x [heads, n, 8] turned by its positions 0, 1, ..."""
    angles = torch.arange(x.shape[1])[:, None] * theta ** (-torch.arange(0, 8, 2) / 8)
    angles = torch.cat([angles, angles], dim=-1)
    return x * angles.cos() + rotate_half(x) * angles.sin()


def layer_by_hand(w, embeddings, features, norm_before_residual=False):
    """The paper's layer over a whole sequence with a causal mask, in bare tensor algebra. Both [n, hidden]."""
    inner = normed(features, w["midlayer.hidden_norm.weight"])
    x = torch.cat([normed(embeddings, w["midlayer.input_layernorm.weight"]), inner], dim=-1)
    q, k, v = (
        F.linear(x, w[f"midlayer.self_attn.{n}_proj.weight"], w.get(f"midlayer.self_attn.{n}_proj.bias"))
        .view(len(x), -1, 8)
        .transpose(0, 1)
        for n in "qkv"
    )
    q, k = rotated(q), rotated(k)
    k, v = (t.repeat_interleave(2, dim=0) for t in (k, v))
    scores = (q @ k.transpose(1, 2)) / 8**0.5
    scores = scores.masked_fill(~torch.ones(len(x), len(x), dtype=torch.bool).tril(), -torch.inf)
    mixed = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    h = (inner if norm_before_residual else features) + mixed @ w["midlayer.self_attn.o_proj.weight"].T
    y = normed(h, w["midlayer.post_attention_layernorm.weight"])
    gate, up = y @ w["midlayer.mlp.gate_proj.weight"].T, y @ w["midlayer.mlp.up_proj.weight"].T
    return h + (F.silu(gate) * up) @ w["midlayer.mlp.down_proj.weight"].T


VARIANTS = {
    "as published": {"draft_ids": IDS},
    "all tokens": {},
    "own embeddings": {"draft_ids": IDS, "own_embeddings": True},
    "biases": {"draft_ids": IDS, "qkv_bias": True, "fc_bias": True},
    "normed features pass by": {"draft_ids": IDS, "norm_before_residual": True},
    "normed before fc": {"draft_ids": IDS, "norm_before_fc": True},
    "the target's LM head": {"draft_ids": IDS, "own_lm_head": False},
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_each_node_is_drafted_as_the_paper_says(variant):
    """For every fifth node: its path in one go, its pairs' features from hooks on a stock model, in bare algebra."""
    head = random_eagle3_head(states=(2, 4, 5), **variant)
    target, drafter = paired(DEEP, head)
    features, _ = target.extend(target.begin(), PROMPT[:-1])
    draft = drafter.begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:]), features)
    pool = draft.grow(make_policy("eagle2", TreeShape(3, 4, 99), drafter.vocabulary), 4)

    w = {name: tensor.detach() for name, tensor in head.state_dict().items()}
    embed = w.get("embed_tokens.weight", target.model.model.embed_tokens.weight.detach())
    states = entering(target.model, PROMPT[:-1], (2, 4, 5))
    if "norm_before_fc" in variant:
        states = normed(states, w["input_norm.weight"])
    fused = F.linear(states, w["fc.weight"], w.get("fc.bias"))
    ids = variant.get("draft_ids", torch.arange(VOCAB))
    rows = w.get("lm_head.weight", target.model.lm_head.weight.detach()[ids])
    for node in range(0, len(pool), 5):
        path, parent = [], int(pool.parent[node])
        while parent >= 0:
            path.insert(0, int(pool.token[parent]))
            parent = int(pool.parent[parent])
        tokens, chain = list(PROMPT[1:]), fused
        out = layer_by_hand(w, embed[tokens], chain, variant.get("norm_before_residual", False))
        for token in path:  # each step feeds the output of the one before, unnormed
            tokens, chain = [*tokens, token], torch.cat([chain, out[-1:]])
            out = layer_by_hand(w, embed[tokens], chain, variant.get("norm_before_residual", False))
        shares = (normed(out[-1], w["norm.weight"]) @ rows.T).log_softmax(-1)
        (place,) = (ids == pool.token[node]).nonzero().flatten().tolist()
        torch.testing.assert_close(shares[place], pool.log_confidence[node], atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("family", ["llama", "gemma2", "qwen3 with a window", "mixtral"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_lost(family, temperature):
    engine = Engine(*paired(FAMILIES[family], random_eagle3_head(draft_ids=IDS)))
    sampling = Sampling(temperature, seed=5)
    rounds = list(engine.rounds(PROMPT, TreeShape(4, 3, 12), sampling, max_new_tokens=40))
    assert [token for r in rounds for token in r.committed] == engine.plain(PROMPT, sampling, max_new_tokens=40)
    assert {token for r in rounds for token in r.token} <= set(IDS.tolist())


def test_a_target_hands_out_the_states_it_is_asked_for():
    target = Target(random_model(DEEP))
    fused, _ = target.handing_out((2, 4, 5)).extend(target.begin(), PROMPT)
    torch.testing.assert_close(fused, entering(target.model, PROMPT, (2, 4, 5)))
    feature, _ = target.extend(target.begin(), PROMPT)
    assert feature.shape == (len(PROMPT), HIDDEN)


def test_a_target_that_hands_out_others_is_refused():
    target = Target(random_model(FAMILIES["llama"]))
    with pytest.raises(ValueError, match=r"takes hidden states \(0, 1, 2\) of its target, which hands out \(-1,\)"):
        EagleDrafter(target, random_eagle3_head())
    with pytest.raises(ValueError, match=r"takes hidden states \(-1,\) of its target, which hands out \(0, 1, 2\)"):
        EagleDrafter(target.handing_out((0, 1, 2)), random_head())


class TestStates:
    @pytest.mark.parametrize(
        ("raw", "states", "source"),
        [
            ({}, (2, 16, 29), "guessed, since the config names none"),
            ({"eagle_aux_hidden_state_layer_ids": [2, 14, 25]}, (2, 14, 25), "named by the config"),
            (
                {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}},
                (2, 16, 29),
                "named by the config as the outputs of layers 1, 15, 28",
            ),
            ({"eagle_config": {"use_aux_hidden_state": True}}, (2, 16, 29), "guessed, since the config names none"),
        ],
    )
    def test_they_are_found_or_guessed(self, tmp_path, raw, states, source):
        assert feature_states(tmp_path, raw, 32) == (states, source)

    @pytest.mark.parametrize("ids", [[2, 2, 5], [5, 2, 3], [2, 4, 8], [-1, 2, 3], ["2"], [], 3, [True, 2], [1, 2, 7]])
    def test_others_are_refused(self, tmp_path, ids):
        with pytest.raises(ValueError, match="it must name hidden states of the target, ascending, each under 8"):
            feature_states(tmp_path, {"eagle_aux_hidden_state_layer_ids": ids}, 8)

    @pytest.mark.parametrize("layers", [1, 4, 6])
    def test_nothing_is_guessed_for_a_target_too_shallow(self, tmp_path, layers):
        with pytest.raises(ValueError, match=f"none can be guessed for a target of {layers} layers"):
            feature_states(tmp_path, {}, layers)


SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": 40,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCAB,
}


def write(folder, head, speculators=False, config=None, **changed):
    """The head as the authors publish theirs, or as vLLM's speculators does; a tensor set to None is left out."""
    tensors = {**head.state_dict(), "t2d": torch.zeros(VOCAB, dtype=torch.bool).index_fill(0, IDS, True), **changed}
    raw = {**SIZES, "draft_vocab_size": len(IDS), **(config or {})}
    if speculators:
        tensors = {name.replace("midlayer.", "layers.0."): tensor for name, tensor in tensors.items()}
        raw = {"speculators_model_type": "eagle3", "transformer_layer_config": SIZES, **(config or {})}
        raw |= {"draft_vocab_size": len(IDS), "norm_before_residual": head.config.norm_before_residual}
    save_file({name: t for name, t in tensors.items() if t is not None}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    return folder


def read(folder, hidden=HIDDEN, layers=LAYERS):
    return load_head(folder, hidden, VOCAB, layers=layers)


def refused(folder, **sizes):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the callers compare the sentence)
        read(folder, **sizes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestFiles:
    @pytest.mark.parametrize("speculators", [False, True])
    @pytest.mark.parametrize("variant", [v for v in VARIANTS.values() if v], ids=[n for n, v in VARIANTS.items() if v])
    def test_both_public_layouts_give_back_the_head(self, tmp_path, variant, speculators):
        made = random_eagle3_head(states=(2, 4, 5), **variant)
        config = {"norm_before_residual": made.config.norm_before_residual}
        found = read(write(tmp_path, made, speculators, config))
        assert isinstance(found, Eagle3Head)
        assert found.states == (2, 4, 5)
        assert found.config.states_source == "guessed, since the config names none"
        assert found.config.norm_before_residual == made.config.norm_before_residual
        assert found.draft_ids.tolist() == IDS.tolist()
        assert found.state_dict().keys() == made.state_dict().keys()
        assert all(torch.equal(t, made.state_dict()[name]) for name, t in found.state_dict().items())

    def test_a_head_narrower_than_its_target_brings_embeddings_and_lm_head(self, tmp_path):
        head = random_eagle3_head(hidden=16, draft_ids=IDS, own_embeddings=True, states=(2, 4, 5))
        folder = write(tmp_path, head, config={"hidden_size": 16, "head_dim": 8})
        target, drafter = paired(DEEP, read(folder))
        rounds = list(Engine(target, drafter).rounds(PROMPT, TreeShape(3, 2, 6), max_new_tokens=10))
        assert [t for r in rounds for t in r.committed] == Engine(target).plain(PROMPT, max_new_tokens=10)
        save_file(
            {n: t for n, t in head.state_dict().items() if n != "embed_tokens.weight"}, folder / "model.safetensors"
        )
        assert "has hidden size 16, the target 32: they are no pair" in refused(folder)

    def test_an_eagle_2_head_is_still_one(self, tmp_path):
        head = random_head()
        save_file(head.state_dict(), tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(SIZES), encoding="utf-8")
        assert isinstance(read(tmp_path), EagleHead)

    FAULTS = (
        ({"midlayer.hidden_norm.weight": None}, {}, {}, "does not load: missing midlayer.hidden_norm.weight"),
        ({"norm.weight": None, "extra": torch.zeros(1)}, {}, {}, "missing norm.weight; left over extra"),
        ({"midlayer.1.mlp.up_proj.weight": torch.zeros(1)}, {}, {}, "left over midlayer.1.mlp.up_proj.weight"),
        (
            {"lm_head.weight": torch.zeros(5, HIDDEN)},
            {},
            {},
            "lm_head.weight is (5, 32) instead of (20, 32)",
        ),
        ({"d2t": None, "t2d": None}, {}, {}, "draft_vocab_size = 20, but no tensor d2t says which tokens these are"),
        (
            {"d2t": None, "t2d": None},
            {"draft_vocab_size": VOCAB},
            {},
            "lm_head.weight is (20, 32) instead of (61, 32)",
        ),
        ({}, {}, {"hidden": 48}, "has hidden size 32, the target 48: they are no pair"),
        (
            {"fc.weight": torch.zeros(HIDDEN, 2 * HIDDEN)},
            {},
            {},
            "takes features of 64 numbers; 3 hidden states of the target have 96: they are no pair",
        ),
        (
            {},
            {"eagle_aux_hidden_state_layer_ids": [2, 4]},
            {},
            "takes features of 96 numbers; 2 hidden states of the target have 64",
        ),
        ({}, {"norm_before_residual": "yes"}, {}, "norm_before_residual = 'yes'; it must be true or false"),
        ({}, {}, {"layers": 4}, "none can be guessed for a target of 4 layers"),
        ({}, {}, {"layers": None}, "an EAGLE-3 head needs to know how many layers its target has"),
    )

    @pytest.mark.parametrize(("tensors", "config", "sizes", "said"), FAULTS, ids=[f[3][:60] for f in FAULTS])
    def test_every_fault_has_its_sentence(self, tmp_path, tensors, config, sizes, said):
        folder = write(tmp_path, random_eagle3_head(draft_ids=IDS), config=config, **tensors)
        assert said in refused(folder, **sizes)

    def test_a_pair_loads_by_name_and_moves(self, tmp_path):
        for folder in ("target", "head"):
            (tmp_path / folder).mkdir()
        random_model(DEEP).save_pretrained(tmp_path / "target")
        write(tmp_path / "head", random_eagle3_head(draft_ids=IDS))
        engine = eagle2.load(tmp_path / "target", tmp_path / "head", device="cpu")
        assert engine.target.states == (2, 4, 5)
        assert (engine.pair.vocabulary, engine.pair.draft_vocabulary) == (VOCAB, 20)
        plain = engine.plain(PROMPT, max_new_tokens=12)
        for moved in (engine, move(engine, "cpu")):
            rounds = moved.rounds(PROMPT, TreeShape(3, 3, 9), max_new_tokens=12)
            assert [t for r in rounds for t in r.committed] == plain


class TestFound:
    def test_a_head_is_told_in_plain_words(self):
        head = random_eagle3_head(draft_ids=IDS, states=(2, 4, 5), norm_before_residual=True)
        told = dict(found(head, VOCAB))
        assert told["kind"] == "EAGLE-3"
        assert told["features"] == "hidden states 2, 4, 5 of the target (named by the test); normed residual"
        assert told["vocabulary"] == "20 of 61 tokens"
        assert (told["embeddings"], told["LM head"], told["biases"]) == ("the target's", "its own", "none")
        told = dict(found(random_head(qkv_bias=True, own_embeddings=True), VOCAB))
        assert told["kind"] == "EAGLE-1/2"
        assert told["biases"] == "fc, q, k and v"
        assert (told["embeddings"], told["LM head"]) == ("its own", "the target's")
        assert told["attention"] == "4 heads of width 8, 2 key-value heads"
        assert told["rope"] == "rope_type default, rope_theta 10000.0"

    def test_rows_stand_in_columns(self):
        assert table("head x", [("a", "1"), ("long", "2")]) == "head x\n  a     1\n  long  2"
