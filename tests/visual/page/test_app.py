"""app.py's options, the run it opens first, its port; and the table of strings against the code that uses it."""

from __future__ import annotations

import ast
import re
import urllib.request
from pathlib import Path

import gradio as gr
import pytest
from fastapi.testclient import TestClient
from fixtures_edges import TRACE
from serving import serving

import app
from eagle2.trace import files as trace_files
from visual.words.en import ENGLISH
from visual.words.say import say

ROOT = Path(__file__).parents[3]


def test_without_options_it_is_the_default_pair_on_any_device():
    options = app.parse([])
    assert (options.target, options.head, options.device, options.dtype) == (None, None, "auto", "auto")
    assert (options.trace, options.port, options.public) == (None, None, False)


def test_options_reach_the_models_and_the_limits():
    _, studio = app.build(
        app.parse(
            [
                "--target",
                "t",
                "--head",
                "h",
                "--device",
                "cpu",
                "--dtype",
                "float32",
                "--max-new-tokens-limit",
                "64",
                "--runs",
                "2",
                "--waiting",
                "3",
                "--upload-mb",
                "5",
            ]
        )
    )
    o = studio.options
    assert (o.target, o.head, o.device, o.dtype) == ("t", "h", "cpu", "float32")
    assert (o.max_new_tokens, o.runs, o.waiting, o.upload_mb) == (64, 2, 3, 5)


def test_only_what_needs_the_models_waits_and_no_more_of_it_than_the_owner_allows():
    blocks, _ = app.build(app.parse(["--runs", "2", "--waiting", "3"]))
    assert (blocks._queue.max_size, blocks._queue.default_concurrency_limit) == (3, 2)
    queued = {fn.name: (fn.concurrency_id, fn.concurrency_limit) for fn in blocks.fns.values() if fn.fn and fn.queue}
    del queued["leave"]  # of a page that was closed: Gradio calls it past the queue
    assert {"generate", "step", "own_tree", "link_opened", "back", "compare", "run", "grow"} == queued.keys()
    assert set(queued.values()) == {("model", "default")}


def test_a_full_queue_turns_a_run_away_and_lets_stop_through():
    blocks, _ = app.build(app.parse([]))
    client = TestClient(gr.routes.App.create_app(blocks))
    blocks._queue.max_size = 0
    number = {fn.name: number for number, fn in blocks.fns.items()}

    def post(path: str, name: str) -> int:
        given = [None] * len(blocks.fns[number[name]].inputs)
        body = {"data": given, "fn_index": number[name], "session_hash": "visitor"}
        return client.post(f"/gradio_api/{path}", json=body).status_code

    assert post("queue/join", "generate") == 503
    assert post("run/predict", "stop") == 200


@pytest.mark.parametrize("option", ["--max-new-tokens-limit", "--runs", "--waiting", "--upload-mb"])
@pytest.mark.parametrize("value", ["0", "-3"])
def test_a_limit_under_one_is_refused(option, value, capsys):
    with pytest.raises(SystemExit):
        app.parse([option, value])
    assert f"{option} is {value}; it must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--runs", "many"], ["--colour", "red"], ["stray"]])
def test_an_unknown_option_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        app.parse(wrong)
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told"),
    [("{", "error: "), ('{"format": "x"}', "error: "), ("\x1f\x8b broken", "error: "), (None, "error: ")],
)
def test_a_file_that_is_no_run_ends_in_a_sentence(tmp_path, content, told):
    path = tmp_path / "no.json"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(SystemExit) as stopped:
        app.main(["--trace", str(path)])
    assert str(stopped.value).startswith(told)
    assert "\n" not in str(stopped.value)


def test_a_run_without_rounds_is_refused(tmp_path):
    path = tmp_path / "empty.json"
    trace_files.save(type(TRACE)(**{**vars(TRACE), "rounds": (), "tokens": {1: b"a", 2: b"b"}}), path)
    with pytest.raises(SystemExit, match=r"empty\.json holds no rounds"):
        app.main(["--trace", str(path)])


def test_the_port_of_the_environment_is_honoured(tmp_path):
    with serving("--target", str(tmp_path), log=tmp_path / "log") as address:
        assert b"EAGLE-2, round by round" in urllib.request.urlopen(address, timeout=10).read()


# Strings. A key is used where it stands in the code as a whole, or matches an f-string or a JS template there.
PREFIXES = {key.split(".")[0] for key in ENGLISH}
KEY = re.compile(r"[a-z_]+(\.[\w-]+)+")
FILE_NAME = re.compile(r".*\.(js|css|md|json|html|gz|py)")


def python_strings() -> tuple[set[str], set[str]]:
    """Whole strings, and patterns of f-strings, of all Python files of the page."""
    whole, patterns = set(), set()
    for path in [ROOT / "app.py", *(ROOT / "visual").rglob("*.py")]:
        if path.parent.name in ("en", "zh"):
            continue  # the tables themselves
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                inside.update(id(part) for part in node.values)
                parts = [re.escape(p.value) if isinstance(p, ast.Constant) else r"[\w.-]+" for p in node.values]
                patterns.add("".join(parts))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                whole.add(node.value)
    return whole, patterns


def browser_strings() -> tuple[set[str], set[str]]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "visual" / "player" / "js").glob("*.js"))
    whole = set(re.findall(r"'([^'\n]*)'", text))
    templates = re.findall(r"say\(`([^`\n]*)`", text)
    patterns = {r"[\w.-]+".join(map(re.escape, re.split(r"\$\{[^}]*\}", template))) for template in templates}
    return whole, patterns


def test_every_string_that_is_asked_for_is_in_the_table():
    missing = {
        text
        for text in python_strings()[0] | browser_strings()[0]
        if KEY.fullmatch(text) and text.split(".")[0] in PREFIXES and not FILE_NAME.fullmatch(text)
    } - ENGLISH.keys()
    assert not missing


def test_every_pattern_that_is_asked_for_is_in_the_table():
    patterns = {p for p in browser_strings()[1] if p.split(r"\.")[0] in PREFIXES}
    assert patterns
    assert {p for p in patterns if not any(re.fullmatch(p, key) for key in ENGLISH)} == set()


def test_every_string_of_the_table_is_used():
    python, browser = python_strings(), browser_strings()
    whole, patterns = python[0] | browser[0], python[1] | browser[1]
    patterns = {p for p in patterns if re.match(r"[a-z_]+(\\\.|\.)", p) and re.split(r"\\?\.", p)[0] in PREFIXES}
    unused = {key for key in ENGLISH if key not in whole and not any(re.fullmatch(p, key) for p in patterns)}
    assert unused == set()


def test_what_is_filled_in_is_not_filled_in_again():
    assert say("status.loaded", name="{pair}", rounds=1, pair="x") == "{pair}: 1 rounds, made by x."
