"""Round by round against what the paper's reference implementation drafted, verified and accepted (float32, greedy).

The tiny pair and its recordings are in fixtures/; 417 rounds at three tree sizes. Where a deciding difference of values
or logits is rounding-sized (1e-4) another order would be as right; none of these rounds needs that excuse here.
"""

import json
from pathlib import Path

import pytest

from eagle2.settings import TreeShape

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDINGS = sorted(FIXTURES.glob("tiny-*.json"))


def test_all_recordings_are_here():
    assert [path.stem for path in RECORDINGS] == ["tiny-k1-d4-m4", "tiny-k10-d6-m59", "tiny-k4-d3-m8"]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_round_is_the_reference_s(path, tiny_engine):
    recording = json.loads(path.read_text())
    shape = TreeShape(recording["top_k"], recording["levels"], recording["max_nodes"])
    for run in recording["runs"]:
        wanted = run["output_ids"]
        rounds = list(tiny_engine.rounds(run["prompt_ids"], shape, max_new_tokens=len(wanted)))
        assert [token for r in rounds for token in r.committed] == wanted
        for r, reference in zip(rounds, run["rounds"], strict=False):
            assert r.prefix_length == reference["prefix_length"]
            assert [r.root] + [r.token[node] for node in r.flattened] == reference["tokens"]
            assert [0] + [r.depth[node] for node in r.flattened] == reference["depths"]
            slot_of = {-1: 0} | {node: slot for slot, node in enumerate(r.flattened, start=1)}
            assert [-1] + [slot_of[r.parent[node]] for node in r.flattened] == reference["parents"]
            assert len(r.accepted) == reference["accepted"]
            if "mask" in reference:
                rows = [{0}] + [{0, *(slot_of[i] for i in r.path(node))} for node in r.flattened]
                width = len(rows)
                assert ["".join("01"[column in row] for column in range(width)) for row in rows] == reference["mask"]
