"""Heads in every public layout load and act alike; every fault has its own sentence."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import OfflineModeIsEnabled
from safetensors.torch import load_file, save_file

from eagle2 import checkpoint
from eagle2.cache import KeyValueRows
from eagle2.checkpoint import fetch_head, load_head

TINY = Path(__file__).parent / "fixtures" / "tiny-pair" / "head"
HIDDEN, VOCABULARY = 64, 256
CONFIG = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
TENSORS = load_file(TINY / "model.safetensors")
Q, K, V = (f"layers.0.self_attn.{name}_proj" for name in "qkv")


def write_config(folder: Path, **changed) -> None:
    """A config.json beside the weights; a member set to ... is left out."""
    config = {key: value for key, value in (CONFIG | changed).items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """A head's folder with a config and no weights yet."""
    write_config(tmp_path)
    return tmp_path


def load(folder: Path, hidden: int = HIDDEN, vocabulary: int = VOCABULARY, dtype: torch.dtype = torch.float32):
    return load_head(folder, hidden, vocabulary, dtype)


@torch.inference_mode()
def outputs(head, start: int = 0) -> torch.Tensor:
    """The features [4, hidden] a head predicts for four fixed pairs from position `start` on."""
    pairs = torch.randn(2, 4, HIDDEN, generator=torch.Generator().manual_seed(0))
    pairs = pairs.to(head.fc.weight.dtype)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return head(pairs[0], pairs[1], torch.arange(start, start + 4), KeyValueRows(), causal)


EXPECTED = outputs(load(TINY))


def refusal(folder: Path, **sizes) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the callers compare the sentence)
        load(folder, **sizes)
    message = str(caught.value)
    assert "\n" not in message
    return message


def halves() -> tuple[dict, dict]:
    names = sorted(TENSORS)
    return {name: TENSORS[name] for name in names[::2]}, {name: TENSORS[name] for name in names[1::2]}


