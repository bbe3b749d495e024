"""The command line, in this process, on a tiny pair."""

import re
import shutil
from pathlib import Path

import byte_pair
import pytest
import torch
from last_line import LAST_LINE
from safetensors.torch import load_file, save_file

from eagle2.__main__ import main
from eagle2.analysis import metrics, recut
from eagle2.methods import METHODS
from eagle2.settings import Sampling, TreeShape
from eagle2.trace import files as trace_files

ROOT = Path(__file__).resolve().parents[2]
PAIR = ROOT / "tests" / "fixtures" / "tiny-pair"
FOUND = re.compile(r"^head .*\n(?:  .*\n)+", re.MULTILINE)
"""The table of what a head is, on stderr."""
LOADING_BAR = re.compile(r"\r[^\r\n]*\d+/\d+ [^\r\n]*\n?")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The tiny pair's options, with a tokenizer of 256 bytes beside the target."""
    return byte_pair.options(tmp_path_factory.mktemp("pair") / "target")


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command in this process."""
    try:
        code = main(["generate", *arguments])
    except SystemExit as left:  # argparse's way
        code = left.code
    said = capsys.readouterr()
    return code, said.out, FOUND.sub("", LOADING_BAR.sub("", said.err))


def error(capsys, *arguments: str) -> str:
    """The one sentence of a command that fails."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").strip()


