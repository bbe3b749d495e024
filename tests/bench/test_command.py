"""`python -m eagle2 bench` on a tiny pair with a byte tokenizer: table, JSON, resuming, the selftest."""

import json
import shutil
from pathlib import Path

import byte_pair
import pytest

from eagle2.__main__ import main
from eagle2.bench.partial import FILE
from eagle2.bench.plan import QUICK
from eagle2.bench.work import FAMILIES

ASKED = [
    {"question_id": 1, "category": "writing", "turns": ["Hi", "And?"]},
    {"question_id": 2, "category": "qa", "turns": ["Why?"]},
    {"question_id": 3, "category": "qa", "turns": ["How?"]},
]
FIGURES = {"time-by-method", "gain-by-nodes", "acceptance-by-position", "reliability", "tau-by-max-nodes"}
METHODS = ("plain", "transformers", "eagle2", "eagle2@4", "ngram")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return byte_pair.options(tmp_path_factory.mktemp("pair") / "target")


@pytest.fixture
def options(tmp_path, pair):
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(map(json.dumps, ASKED)), "utf-8")
    tree = ["--top-k", "3", "--depth", "3", "--max-nodes", "6", "--max-new-tokens", "10"]
    return ["bench", "--questions", str(questions), "--methods", ",".join(METHODS[1:]), *tree, *pair]


def test_results_are_printed_and_written_as_numbers_and_booleans(options, tmp_path, capsys):
    file = tmp_path / "bench.json"
    assert main([*options, "--json", str(file)]) == 0
    body = json.loads(file.read_text("utf-8"))
    assert set(body) == {"results", "machine"}
    cells = {(r["method"], r["family"], r["temperature"]): r for r in body["results"]}
    assert set(cells) == {(m, family, t) for m in METHODS for family in ("mt-bench", "qa") for t in (0.0, 1.0)}
    assert len(cells) == len(body["results"])
    for result in body["results"]:
        assert set(result) == {"method", "family", "temperature", "tau", "tokens_per_s", "speedup", "lossless"}
        assert result["lossless"] is True
        assert all(type(result[key]) is float and result[key] > 0 for key in ("tau", "tokens_per_s", "speedup"))
        assert result["tau"] == 1 or result["method"] not in ("plain", "transformers")
        assert result["speedup"] == 1 or result["method"] != "plain"
    assert None not in body["machine"].values()
    assert 0 < body["machine"]["eagle2 outside"] < 1
    assert body["machine"]["eagle2 recording"] > -1
    assert body["machine"]["tree_of_1024_ms"] > 0
    assert {"device", "processor", "cores", "torch", "dtype", "target", "head"} <= set(body["machine"])
    printed = capsys.readouterr().out
    for word in (*METHODS, "temperature 0", "temperature 1", "mt-bench", "qa", "mean", "near-ties", "recording on"):
        assert word in printed


def test_a_static_tree_of_ones_own_is_measured_beside_the_methods_and_told_in_the_results(options, tmp_path):
    tree, file, folder = tmp_path / "tree.json", tmp_path / "bench.json", tmp_path / "out"
    tree.write_text("[[0], [1], [0, 0]]", encoding="utf-8")
    place = options.index("--methods") + 1
    few = [*options[:place], "eagle", *options[place + 1 :], "--temperatures", "0", "--tree", str(tree)]
    assert main([*few, "--json", str(file), "--out", str(folder)]) == 0
    body = json.loads(file.read_text("utf-8"))
    assert {r["method"] for r in body["results"]} == {"plain", "eagle", "static"}
    assert all(r["lossless"] for r in body["results"])
    assert body["machine"]["static"] == "[0], [1],\n[0, 0]"
    tree.write_text("[[0], [1]]", encoding="utf-8")
    assert main([*few, "--out", str(folder)]) == 2  # another tree's measurements are not mixed in


def test_a_stopped_run_resumes(options, tmp_path, capsys):
    folder, file = tmp_path / "out", tmp_path / "bench.json"
    assert main([*options, "--out", str(folder)]) == 0
    lines = (folder / FILE).read_text("utf-8").splitlines(keepends=True)
    assert len(lines) == 1 + 4 * 2  # a heading; four turns at two temperatures
    assert {path.stem for path in folder.glob("*.html")} == FIGURES
    (folder / FILE).write_text("".join(lines[:4]) + lines[4][:50], "utf-8")
    assert main([*options, "--out", str(folder), "--json", str(file)]) == 0
    again = (folder / FILE).read_text("utf-8").splitlines(keepends=True)
    assert again[:4] == lines[:4]
    assert len(again) == len(lines)
    assert len(json.loads(file.read_text("utf-8"))["results"]) == len(METHODS) * 2 * 2


