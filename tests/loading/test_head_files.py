"""Heads in every public layout load and act alike, from folders and from the hub."""

import json
import shutil

import pytest
import torch
from head_files import (
    CONFIG,
    HIDDEN,
    TENSORS,
    TINY,
    VOCABULARY,
    K,
    Q,
    V,
    load,
    outputs,
    refusal,
    write_bin,
    write_config,
    write_old_bin,
    write_safetensors,
    write_sharded_bin,
    write_sharded_safetensors,
)
from safetensors.torch import save_file

from eagle2.loading import hub
from eagle2.loading.hub import fetch_head


@pytest.fixture
def folder(tmp_path):
    """A head's folder with a config and no weights yet."""
    write_config(tmp_path)
    return tmp_path


EXPECTED = outputs(load(TINY))


class TestLayouts:
    @pytest.mark.parametrize(
        "write", [write_safetensors, write_sharded_safetensors, write_bin, write_old_bin, write_sharded_bin]
    )
    def test_every_file_layout_gives_the_same_head(self, folder, write):
        write(folder)
        assert torch.equal(outputs(load(folder)), EXPECTED)

    def test_safetensors_are_preferred(self, folder):
        write_safetensors(folder)
        torch.save({}, folder / "pytorch_model.bin")
        assert torch.equal(outputs(load(folder)), EXPECTED)

    @pytest.mark.parametrize("said", [True, False, ...])
    def test_the_tensors_decide_about_the_fc_bias_whatever_the_config_says(self, folder, said):
        write_config(folder, bias=said)
        write_safetensors(folder)
        assert torch.equal(outputs(load(folder)), EXPECTED)
        save_file({name: t for name, t in TENSORS.items() if name != "fc.bias"}, folder / "model.safetensors")
        without = load(folder)
        assert without.fc.bias is None
        save_file(TENSORS | {"fc.bias": torch.zeros(HIDDEN)}, folder / "model.safetensors")
        assert torch.allclose(outputs(without), outputs(load(folder)), atol=1e-6)

    def test_biases_of_q_k_and_v_are_used(self, folder):
        def biased(value: float) -> dict:
            return {f"{name}.bias": torch.full((TENSORS[f"{name}.weight"].shape[0],), value) for name in (Q, K, V)}

        save_file(TENSORS | biased(0.0), folder / "model.safetensors")
        assert torch.allclose(outputs(load(folder)), EXPECTED, atol=1e-6)
        save_file(TENSORS | biased(1.0), folder / "model.safetensors")
        assert not torch.allclose(outputs(load(folder)), EXPECTED, atol=1e-2)

    def test_own_embeddings_are_loaded(self, folder):
        own = torch.arange(VOCABULARY * HIDDEN).reshape(VOCABULARY, HIDDEN).float()
        save_file(TENSORS | {"embed_tokens.weight": own}, folder / "model.safetensors")
        head = load(folder)
        assert head.config.own_embeddings
        assert torch.equal(head.embed_tokens.weight, own)
        assert not load(TINY).config.own_embeddings

    def test_a_left_over_rotary_buffer_is_ignored(self, folder):
        buffer = {"layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8)}
        save_file(TENSORS | buffer, folder / "model.safetensors")
        assert torch.equal(outputs(load(folder)), EXPECTED)

    def test_the_layout_of_speculators_is_read(self, folder):
        """vLLM's speculators calls fc and the layer otherwise, and keeps the layer's sizes in a config of its own."""
        theirs = {name.replace("layers.0.", "transformer."): tensor for name, tensor in TENSORS.items()}
        theirs = {f"fusion_{name}" if name.startswith("fc.") else name: tensor for name, tensor in theirs.items()}
        save_file(theirs, folder / "model.safetensors")
        config = {"speculators_model_type": "eagle", "transformer_layer_config": CONFIG, "fusion_bias": True}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert torch.equal(outputs(load(folder)), EXPECTED)
        norms = {"embedding_layernorm.weight": torch.ones(HIDDEN)}  # a variant of theirs that is no EAGLE head
        save_file(theirs | norms, folder / "model.safetensors")
        assert refusal(folder).endswith("does not load: left over embedding_layernorm.weight")

    def test_sizes_a_config_may_leave_out(self, folder):
        write_config(folder, head_dim=None, max_position_embeddings=..., vocab_size=..., rope_theta=...)
        write_safetensors(folder)
        assert torch.equal(outputs(load(folder)), EXPECTED)

    def test_half_precision_keeps_the_rotary_frequencies(self, folder):
        write_safetensors(folder)
        head, full = load(folder, dtype=torch.bfloat16), load(folder)
        assert {parameter.dtype for parameter in head.parameters()} == {torch.bfloat16}
        assert torch.equal(head.rotary.inv_freq, full.rotary.inv_freq)
        # At position 3001 a bfloat16 frequency would be off by several radians.
        assert torch.allclose(outputs(head, 3001).float(), outputs(full, 3001), atol=0.1, rtol=0.1)


class TestRope:
    def test_theta_is_found_in_its_old_and_new_place(self, folder):
        write_safetensors(folder)
        write_config(folder, rope_theta=500.0)
        old = outputs(load(folder))
        write_config(folder, rope_theta=..., rope_parameters={"rope_type": "default", "rope_theta": 500.0})
        assert torch.equal(outputs(load(folder)), old)
        assert not torch.allclose(old, EXPECTED, atol=1e-4)

    @pytest.mark.parametrize("word", ["type", "rope_type"])
    def test_linear_scaling_divides_positions(self, folder, word):
        write_safetensors(folder)
        plain = load(folder).rotary.inv_freq
        write_config(folder, rope_scaling={word: "linear", "factor": 4.0})
        assert torch.allclose(load(folder).rotary.inv_freq, plain / 4)

    def test_llama3_scaling_divides_the_low_frequencies_only(self, folder):
        write_safetensors(folder)
        plain = load(folder).rotary.inv_freq
        scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        scaling["original_max_position_embeddings"] = 512
        write_config(folder, rope_scaling={"rope_type": "llama3", **scaling})
        old = load(folder).rotary.inv_freq
        # Wavelengths 2 pi / f: those under 512 / 4 stay, those over 512 / 1 are divided.
        assert torch.allclose(old[0], plain[0])
        assert torch.allclose(old[-1], plain[-1] / 8)
        write_config(folder, rope_theta=..., rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, **scaling})
        assert torch.equal(load(folder).rotary.inv_freq, old)

    @pytest.mark.parametrize(
        "scaling", [{"rope_type": "spiral"}, {"rope_type": "linear"}, {"rope_type": "linear", "factor": "x"}, "linear"]
    )
    def test_a_rope_that_nobody_knows_is_refused(self, folder, scaling):
        write_safetensors(folder)
        write_config(folder, rope_scaling=scaling)
        assert "config.json sets a rope that is not understood" in refusal(folder)