class TestGenerate:
    def test_the_text_and_the_last_line_agree_with_the_trace(self, capsys, pair, tmp_path):
        file = tmp_path / "run.json"
        options = ["--top-k", "3", "--depth", "2", "--max-nodes", "5", "--max-new-tokens", "20", "--trace", str(file)]
        how = ["--temperature", "1.5", "--sample-top-p", "0.9", "--sample-top-k", "50", "--seed", "7"]
        code, out, err = run(capsys, "Hi", "--system", "Be brief.", *options, *how, *pair)
        assert (code, err) == (0, "")
        text, _, last = out.rstrip("\n").rpartition("\n")
        tokens, rounds, tau, _ = LAST_LINE.fullmatch(last).groups()

        trace = trace_files.load(file)
        assert (int(tokens), int(rounds)) == (len(trace.new_ids), len(trace.rounds))
        assert float(tau) == pytest.approx(metrics.tau(trace.rounds), abs=0.005)
        assert trace.messages == (("system", "Be brief."), ("user", "Hi"))
        assert trace.settings.sampling == Sampling(1.5, 0.9, 50, 7)
        assert trace.settings.shape == trace.effective == TreeShape(3, 2, 5)
        assert trace.settings.max_new_tokens == 20
        assert trace.pair.target == pair[1]
        assert all(r.kept == 5 for r in trace.rounds)
        spelled = b"".join(trace.tokens[token] for token in trace.new_ids).decode(errors="replace")
        assert text == spelled.rstrip("\ufffd")  # a character that the cap has cut is not shown

    @pytest.mark.parametrize("temperature", ["0", "1"])
    def test_every_method_gives_the_same_text_and_ids(self, capsys, pair, temperature, tmp_path):
        file = tmp_path / "run.json"
        how = ["--temperature", temperature, "--max-new-tokens", "12", "--trace", str(file)]
        runs = set()
        for method in METHODS:
            if method == "sps" and temperature != "0":
                continue  # its drafts are sampled: the same distribution, another text
            draft_model = ["--draft-model", pair[1]] if method == "sps" else []
            code, out, err = run(capsys, "Hello", "--method", method, *how, *pair, *draft_model)
            assert (code, err) == (0, "")
            trace = trace_files.load(file)
            assert trace.settings.policy == method
            assert (trace.effective is None) == (method == "plain")
            runs.add((out.rstrip("\n").rpartition("\n")[0], trace.new_ids))
        assert len(runs) == 1

    def test_a_static_tree_of_ones_own_is_read_from_a_file_and_stays_in_the_trace(self, capsys, pair, tmp_path):
        tree, file = tmp_path / "tree.json", tmp_path / "run.json"
        tree.write_text("[[0], [2], [0, 1], [2, 0]]", encoding="utf-8")
        asked = ["Hello", "--max-new-tokens", "12", *pair]
        code, out, err = run(capsys, *asked, "--tree", str(tree), "--trace", str(file), "--top-k", "9")
        assert (code, err) == (0, "note: --top-k has no effect with static\n")
        assert out.rpartition("\n12 tokens")[0] == run(capsys, *asked)[1].rpartition("\n12 tokens")[0]
        trace = trace_files.load(file)
        assert trace.settings.paths == ((0,), (2,), (0, 1), (2, 0))
        assert trace.effective == TreeShape(3, 2, 4)
        assert all(recut.places(r, trace.settings.paths) == trace.settings.paths for r in trace.rounds)
        assert all(recut.cut_again(trace, r.index, trace.settings).kept == r.flattened for r in trace.rounds)

    def test_what_is_no_tree_is_refused_before_models_load(self, capsys, tmp_path):
        tree = tmp_path / "tree.json"
        tree.write_text("[[0], [1, 0]]", encoding="utf-8")
        said = error(capsys, "Hi", "--tree", str(tree), "--target", "nowhere")
        assert said == "path [1, 0] has no parent: add [1] to the static tree"
        assert "give one of them" in error(capsys, "Hi", "--tree", str(tree), "--policy", "chain")
        assert "missing.json" in error(capsys, "Hi", "--tree", str(tmp_path / "missing.json"))

    def test_a_policy_and_a_drafter_are_chosen_apart(self, capsys, pair, tmp_path):
        file = tmp_path / "run.json"
        few = ["Hello Hello", "--max-new-tokens", "12", "--trace", str(file), *pair]
        texts = set()
        for asked, settings in [
            (["--policy", "eagle2-no-value", "--drafter", "draft-model"], ("eagle2-no-value", "draft-model")),
            (["--policy", "chain", "--drafter", "draft-model"], ("sps", None)),
            (["--drafter", "ngram"], ("eagle2", "ngram")),
            (["--policy", "eagle"], ("eagle", None)),
        ]:
            draft_model = ["--draft-model", pair[1]] if "draft-model" in asked else []
            code, _, err = run(capsys, *few, *asked, *draft_model)
            assert (code, err) == (0, "")
            trace = trace_files.load(file)
            assert (trace.settings.policy, trace.settings.drafter) == settings
            texts.add(trace.new_ids)
        assert len(texts) == 1
        _, _, err = run(capsys, *few, "--drafter", "ngram", "--max-nodes", "3", "--top-k", "4")
        assert "note: --top-k has no effect with eagle2 drafted by ngram" in err

    def test_recordings_of_other_methods_go_elsewhere(self, capsys):
        wanted = "the page's recordings are made by eagle2; give --out, a folder for others"
        assert main(["record", "--drafter", "ngram"]) == 2
        assert capsys.readouterr().err == f"error: {wanted}\n"

    def test_what_a_head_is_is_told_in_a_table(self, capsys, pair):
        main(["generate", "Hi", "--max-new-tokens", "2", *pair])
        (told,) = FOUND.findall(LOADING_BAR.sub("", capsys.readouterr().err))
        assert told.startswith(f"head {PAIR / 'head'}\n  kind         EAGLE-1/2\n")
        assert "\n  vocabulary   256 of 256 tokens\n" in told

    def test_a_head_that_guesses_nothing_right_is_hinted_at_and_changes_no_text(self, capsys, pair, tmp_path):
        shutil.copy(PAIR / "head" / "config.json", tmp_path)
        tensors = load_file(PAIR / "head" / "model.safetensors")
        save_file({name: torch.zeros_like(t) for name, t in tensors.items()}, tmp_path / "model.safetensors")
        deaf = ["Hi", "--max-new-tokens", "20", *pair[:3], str(tmp_path), *pair[4:]]
        _, out, err = run(capsys, *deaf)
        assert err.startswith("hint: the head's proposals are almost never right: it may belong to another target")
        plain = run(capsys, *deaf, "--method", "plain")
        assert plain[2] == ""
        assert out.rpartition("\n20 tokens")[0] == plain[1].rpartition("\n20 tokens")[0]

    def test_a_known_target_without_a_head_is_told_of_one(self, capsys, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        code, _, err = run(capsys, "Hi", "--target", "Qwen/Qwen3-8B")
        assert code == 2
        assert err.startswith("note: Qwen/Qwen3-8B came without a head; known for it: AngelSlim/Qwen3-8B_eagle3\n")

    def test_a_draft_vocabulary_is_told(self, capsys, pair, tmp_path):
        shutil.copy(PAIR / "head" / "config.json", tmp_path)
        tensors = load_file(PAIR / "head" / "model.safetensors")
        save_file(tensors | {"d2t": torch.arange(0, 300, 3)[:64] - torch.arange(64)}, tmp_path / "model.safetensors")
        given = ["Hi", "--max-new-tokens", "4", *pair[:3], str(tmp_path), *pair[4:]]
        told = "note: confidences are shares of a draft vocabulary of 64 of 256 tokens, so values run high\n"
        assert run(capsys, *given)[2] == told
        assert run(capsys, *given, "--method", "plain")[2] == ""

    def test_a_stop_string_ends_the_text_before_it(self, capsys, pair):
        how = ["--temperature", "1.5", "--max-new-tokens", "40"]
        _, out, _ = run(capsys, "Hi", "--method", "plain", *how, *pair)
        whole = out.rstrip("\n").rpartition("\n")[0]
        start, stop = next((i, whole[i : i + 2]) for i in range(8, len(whole)) if whole[i : i + 2].isascii())
        assert whole.find(stop) == start  # of this seed's text; otherwise the test means nothing
        _, out, _ = run(capsys, "Hi", "--method", "plain", "--stop", "nowhere to be found", "--stop", stop, *how, *pair)
        # Bytes before it that are no whole character are never shown.
        assert out.rstrip("\n").rpartition("\n")[0] == whole[:start].rstrip("\ufffd")

    def test_sizes_that_cannot_be_are_clamped_and_said(self, capsys, pair):
        tree = ("--top-k", "2", "--depth", "2", "--max-nodes", "5000")
        code, _, err = run(capsys, "Hi", "--max-new-tokens", "4", *tree, *pair)
        assert code == 0
        assert "note: --max-nodes 5000 becomes 6, all that can be drafted or kept here" in err

    def test_a_run_of_one_token_has_no_tau(self, capsys, pair):
        code, out, _ = run(capsys, "Hi", "--max-new-tokens", "1", *pair)
        assert code == 0
        assert out.splitlines()[-1].startswith("1 tokens, 1 rounds, tau none (bonus included), none decoded, prefill ")


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (["--method", "plain", "--top-k", "2", "--depth", "2"], "--top-k, --depth have no effect with plain"),
        (["--method", "eagle", "--max-nodes", "9"], "--max-nodes has no effect with eagle"),
        (["--method", "chain", "--top-k", "2", "--depth", "2"], "--top-k has no effect with chain"),
        (["--method", "eagle2-no-both", "--max-nodes", "9"], "--max-nodes has no effect with eagle2-no-both"),
        (["--seed", "3", "--sample-top-p", "0.5"], "--sample-top-p, --seed have no effect at temperature 0"),
        (["--sample-top-k", "4"], "--sample-top-k has no effect at temperature 0"),
        (["--draft-model", str(PAIR / "target")], "--draft-model has no effect with eagle2"),
        (["--method", "ngram", "--top-k", "3", "--depth", "2"], "--top-k has no effect with ngram"),
        (["--top-k", "2", "--depth", "2", "--max-nodes", "2", "--temperature", "1", "--seed", "3"], None),
    ],
)
def test_options_without_effect_are_announced(capsys, pair, options, note):
    code, _, err = run(capsys, "Hi", "--max-new-tokens", "2", *options, *pair)
    assert code == 0
    assert err == ("" if note is None else f"note: {note}\n")