def test_another_plan_does_not_mix_with_what_is_there(options, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main([*options, "--every", "9", "--temperatures", "0", "--out", str(folder)]) == 0
    assert main([*options, "--every", "9", "--temperatures", "1", "--out", str(folder)]) == 2
    assert "holds measurements of other models or settings" in capsys.readouterr().err


def test_edited_questions_and_a_head_trained_on_in_place_are_other_measurements(options, pair, tmp_path, capsys):
    folder, head = tmp_path / "out", tmp_path / "head"
    shutil.copytree(pair[3], head)
    few = [*options, "--head", str(head), "--every", "9", "--temperatures", "0", "--out", str(folder)]
    assert main(few) == 0
    assert main(few) == 0
    questions = options[options.index("--questions") + 1]
    text = Path(questions).read_text("utf-8")
    Path(questions).write_text(text.replace("Why?", "What?"), "utf-8")
    assert main(few) == 2
    Path(questions).write_text(text, "utf-8")
    (head / "config.json").write_text((head / "config.json").read_text("utf-8") + "\n", "utf-8")
    assert main(few) == 2
    assert capsys.readouterr().err.count("holds measurements of other models or settings") == 2


def test_a_prompt_that_fills_the_context_is_left_out_of_measurements_and_figures(options, tmp_path, capsys):
    folder = tmp_path / "out"
    with open(options[options.index("--questions") + 1], "a", encoding="utf-8") as questions:
        questions.write("\n" + json.dumps({"question_id": 4, "category": "qa", "turns": ["long " * 400]}))
    assert main([*options, "--temperatures", "0", "--out", str(folder)]) == 0
    assert "1 of 5 trials were left out" in capsys.readouterr().out
    assert {path.stem for path in folder.glob("*.html")} == FIGURES


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-new-tokens", "0"], "max_new_tokens is 0"),
        (["--selftest", "--quick", "--dtype", "float16"], "--selftest takes models and a device alone; leave out"),
        (["--methods", "sps"], "method sps needs an independent draft model; give one with --draft-model"),
        (["--questions", "/no/such/file.jsonl"], "/no/such/file.jsonl"),
        (["--json", "/no/such/folder/bench.json"], "the results cannot be written: /no/such/folder is no folder"),
        (["--every", "0"], "--every is 0; it must be at least 1"),
    ],
)
def test_mistakes_are_told_before_anything_is_loaded(capsys, arguments, sentence):
    assert main(["bench", "--target", "/no/such/target", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_draft_model_is_measured_as_sps(options, pair, capsys):
    asked = ["--methods", "sps", "--temperatures", "0", "--every", "9", "--draft-model", pair[1]]
    assert main([*options, *asked]) == 0
    assert "sps" in capsys.readouterr().out


def test_the_selftest_says_what_it_checked(capsys):
    assert main(["bench", "--selftest", "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    assert "float32, TF32 off" in printed
    assert "answers are plain decoding's" in printed
    assert "a tree's logits against its paths'" in printed
    assert "bfloat16" in printed
    assert printed.rstrip().endswith("all exact")


def test_a_selftest_that_finds_a_fault_fails(capsys, monkeypatch):
    monkeypatch.setattr("eagle2.bench.selftest.LOGIT_SLACK", -1.0)
    assert main(["bench", "--selftest", "--device", "cpu"]) == 2
    assert "the selftest failed: tree logits are off by" in capsys.readouterr().err


@pytest.mark.model
def test_quick_measures_one_prompt_of_each_of_our_families_on_the_default_pair(tmp_path, capsys):
    file = tmp_path / "bench.json"
    assert main(["bench", "--quick", "--max-new-tokens", "8", "--device", "cpu", "--json", str(file)]) == 0
    found = json.loads(file.read_text("utf-8"))["results"]
    assert {(r["method"], r["family"]) for r in found} == {(method, family) for method in QUICK for family in FAMILIES}
    assert all(r["lossless"] and r["temperature"] == 0 for r in found)
    assert max(r["tau"] for r in found if r["method"] == "eagle2") > 1
