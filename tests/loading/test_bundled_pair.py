"""The default target: its package's file is found, and converted once, whole or not at all."""

import gguf
import numpy as np
import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoModelForCausalLM, AutoTokenizer

from eagle2.loading import bundled_pair


class TestPackage:
    def test_a_package_that_is_not_installed_has_no_file(self, monkeypatch):
        monkeypatch.setattr(bundled_pair, "MODULE", "a_package_that_nobody_has")
        assert bundled_pair.gguf_file() is None

    def test_the_packages_file_is_found_without_importing_the_package(self, tmp_path, monkeypatch):
        package = tmp_path / "a_package_with_a_model"
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        (package / "a.gguf").write_bytes(b"")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(bundled_pair, "MODULE", package.name)
        assert bundled_pair.gguf_file() == package / "a.gguf"


WIDTH, INNER, TOKENS = 8, 16, 257


@pytest.fixture(scope="module")
def weights():
    """A GGUF of one layer, one head, and as tokens all bytes and two spaces: the embeddings it holds, and its file."""
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return random.standard_normal((rows, columns), dtype=np.float32)

    square = {f"blk.0.attn_{name}.weight": matrix(WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    norms = {
        name: np.ones(WIDTH, np.float32)
        for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight")
    }
    inner = {"blk.0.ffn_gate.weight": matrix(INNER, WIDTH), "blk.0.ffn_up.weight": matrix(INNER, WIDTH)}
    return {
        "token_embd.weight": matrix(TOKENS, WIDTH),
        **square,
        **norms,
        **inner,
        "blk.0.ffn_down.weight": matrix(WIDTH, INNER),
    }


@pytest.fixture
def gguf_model(tmp_path, weights):
    (tmp_path / "package").mkdir()
    path = tmp_path / "package" / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(TOKENS)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*sorted(ByteLevel.alphabet()), "ĠĠ"])
    writer.add_token_merges(["Ġ Ġ"])
    writer.add_token_types([1] * TOKENS)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for name, tensor in weights.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class TestConversion:
    @pytest.fixture(autouse=True)
    def library(self, tmp_path, monkeypatch):
        """Where converted models go, empty at first."""
        folder = tmp_path / "library"
        monkeypatch.setattr(bundled_pair, "cached_assets_path", lambda *_, **__: folder)
        monkeypatch.setattr(bundled_pair, "version", lambda: "9.9")
        return folder

    def test_the_weights_arrive_and_the_tokenizer_with_them(self, gguf_model, weights, library, capsys):
        folder = bundled_pair.converted_target(gguf_model)
        assert [entry.name for entry in library.iterdir()] == [folder.name] == ["smollm2-135m-instruct-9.9"]
        assert f"Converting tiny.gguf once into {folder}" in capsys.readouterr().err
        model = AutoModelForCausalLM.from_pretrained(folder)
        assert torch.equal(model.get_input_embeddings().weight, torch.from_numpy(weights["token_embd.weight"]))
        value = model.model.layers[0].self_attn.v_proj.weight
        assert torch.equal(value, torch.from_numpy(weights["blk.0.attn_v.weight"]))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        assert tokenizer.decode(tokenizer("é x")["input_ids"]) == "é x"

    def test_the_second_start_converts_nothing(self, gguf_model, library, capsys):
        folder = bundled_pair.converted_target(gguf_model)
        gguf_model.unlink()
        capsys.readouterr()
        assert bundled_pair.converted_target(gguf_model) == folder
        assert capsys.readouterr().err == ""

    def test_a_failed_conversion_leaves_nothing_behind(self, gguf_model, library, monkeypatch):
        def fail(*_: object, **__: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as broken:  # the model is already written when this fails
            broken.setattr("transformers.PreTrainedTokenizerBase.save_pretrained", fail)
            with pytest.raises(OSError, match="disk full"):
                bundled_pair.converted_target(gguf_model)
        assert list(library.iterdir()) == []
        assert (bundled_pair.converted_target(gguf_model) / "tokenizer.json").is_file()

    def test_of_two_at_once_the_first_ones_stays(self, gguf_model, library):
        folder = library / "model"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("the other process made this")
        bundled_pair.convert(gguf_model, folder)
        assert [entry.name for entry in library.iterdir()] == ["model"]
        assert [entry.name for entry in folder.iterdir()] == ["config.json"]
