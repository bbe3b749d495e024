"""Pairs fetched over HTTP from a hub on this machine, in a process of their own: revisions, progress, giving up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_hub import REVISION, serving_hub

ROOT = Path(__file__).parents[2]
PAIR = ROOT / "tests" / "fixtures" / "tiny-pair"
PROGRAM = """
import json, sys
import eagle2
from eagle2.progress import Cancelled

told, most = [], int(sys.argv[1])

def watch(step, done, of):
    told.append((step, done, of))
    if step == "download" and len(told) > most:
        raise Cancelled

try:
    engine = eagle2.load(sys.argv[2], sys.argv[3], "cpu", watch=watch)
except Cancelled:
    print(json.dumps({"cancelled": True, "told": told}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
else:
    pair = engine.pair
    print(json.dumps({"told": told, "revisions": [pair.target_revision, pair.head_revision], "target": pair.target}))
"""


@pytest.fixture
def hub():
    with serving_hub() as made:
        made.folders = {"somebody/target": PAIR / "target", "somebody/head": PAIR / "head"}
        yield made


def load(hub, home, *asked: object) -> dict:
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}
    command = [sys.executable, "-c", PROGRAM, *map(str, asked)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_fetched_pair_says_its_revisions_and_the_fetching_is_watched(hub, tmp_path):
    found = load(hub, tmp_path, 10**6, "somebody/target", "somebody/head")
    assert found["target"] == "somebody/target"
    assert found["revisions"] == [REVISION, REVISION]
    steps = [step for step, _, _ in found["told"]]
    assert steps == sorted(steps, key=("download", "weights", "products").index)
    weights = PAIR / "target" / "model.safetensors"
    assert ["download", weights.stat().st_size, weights.stat().st_size] in found["told"]


def test_fetching_can_be_given_up_and_gone_on_with_later(hub, tmp_path):
    given_up = load(hub, tmp_path, 0, "somebody/target", "somebody/head")
    assert given_up["cancelled"]
    assert load(hub, tmp_path, 10**6, "somebody/target", "somebody/head")["revisions"] == [REVISION, REVISION]


def test_a_target_that_the_hub_refuses_is_explained(hub, tmp_path):
    hub.refusals["somebody/target"] = 403, "GatedRepo"
    told = load(hub, tmp_path, 10**6, "somebody/target", "somebody/head")["error"]
    assert "403: it is gated, and your account has no access yet" in told
