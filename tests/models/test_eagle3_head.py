"""EAGLE-3 heads: what they see and propose, checked by a computation of its own; their files; that nothing is lost."""

import pytest
import torch
from eagle3_heads import DEEP, IDS, LAYERS, VARIANTS, paired
from tiny import FAMILIES, HIDDEN, VOCAB, random_eagle3_head, random_head, random_model
from torch.nn import functional as F
from transformers.models.llama.modeling_llama import rotate_half

from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.drafters.eagle import EagleDrafter
from eagle2.models.feature_layers import feature_states
from eagle2.models.target import Target
from eagle2.settings import Sampling, TreeShape

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]


def entering(model, ids, states):
    """What enters the layers `states` of the stock model, side by side [n, 3 x hidden]: caught at the layers' doors."""
    caught = {}
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, args, kwargs, i=i: caught.update({i: (args or [kwargs["hidden_states"]])[0]}), with_kwargs=True
        )
        for i, layer in enumerate(model.model.layers)
    ]
    hooks.append(model.model.norm.register_forward_pre_hook(lambda _, args: caught.update({LAYERS: args[0]})))
    with torch.no_grad():
        caught[-1] = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[-1]
    for hook in hooks:
        hook.remove()
    return torch.cat([caught[i][0] for i in states], dim=-1)


def normed(x, weight, eps=1e-6):
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight


def rotated(x, width=8, factor=1.0, theta=10000.0):
    """x [heads, n, 8], of which the first `width` dimensions are turned by the positions 0, 1, ... over `factor`."""
    angles = torch.arange(x.shape[1])[:, None] / factor * theta ** (-torch.arange(0, width, 2) / width)
    angles = torch.cat([angles, angles], dim=-1)
    part = x[..., :width]
    return torch.cat([part * angles.cos() + rotate_half(part) * angles.sin(), x[..., width:]], dim=-1)


