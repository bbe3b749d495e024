"""The models behind the page: loaded beside it, failing in a sentence; and as a ZeroGPU Space would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
import tiny_pair

from eagle2.settings import Sampling, Settings, TreeShape
from visual.page import page
from visual.page.context import Common
from visual.page.form import Form
from visual.page.parts import Parts
from visual.page.tabs.running import Running
from visual.server.conversation import Visit
from visual.server.studio import MOST_SECONDS, Options, Studio, duration_s
from visual.words.say import say

ROOT = Path(__file__).parents[3]
SETTINGS = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)
VISITOR = SimpleNamespace(session_hash="somebody")
VALUES = ("eagle2", 3, 3, 8, 0, 1, 0, 0, 12)


def running(studio: Studio) -> tuple[Running, Parts]:
    with gr.Blocks():
        parts = Parts("", studio.options.max_new_tokens, studio.options.methods, "en")
    return Running(Common(studio, parts, "en")), parts


def last_status(told: list[dict], parts: Parts) -> str:
    return [changed[parts.status] for changed in told if parts.status in changed][-1]


def test_the_page_is_there_while_the_models_load(engine):
    go_on = threading.Event()
    studio = Studio(Options(), load=lambda *_: go_on.wait(20) and engine)
    assert studio.state == "waiting"
    studio.start()
    page.build(studio)
    assert studio.state == "loading"
    go_on.set()
    assert studio.engine() is engine
    assert studio.state == "ready"


def test_models_are_loaded_once_for_all(engine):
    loads = []
    studio = Studio(Options("a", "b", "cpu", "float32", "c"), load=lambda *asked: loads.append(asked) or engine)
    visitors = [threading.Thread(target=studio.engine) for _ in range(5)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert [asked[:5] for asked in loads] == [("a", "b", "cpu", "float32", "c")]


@pytest.mark.parametrize(
    "error", [ValueError("it is no model"), MemoryError("no room"), KeyError("fc"), OSError("gone")]
)
def test_whatever_fails_is_told_in_a_sentence_and_the_page_lives(error, engine):
    def load(*_):
        if faults:
            raise faults.pop()
        return engine

    faults = [error, error]
    studio = Studio(Options(), load)
    with pytest.raises(ValueError, match=str(error)):
        studio.engine()
    assert (studio.state, studio.fault) == ("failed", str(error))
    run, parts = running(studio)
    told = list(run.generate(VISITOR, "hello", "", *VALUES))
    assert str(error).strip("'") in last_status(told, parts)
    assert 'role="alert"' in last_status(told, parts)
    assert not any(parts.prompt in changed for changed in told), "the prompt's text was thrown away"
    told = list(run.generate(VISITOR, "hello", "", *VALUES))  # the next try finds the models
    assert "length limit" in last_status(told, parts)


def test_a_head_that_its_owner_brought_is_told_of_on_stderr(tmp_path, capsys):
    target, head = tiny_pair.write(tmp_path)
    Studio(Options(target, head, "cpu")).engine()
    assert f"head {head}\n  kind         EAGLE-1/2\n" in capsys.readouterr().err


def test_a_folder_without_a_model_is_named(tmp_path):
    studio = Studio(Options(target=str(tmp_path), device="cpu"))
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        studio.engine()


def test_a_bad_setting_is_told_before_anything_runs_and_keeps_the_prompt(engine):
    run, parts = running(Studio(Options(), lambda *_: engine))
    told = list(run.generate(VISITOR, "hello", "", *VALUES[:-1], 0))
    assert "New tokens at most is 0" in last_status(told, parts)
    assert not any(parts.prompt in changed for changed in told)


def test_no_visitor_gets_more_tokens_than_the_owner_allows(engine):
    run, parts = running(Studio(Options(max_new_tokens=10), lambda *_: engine))
    told = list(run.generate(VISITOR, "hello", "", *VALUES))
    assert "from 1 to 10" in last_status(told, parts)


def test_a_visitor_who_runs_already_is_told_so_and_another_is_served(engine):
    run, parts = running(Studio(Options(), lambda *_: engine))
    first = run.generate(VISITOR, "hello", "", *VALUES)
    next(first)
    assert say("status.busy") in last_status(list(run.generate(VISITOR, "again", "", *VALUES)), parts)
    other = list(run.generate(SimpleNamespace(session_hash="another"), "hello", "", *VALUES))
    assert "length limit" in last_status(other, parts)
    assert "length limit" in last_status(list(first), parts)


def test_a_visitor_who_leaves_in_the_middle_is_free_again(engine):
    run, parts = running(Studio(Options(), lambda *_: engine))
    for _ in range(5):
        left = run.generate(VISITOR, "hello", "", *VALUES)
        next(left)
        next(left)
        left.close()
    assert "length limit" in last_status(list(run.generate(VISITOR, "hello", "", *VALUES)), parts)


def test_going_on_with_nothing_is_told_so(engine):
    run, parts = running(Studio(Options(), lambda *_: engine))
    assert say("status.nothing") in last_status(list(run.generate(VISITOR, " ", "", *VALUES)), parts)


def test_the_comparison_is_exact_and_measured(engine):
    studio = Studio(Options(), lambda *_: engine)
    turn = Visit().begin(engine, "one two", "", SETTINGS)
    list(studio.rounds(turn))
    found = studio.compare(turn)
    assert (found.checked, found.differing) == (20, 0)
    assert found.speedup > 0
    assert found.plain_tokens_per_s > 0
    short = Visit().begin(engine, "one", "", Form(max_new_tokens=1).settings(5))
    list(studio.rounds(short))
    assert studio.compare(short).speedup is None


def test_gpu_time_grows_with_the_run_and_is_capped():
    assert duration_s([1] * 10, SETTINGS, []) < duration_s([1] * 10, Settings(max_new_tokens=400), [])
    assert duration_s([1] * 10, Settings(max_new_tokens=10**6), []) == MOST_SECONDS
    assert duration_s([1] * 10**6, SETTINGS, []) == MOST_SECONDS


SPACES = '''
"""As the package of a ZeroGPU Space: what goes into a decorated function and what comes out crosses a process."""
import inspect, pickle, sys

BEFORE_TORCH = "torch" not in sys.modules
CALLS = []

def GPU(duration=60):
    def decorate(function):
        def told(arguments):
            arguments = pickle.loads(pickle.dumps(arguments))
            CALLS.append([function.__name__, duration(*arguments) if callable(duration) else duration])
            return arguments
        def stream(*arguments):
            for made in function(*told(arguments)):
                yield pickle.loads(pickle.dumps(made))
        def call(*arguments):
            return pickle.loads(pickle.dumps(function(*told(arguments))))
        return stream if inspect.isgeneratorfunction(function) else call
    return decorate
'''
SPACE = """
import itertools, json, sys
import app
import spaces, torch

