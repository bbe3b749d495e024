"""EAGLE-3 heads as files: what each layout is read as, what is found out and told, and what is refused."""

import json

import pytest
import torch
from eagle3_heads import DEEP, IDS, LAYERS, VARIANTS, paired
from safetensors.torch import save_file
from tiny import HIDDEN, VOCAB, random_eagle3_head, random_head, random_model

import eagle2
from eagle2.decoding.engine import Engine
from eagle2.loading.copies import without_copies
from eagle2.loading.describe_head import found, table
from eagle2.loading.head_files import load_head
from eagle2.loading.load import move
from eagle2.models.eagle3_head import Eagle3Head
from eagle2.models.eagle_head import EagleHead
from eagle2.settings import TreeShape

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]


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


FILED = {name: v for name, v in VARIANTS.items() if "draft_ids" in v and not {"states", "window"} & v.keys()}


class TestFiles:
    @pytest.mark.parametrize("speculators", [False, True])
    @pytest.mark.parametrize("variant", FILED.values(), ids=FILED)
    def test_both_public_layouts_give_back_the_head(self, tmp_path, variant, speculators):
        made = random_eagle3_head(states=(2, 4, 5), **variant)
        config = {name: getattr(made.config, name) for name in ("norm_before_residual", "norm_output", "fc_norm")}
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
            "does not name the 2 hidden states its EAGLE-3 head takes",
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

    KINDS = (
        ({"midlayer.self_attn.kv_a_proj_with_mqa.weight": torch.zeros(2, 2)}, {}, "multi-head latent attention"),
        ({"mask_hidden": torch.zeros(2)}, {}, "a P-EAGLE head"),
        (
            {"layers.0.mlp.up_proj.weight": torch.zeros(1), "layers.1.mlp.up_proj.weight": torch.zeros(1)},
            {},
            "a head of two draft layers",
        ),
        ({}, {"speculators_model_type": "dflash"}, "a DFlash head"),
        ({}, {"eagle_config": {"use_mtp_layernorm": True}}, "a multi-token prediction (MTP) head"),
    )

    @pytest.mark.parametrize(("tensors", "config", "what"), KINDS, ids=[k[2] for k in KINDS])
    def test_other_kinds_are_refused_by_what_they_are(self, tmp_path, tensors, config, what):
        folder = write(tmp_path, random_eagle3_head(draft_ids=IDS), config=config, **tensors)
        assert f"was given as a head but holds {what}" in refused(folder) or f"holds an EAGLE-3 head with {what}" in (
            refused(folder)
        )

    def test_settings_are_found_nested_and_null_is_the_default(self, tmp_path):
        head = random_eagle3_head(draft_ids=IDS)
        config = {"norm_output": None, "eagle_config": {"norm_before_residual": True, "norm_output": True}}
        found = read(write(tmp_path, head, config=config))
        assert found.config.norm_before_residual
        assert found.config.norm_output
        assert found.notes == ()

    def test_a_setting_that_nobody_knows_is_named(self, tmp_path):
        read_back = read(write(tmp_path, random_eagle3_head(draft_ids=IDS), config={"twist": 3, "null": None}))
        (note,) = read_back.notes
        assert "twist = 3" in note
        assert ("note", note) in found(read_back, VOCAB)

    WINDOWS = (
        ({"sliding_window": 4, "use_sliding_window": True}, 4),
        ({"sliding_window": 4, "use_sliding_window": False}, None),
        ({"sliding_window": 4, "layer_types": ["sliding_attention"]}, 4),
        ({"sliding_window": 4, "use_sliding_window": True, "layer_types": ["full_attention"]}, None),
        ({"sliding_window": None, "use_sliding_window": False}, None),
        ({"sliding_window": 4}, None),
    )

    @pytest.mark.parametrize(("config", "window"), WINDOWS)
    def test_a_window_counts_only_where_the_layer_uses_it(self, tmp_path, config, window):
        assert read(write(tmp_path, random_eagle3_head(draft_ids=IDS), config=config)).layer.window == window

    @pytest.mark.parametrize("padded", [VOCAB - 1, VOCAB + 5])
    def test_t2d_may_be_padded(self, tmp_path, padded):
        t2d = torch.zeros(padded, dtype=torch.bool).index_fill(0, IDS, True)
        assert read(write(tmp_path, random_eagle3_head(draft_ids=IDS), t2d=t2d)).draft_ids.tolist() == IDS.tolist()

    def test_a_map_of_zeros_needs_t2d(self, tmp_path):
        folder = write(
            tmp_path, random_eagle3_head(draft_ids=IDS), d2t=torch.zeros(len(IDS), dtype=torch.int64), t2d=None
        )
        assert "d2t is all zeros" in refused(folder)

    def test_nemo_s_prefix_and_unused_fc(self, tmp_path):
        head = random_eagle3_head(draft_ids=IDS)
        folder = write(tmp_path, head)
        raw = json.loads((folder / "config.json").read_text())
        named = {
            n if n in ("lm_head.weight", "d2t") else "model." + n.replace("midlayer", "layers.0"): t
            for n, t in head.state_dict().items()
        }
        save_file(named, folder / "model.safetensors")
        assert read(folder).state_dict().keys() == head.state_dict().keys()
        (folder / "config.json").write_text(json.dumps({**raw, "eagle_config": {"use_aux_hidden_state": False}}))
        without = read(folder)
        assert without.states == (-1,)
        assert "its fc is not used" in without.notes[0]

    def test_copies_of_the_target_s_modules_are_dropped_and_noise_is_counted(self, tmp_path):
        target = paired(DEEP, random_eagle3_head())[0]
        head = random_eagle3_head(own_embeddings=True)
        head.embed_tokens.weight.data[3:] = target.model.get_input_embeddings().weight.data[3:]
        assert f"{VOCAB - 3} of {VOCAB} rows" in without_copies(head, target).notes[-1]
        head.embed_tokens.weight.data.copy_(target.model.get_input_embeddings().weight)
        bare = without_copies(head, target)
        assert not bare.config.own_embeddings
        assert "embed_tokens.weight" not in bare.state_dict()
        second = random_head(own_lm_head=True)
        assert without_copies(second, target).lm_head is not None
        second.lm_head.weight.data.copy_(target.model.lm_head.weight)
        assert without_copies(second, target).lm_head is None

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