class TestFetching:
    def test_a_folder_is_itself_and_has_no_revision(self):
        assert fetch_head(str(TINY)) == (TINY, None)

    def test_a_file_is_no_folder(self):
        with pytest.raises(ValueError, match=r"config\.json is a file; give the folder that holds config\.json"):
            fetch_head(str(TINY / "config.json"))

    @pytest.mark.parametrize("name", ["nobody/nothing", "/no/such/folder", "a/b/c/d"])
    def test_a_name_that_cannot_be_fetched(self, name, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(ValueError, match="is no folder here and could not be fetched from the hub") as caught:
            fetch_head(name)
        assert str(caught.value).startswith(repr(name))
        assert "\n" not in str(caught.value)

    def test_a_hub_id_gives_the_snapshots_folder_and_commit(self, tmp_path, monkeypatch):
        snapshot = tmp_path / "snapshots" / "0a1b2c"
        shutil.copytree(TINY, snapshot)
        asked = []

        def fake(name: str, allow_patterns: list[str], tqdm_class: type) -> str:
            asked.append((name, allow_patterns))
            return str(snapshot)

        monkeypatch.setattr(hub, "snapshot_download", fake)
        folder, revision = fetch_head("somebody/head")
        assert revision == "0a1b2c"
        assert torch.equal(outputs(load(folder)), EXPECTED)
        ((name, patterns),) = asked
        assert name == "somebody/head"
        assert {"config.json", "*.safetensors"} <= set(patterns)

    def test_whatever_the_hubs_client_raises_becomes_one_sentence(self, monkeypatch):
        class StrangeError(Exception):
            pass

        for error, said in (
            (OSError("no disk.\nDetails"), "no disk"),
            (StrangeError(), "StrangeError"),
        ):

            def fail(name: str, error: Exception = error, **_: object) -> str:
                raise error

            monkeypatch.setattr(hub, "snapshot_download", fail)
            with pytest.raises(ValueError, match=rf"from the hub \({said}\); check the name or the connection"):
                fetch_head("somebody/head")
