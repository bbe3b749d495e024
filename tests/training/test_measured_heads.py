"""Heads are compared by what their rounds brought: tau over all passes, by family, depth and confidence."""

import json
import shutil

import pytest

from eagle2 import embedded
from eagle2.__main__ import main
from eagle2.bench.work import Question
from eagle2.trace import Round
from eagle2.training.measure import report, told


def one_round(index, confidences, accepted, bonus):
    """Children of the root with these confidences and tokens 10, 11, ..., all kept; a walk of one step at most."""
    nodes = len(confidences)
    taken = (accepted,) if accepted is not None else ()
    return Round(
        index=index,
        prefix_length=5,
        root=1,
        accepted=taken,
        bonus=bonus,
        committed=(*((1,) if not index else ()), *(10 + node for node in taken), bonus),
        finish=None,
        drafted=nodes,
        kept=nodes,
        token=tuple(10 + node for node in range(nodes)),
        parent=(-1,) * nodes,
        depth=(1,) * nodes,
        confidence=tuple(confidences),
        value=tuple(confidences),
        expanded=(False,) * nodes,
        slot=tuple(range(1, nodes + 1)),
        target_probability=(0.5,) * nodes,
        fate=tuple("accepted" if node in taken else "rejected" for node in range(nodes)),
    )


def test_a_report_counts_every_pass_the_same():
    runs = [
        [one_round(0, [0.97, 0.01], 0, 7), one_round(1, [0.96, 0.02], 0, 7)],
        [one_round(0, [0.5, 0.3], None, 7)],
    ]
    found = report([Question("1", "maths", ("a",)), Question("2", "chat", ("b",))], runs)
    assert found.tau == pytest.approx(5 / 3)  # 2 + 2 + 1 tokens in three passes, the prefill's not counted
    assert found.by_family == {"maths": 2.0, "chat": 1.0}
    assert found.by_depth == [(3, 2)]
    bins = {low: (count, share) for low, count, share in found.reliability}
    assert bins[0.95] == (2, 1.0)
    assert bins[0.0] == (2, 0.0)
    assert bins[0.4] == (1, 0.0)
    assert bins[0.6] == (0, None)
    lines = list(told("mine", found))
    assert lines[0] == "mine: tau 1.667"
    assert "0.95+ 100.0% of 2" in lines[-1]
    assert "0.6+ none of 0" in lines[-1]


@pytest.mark.model
def test_a_replayed_head_fares_as_it_does_when_it_decodes(tmp_path, capsys):
    path = tmp_path / "questions.jsonl"
    path.write_text(
        json.dumps({"question_id": 1, "category": "lists", "turns": ["Count from one to ten."]}), encoding="utf-8"
    )
    head, same = str(embedded.HEAD), str(tmp_path / "same")
    shutil.copytree(head, same)
    shape = ["--max-nodes", "8", "--top-k", "3", "--depth", "3", "--max-new-tokens", "12"]
    written = tmp_path / "found.json"
    assert (
        main(["measure", "--questions", str(path), "--head", head, "--head", same, *shape, "--json", str(written)]) == 0
    )
    found = json.loads(written.read_text())
    assert list(found) == [head, same]
    assert found[head]["tau"] == found[same]["tau"] > 1
    assert f"{same}: tau {found[same]['tau']:.3f}" in capsys.readouterr().out