class TestErrors:
    def test_a_pair_without_tokenizer(self, capsys):
        target = str(PAIR / "target")
        sentence = error(capsys, "Hi", "--target", target, "--head", str(PAIR / "head"))
        assert sentence == f"{target} has no tokenizer; from Python, give token ids to engine.rounds"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--method", "magic"], "invalid choice: 'magic'"),
            (["--depth", "deep"], "argument --depth: invalid int value: 'deep'"),
            (["--temperature", "hot"], "argument --temperature: invalid float value: 'hot'"),
            (["--bogus"], "unrecognized arguments: --bogus"),
        ],
    )
    def test_options_that_are_none(self, capsys, options, said):
        code, out, err = run(capsys, "Hi", *options)
        assert (code, out) == (2, "")
        assert said in err

    # None of these may wait for models: the target given with them does not exist, and is not what they speak of.
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (["--depth", "0"], "depth is 0; it must be at least 1"),
            (["--top-k", "-1"], "top_k is -1; it must be at least 1"),
            (["--max-nodes", "0"], "max_nodes is 0; it must be at least 1"),
            (["--temperature", "-1"], "temperature is -1.0; it must be 0 (greedy) or more"),
            (["--temperature", "nan"], "temperature is nan; it must be finite"),
            (["--sample-top-p", "0"], "top_p is 0.0; it must be above 0 and at most 1 (1 keeps every token)"),
            (["--sample-top-k", "-1"], "top_k of sampling is -1; it must be at least 0"),
            (["--seed", "-1"], "seed is -1; it must be at least 0"),
            (["--max-new-tokens", "0"], "max_new_tokens is 0; it must be at least 1"),
            (["--method", "sps"], "method sps needs an independent draft model; give one with --draft-model"),
            (
                ["--drafter", "draft-model"],
                "drafter draft-model needs an independent draft model; give one with --draft-model",
            ),
            (
                ["--method", "eagle2", "--drafter", "ngram"],
                "--method names a drafter and a policy at once; give it alone, or --policy and --drafter",
            ),
            (
                ["--policy", "eagle", "--drafter", "ngram"],
                "prompt lookup guesses one continuation, which fills no static tree; choose chain or an eagle2 policy",
            ),
            (["--trace", "no-such-folder/run.json"], "the trace cannot be written: no-such-folder is no folder"),
            (["--trace", str(PAIR)], f"the trace cannot be written: {PAIR} is a folder; give a file's name"),
        ],
    )
    def test_mistakes_are_told_before_anything_is_loaded(self, capsys, options, sentence):
        assert error(capsys, "Hi", "--target", "/no/such/target", *options) == sentence

    def test_mistakes_in_names_are_told(self, capsys, pair):
        assert "/no/such/target" in error(capsys, "Hi", "--target", "/no/such/target")
        assert "device 'toaster' is not usable" in error(capsys, "Hi", *pair, "--device", "toaster")
        assert "a stop string is empty" in error(capsys, "Hi", "--stop", "", *pair)

    def test_a_target_without_head_decodes_plainly_only(self, capsys, pair):
        target = pair[:2]
        assert "needs a draft model and none is loaded" in error(capsys, "Hi", *target)
        assert run(capsys, "Hi", "--method", "plain", "--max-new-tokens", "2", *target)[0] == 0
        assert run(capsys, "Hi", "--method", "ngram", "--max-new-tokens", "2", *target)[0] == 0

    def test_a_prompt_over_the_context(self, capsys, pair):
        assert "the prompt has 603 tokens and the model's context holds 512" in error(capsys, "x" * 600, *pair)

    def test_an_interrupt_is_no_failure_to_explain(self, capsys, monkeypatch):
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("eagle2.loading.load.load", interrupted)
        assert run(capsys, "Hi") == (130, "", "\nstopped\n")

    def test_no_command_says_which_there_are(self, capsys):
        with pytest.raises(SystemExit, match="2"):
            main([])
        assert "generate" in capsys.readouterr().err