def refuse(*_):
    raise RuntimeError("CUDA was touched in the main process")

torch.cuda._lazy_init = refuse
from eagle2.settings import Settings
from eagle2.settings import Sampling, TreeShape
from visual.server import studio as module
from visual.server.conversation import Visit
from visual.words.say import say

_, studio = app.build(app.parse(["--target", sys.argv[1], "--head", sys.argv[2], "--dtype", "float32"]))
studio.start()
engine = studio.engine()
module.WORKER_DEVICE = "cpu"
settings = Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20)
turn = Visit().begin(engine, "one two", "", settings)
begun = len(list(itertools.islice(studio.rounds(turn), 2)))
list(studio.rounds(turn))
found = studio.compare(turn)
plain = engine.plain(turn.prompt_ids, Sampling(), 20)
auto = Settings("eagle2-auto", TreeShape(3, 3, 8), Sampling(), 20)
timed = Visit().begin(studio.engine_for(auto), "one two", "", auto)
list(itertools.islice(studio.rounds(timed), 2))
list(studio.rounds(timed))
again = Visit().begin(studio.engine_for(auto), "two", "", auto)
print(json.dumps({"before": spaces.BEFORE_TORCH, "calls": spaces.CALLS, "begun": begun, "differing": found.differing,
    "same": turn.ids == timed.ids == turn.prompt_ids + plain, "costs": timed.trace().costs == again.costs != None,
     "saved": len(turn.trace().new_ids), "device": engine.pair.device}))
"""


def test_on_zero_gpu_runs_go_through_the_decorated_function_as_plain_data(pair, tmp_path):
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "__init__.py").write_text(SPACES, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SPACE, *pair], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["before"], "spaces must be imported before torch"
    assert [name for name, _ in told["calls"]] == ["_work", "_work", "_check", "_measure", "_work", "_work"]
    assert told["costs"], "they are measured once, in a worker, and kept with the run"
    assert all(0 < seconds <= MOST_SECONDS for _, seconds in told["calls"])
    assert (told["begun"], told["saved"], told["same"], told["differing"]) == (2, 20, True, 0)
    assert told["device"] == "cpu"