def write_index(folder: Path, whole: str, shards: dict[str, dict]) -> None:
    homes = {name: shard for shard, tensors in shards.items() for name in tensors}
    (folder / f"{whole}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}), encoding="utf-8")


def write_safetensors(folder: Path) -> None:
    save_file(TENSORS, folder / "model.safetensors")


def write_sharded_safetensors(folder: Path) -> None:
    shards = dict(zip(("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"), halves(), strict=True))
    for name, tensors in shards.items():
        save_file(tensors, folder / name)
    write_index(folder, "model.safetensors", shards)


def write_bin(folder: Path) -> None:
    torch.save(TENSORS, folder / "pytorch_model.bin")


def write_old_bin(folder: Path) -> None:
    torch.save(TENSORS, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def write_sharded_bin(folder: Path) -> None:
    shards = dict(zip(("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"), halves(), strict=True))
    for name, tensors in shards.items():
        torch.save(tensors, folder / name)
    write_index(folder, "pytorch_model.bin", shards)


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


class TestConfigFaults:
    def test_no_config(self, tmp_path):
        write_safetensors(tmp_path)
        assert refusal(tmp_path) == f"{tmp_path} holds no config.json, so it is no head's folder"

    @pytest.mark.parametrize("text", ["{bad", "", b"\xff\xfe{"])
    def test_bad_json(self, folder, text):
        (folder / "config.json").write_bytes(text.encode() if isinstance(text, str) else text)
        assert "config.json is no valid JSON" in refusal(folder)

    @pytest.mark.parametrize("text", ["[]", "3", '"x"'])
    def test_json_that_is_no_object(self, folder, text):
        (folder / "config.json").write_text(text)
        assert refusal(folder).endswith("config.json holds no JSON object, so it is no head's config")

    @pytest.mark.parametrize("key", ["hidden_size", "intermediate_size", "num_attention_heads"])
    @pytest.mark.parametrize(
        ("value", "shown"), [(..., "None"), (0, "0"), ("64", "'64'"), (True, "True"), (4.0, "4.0")]
    )
    def test_sizes_that_are_none(self, folder, key, value, shown):
        write_safetensors(folder)
        write_config(folder, **{key: value})
        assert f"has {key} = {shown}; an EAGLE head's must be an integer of at least 1" in refusal(folder)

    @pytest.mark.parametrize(
        ("changed", "said"), [({"num_key_value_heads": 3}, "3 key-value"), ({"head_dim": 15}, "15")]
    )
    def test_heads_that_cannot_be_shared_out(self, folder, changed, said):
        write_safetensors(folder)
        write_config(folder, **changed)
        message = refusal(folder)
        assert said in message
        assert "the first must be a multiple of the last, and the width even" in message

    def test_another_activation(self, folder):
        write_safetensors(folder)
        write_config(folder, hidden_act="gelu")
        assert "hidden_act = 'gelu'; an EAGLE head's is silu" in refusal(folder)

    def test_the_hidden_size_of_another_target(self, folder):
        write_safetensors(folder)
        assert refusal(folder, hidden=128) == (
            f"the head in {folder} has hidden size 64, the target 128: they are no pair"
        )

    def test_embeddings_of_another_vocabulary(self, folder):
        save_file(TENSORS | {"embed_tokens.weight": torch.zeros(100, HIDDEN)}, folder / "model.safetensors")
        assert refusal(folder) == (
            f"the head in {folder} brings embeddings of 100 tokens, the target has 256: they are no pair"
        )


class TestWeightFaults:
    def test_no_weights(self, folder):
        assert refusal(folder) == (f"{folder} holds neither model.safetensors nor pytorch_model.bin, whole or sharded")

    def test_a_missing_tensor(self, folder):
        save_file({name: t for name, t in TENSORS.items() if name != f"{K}.weight"}, folder / "model.safetensors")
        assert refusal(folder) == f"the head in {folder} does not load: missing {K}.weight"

    def test_a_left_over_tensor(self, folder):
        save_file(TENSORS | {"layers.1.mlp.up_proj.weight": torch.zeros(2)}, folder / "model.safetensors")
        assert refusal(folder) == f"the head in {folder} does not load: left over layers.1.mlp.up_proj.weight"

    def test_a_wrong_shape(self, folder):
        save_file(TENSORS | {"fc.weight": torch.zeros(HIDDEN, HIDDEN)}, folder / "model.safetensors")
        assert refusal(folder) == f"the head in {folder} does not load: fc.weight is (64, 64) instead of (64, 128)"

    def test_integers_are_no_weights(self, folder):
        save_file(
            TENSORS | {"fc.weight": torch.zeros(HIDDEN, 2 * HIDDEN, dtype=torch.int8)}, folder / "model.safetensors"
        )
        assert refusal(folder) == f"the head in {folder} does not load: fc.weight is int8, not floating point"

    def test_all_misfits_are_named_at_once(self, folder):
        tensors = {name: t for name, t in TENSORS.items() if name != f"{K}.weight"}
        save_file(tensors | {"extra": torch.zeros(1)}, folder / "model.safetensors")
        assert refusal(folder).endswith(f"missing {K}.weight; left over extra")

    @pytest.mark.parametrize("sharded", [False, True])
    def test_a_whole_model_given_as_a_head(self, folder, sharded):
        target = TINY.parent / "target"
        shutil.copy(target / "config.json", folder)
        if sharded:  # told by the index: the shards themselves are not even there
            write_index(folder, "model.safetensors", {"a.safetensors": load_file(target / "model.safetensors")})
        else:
            shutil.copy(target / "model.safetensors", folder)
        assert refusal(folder) == (
            f"{folder} was given as a head but holds a whole language model; an EAGLE head has a tensor fc.weight"
        )

    def test_a_head_of_another_method(self, folder):
        save_file({"0.0.linear.weight": torch.zeros(2)}, folder / "model.safetensors")
        assert "was given as a head but holds none (its tensors: 0.0.linear.weight, ...)" in refusal(folder)

    @pytest.mark.parametrize(
        "tensors",
        [
            {"midlayer.self_attn.q_proj.weight": torch.zeros(2)},
            TENSORS | {"d2t": torch.zeros(2, dtype=torch.int64)},
            TENSORS | {"fc.weight": torch.zeros(HIDDEN, 3 * HIDDEN)},
        ],
        ids=["midlayer", "draft vocabulary", "three features"],
    )
    def test_an_eagle_3_head(self, folder, tensors):
        save_file(tensors, folder / "model.safetensors")
        assert refusal(folder) == (
            f"the head in {folder} is an EAGLE-3 head; this engine reads EAGLE-1 and EAGLE-2 heads"
        )

    @pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
    @pytest.mark.parametrize("damage", [b"", b"garbage" * 9, "cut"])
    def test_a_damaged_file(self, folder, name, damage):
        {"model.safetensors": write_safetensors, "pytorch_model.bin": write_bin}[name](folder)
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2] if damage == "cut" else damage)
        message = refusal(folder)
        assert message.startswith(str(folder / name))
        assert "cannot be read" in message or "is damaged" in message

    @pytest.mark.parametrize("text", ["{bad", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"fc.weight": 3}}'])
    def test_a_broken_index(self, folder, text):
        (folder / "model.safetensors.index.json").write_text(text)
        assert "model.safetensors.index.json is no index of shards" in refusal(folder)

    @pytest.mark.parametrize("shard", ["../model.safetensors", "/model.safetensors"])
    def test_an_index_that_points_out_of_its_folder(self, folder, shard):
        write_index(folder, "model.safetensors", {shard: TENSORS})
        assert "must map tensors to files of its own folder" in refusal(folder)

    def test_a_shard_that_is_not_there(self, folder):
        write_sharded_safetensors(folder)
        (folder / "model-00002-of-00002.safetensors").unlink()
        assert refusal(folder).startswith(f"{folder / 'model-00002-of-00002.safetensors'} cannot be read (")

    def test_a_pickle_with_code_is_refused_and_not_run(self, folder):
        class Code:
            def __reduce__(self):
                return (Path.touch, (folder / "the code ran",))

        with (folder / "pytorch_model.bin").open("wb") as file:
            pickle.dump(TENSORS | {"fc.bias": Code()}, file, protocol=2)
        assert refusal(folder) == (
            f"{folder / 'pytorch_model.bin'} is refused: it is damaged, or holds other things than tensors, "
            "which could run code"
        )
        torch.save(TENSORS | {"fc.bias": Code()}, folder / "pytorch_model.bin")
        assert "which could run code" in refusal(folder)
        assert not (folder / "the code ran").exists()

    @pytest.mark.parametrize("content", [[1, 2], {"state_dict": TENSORS}])
    def test_a_pickle_of_other_plain_things(self, folder, content):
        torch.save(content, folder / "pytorch_model.bin")
        assert refusal(folder).endswith("does not map names to tensors, as a head's weights do")


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

        def fake(name: str, allow_patterns: list[str]) -> str:
            asked.append((name, allow_patterns))
            return str(snapshot)

        monkeypatch.setattr(checkpoint, "snapshot_download", fake)
        folder, revision = fetch_head("somebody/head")
        assert revision == "0a1b2c"
        assert torch.equal(outputs(load(folder)), EXPECTED)
        ((name, patterns),) = asked
        assert name == "somebody/head"
        assert {"config.json", "*.safetensors"} <= set(patterns)

    def test_whatever_the_hubs_client_raises_becomes_one_sentence(self, monkeypatch):
        class StrangeError(Exception):
            pass

        for error in (OfflineModeIsEnabled("no network.\nDetails"), StrangeError()):

            def fail(name: str, error: Exception = error, **_: object) -> str:
                raise error

            monkeypatch.setattr(checkpoint, "snapshot_download", fail)
            with pytest.raises(ValueError, match=r"from the hub \((no network|StrangeError)\); check the name"):
                fetch_head("somebody/head")