def layer_by_hand(w, embeddings, features, norm_before_residual=False, window=99, rope=None):
    """The paper's layer over a whole sequence with a causal mask, in bare tensor algebra. Both [n, hidden]."""
    inner = normed(features, w["midlayer.hidden_norm.weight"])
    x = torch.cat([normed(embeddings, w["midlayer.input_layernorm.weight"]), inner], dim=-1)
    q, k, v = (
        F.linear(x, w[f"midlayer.self_attn.{n}_proj.weight"], w.get(f"midlayer.self_attn.{n}_proj.bias"))
        .view(len(x), -1, 8)
        .transpose(0, 1)
        for n in "qkv"
    )
    if "midlayer.self_attn.q_norm.weight" in w:
        q, k = (normed(t, w[f"midlayer.self_attn.{n}_norm.weight"]) for t, n in ((q, "q"), (k, "k")))
    width = int(8 * (rope or {}).get("partial_rotary_factor", 1))
    q, k = (rotated(t, width, (rope or {}).get("factor", 1.0)) for t in (q, k))
    k, v = (t.repeat_interleave(2, dim=0) for t in (k, v))
    scores = (q @ k.transpose(1, 2)) / 8**0.5
    scores = scores.masked_fill(~torch.ones(len(x), len(x), dtype=torch.bool).tril().triu(1 - window), -torch.inf)
    mixed = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    h = (inner if norm_before_residual else features) + F.linear(
        mixed, w["midlayer.self_attn.o_proj.weight"], w.get("midlayer.self_attn.o_proj.bias")
    )
    y = normed(h, w["midlayer.post_attention_layernorm.weight"])
    gate, up = (
        F.linear(y, w[f"midlayer.mlp.{n}_proj.weight"], w.get(f"midlayer.mlp.{n}_proj.bias")) for n in ("gate", "up")
    )
    return h + F.linear(F.silu(gate) * up, w["midlayer.mlp.down_proj.weight"], w.get("midlayer.mlp.down_proj.bias"))


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_each_node_is_drafted_as_the_paper_says(variant):
    """For every fifth node: its path in one go, its pairs' features from hooks on a stock model, in bare algebra."""
    head = random_eagle3_head(**{"states": (2, 4, 5), **variant})
    target, drafter = paired(DEEP, head)
    features, _ = target.extend(target.begin(), PROMPT[:-1])
    draft = drafter.begin(PROMPT[0])
    draft.extend(torch.tensor(PROMPT[1:]), features)
    pool = draft.grow(make_policy("eagle2", TreeShape(3, 4, 99), drafter.vocabulary), 4)

    w = {name: tensor.detach() for name, tensor in head.state_dict().items()}
    embed = w.get("embed_tokens.weight", target.model.model.embed_tokens.weight.detach())
    states = entering(target.model, PROMPT[:-1], head.states)
    if "fc_norm" in variant:
        parts = states.split(HIDDEN, dim=-1)
        states = torch.cat([normed(part, w[f"fc_norm.{i}.weight"]) for i, part in enumerate(parts)], dim=-1)
    if "norm_before_fc" in variant:
        states = normed(states, w["input_norm.weight"])
    fused = F.linear(states, w["fc.weight"], w.get("fc.bias")) if "fc.weight" in w else states
    ids = variant.get("draft_ids", torch.arange(VOCAB))
    rows = w.get("lm_head.weight", target.model.lm_head.weight.detach()[ids])
    layer = {name: variant[name] for name in ("norm_before_residual", "window", "rope") if name in variant}
    again = (lambda x: normed(x, w["norm.weight"])) if "norm_output" in variant else (lambda x: x)
    for node in range(0, len(pool), 5):
        path, parent = [], int(pool.parent[node])
        while parent >= 0:
            path.insert(0, int(pool.token[parent]))
            parent = int(pool.parent[parent])
        tokens, chain = list(PROMPT[1:]), fused
        out = layer_by_hand(w, embed[tokens], chain, **layer)
        for token in path:  # each step feeds the output of the one before, as it is or normed
            tokens, chain = [*tokens, token], torch.cat([chain, again(out[-1:])])
            out = layer_by_hand(w, embed[tokens], chain, **layer)
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
            (
                {"target_layer_ids": [2, 4, 31]},
                (3, 5, 32),
                "named by the config as the outputs of layers 2, 4, 31",
            ),
            ({"eagle_config": {"aux_hidden_state_layer_ids": [2, 4, 32]}}, (2, 4, 32), "named by the config"),
            ({"eagle_config": {"use_aux_hidden_state": True}}, (2, 16, 29), "guessed, since the config names none"),
        ],
    )
    def test_they_are_found_or_guessed(self, tmp_path, raw, states, source):
        assert feature_states(tmp_path, raw, 32) == (states, source)

    def test_the_caller_may_know_better(self, tmp_path):
        raw = {"eagle_aux_hidden_state_layer_ids": [1, 4, 6]}
        assert feature_states(tmp_path, raw, 8, reading="states")[0] == (1, 4, 6)
        assert feature_states(tmp_path, raw, 8, reading="outputs")[0] == (2, 5, 7)
        with pytest.raises(ValueError, match="cannot be read as 'both'"):
            feature_states(tmp_path, raw, 8, reading="both")

    @pytest.mark.parametrize("ids", [[2, 2, 5], [5, 2, 3], [2, 4, 9], [-1, 2, 3], ["2"], [], 3, [True, 2], [1, 2, 8]])
    def test_others_are_refused(self, tmp_path, ids):
        with pytest.raises(ValueError, match="it must name hidden states of the target, ascending, each at most 8"):
            feature_states(tmp_path, {"eagle_aux_hidden_state_layer_ids": ids}, 8)

    @pytest.mark.parametrize("layers", [1, 4, 6])
    def test_nothing_is_guessed_for_a_target_too_shallow(self, tmp_path, layers):
        with pytest.raises(ValueError, match=f"none can be guessed for a target of {layers} layers"):
            feature_states(tmp_path, {}, layers)
