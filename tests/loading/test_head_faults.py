"""Every fault of a head's folder has its own sentence, naming what is wrong."""

import pickle
import shutil
from pathlib import Path

import pytest
import torch
from head_files import (
    HIDDEN,
    TENSORS,
    TINY,
    K,
    refusal,
    write_bin,
    write_config,
    write_index,
    write_safetensors,
    write_sharded_safetensors,
)
from safetensors.torch import load_file, save_file


@pytest.fixture
def folder(tmp_path):
    """A head's folder with a config and no weights yet."""
    write_config(tmp_path)
    return tmp_path


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
        save_file(TENSORS | {"layers.0.mlp.odd_proj.weight": torch.zeros(2)}, folder / "model.safetensors")
        assert refusal(folder) == f"the head in {folder} does not load: left over layers.0.mlp.odd_proj.weight"

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
        assert refusal(folder).startswith(f"{folder} was given as a head but holds a whole language model; ")

    def test_a_head_of_another_method(self, folder):
        save_file({"0.0.linear.weight": torch.zeros(2)}, folder / "model.safetensors")
        assert "was given as a head but holds no head that is known (its tensors: 0.0.linear.weight, ...)" in refusal(
            folder
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
