"""Heads are compared by what their rounds brought: tau over all passes, by family, depth and confidence."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_chats import ANSWER

import eagle2
from eagle2.__main__ import main
from eagle2.analysis import metrics
from eagle2.loading import bundled_pair
from eagle2.loading.head_files import load_head
from eagle2.settings import TreeShape
from eagle2.trace.rounds import Round
from eagle2.training.corpus import answers, held_out
from eagle2.training.data import Chats
from eagle2.training.evaluate import held_out_chats, report, told

PAIR = Path(__file__).parents[1] / "fixtures" / "tiny-pair"


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
    found = report(["maths", "chat"], runs)
    assert found.tau == pytest.approx(5 / 3)  # 2 + 2 + 1 tokens in three passes, the prefill's not counted
    assert found.by_family == {"maths": 2.0, "chat": 1.0}
    assert found.by_depth == [(3, 2)]
    bins = {low: (count, share) for low, count, share, _ in found.reliability}
    assert bins[0.95] == (2, 1.0)
    assert bins[0.0] == (2, 0.0)
    assert bins[0.4] == (1, 0.0)
    assert bins[0.6] == (0, None)
    lines = list(told("mine", found))
    assert lines[0] == "mine: tau 1.667"
    assert "0.95+ 100.0% of 2" in lines[-2]
    assert "0.6+ none of 0" in lines[-2]
    means = {low: mean for low, _, _, mean in found.reliability}
    assert (means[0.95], means[0.6]) == (pytest.approx(0.965), None)
    # Six children: 2 x |.965 - 1|, 2 x |.015 - 0|, |.5 - 0| and |.3 - 0|.
    assert found.calibration_error == pytest.approx(0.9 / 6)
    assert "0.150 apart" in lines[-1]


class TestHeldOutChats:
    def test_they_are_those_that_training_holds_out_to_the_end_of_their_first_answer(self, target, chats, monkeypatch):
        held = [ids for ids in chats if held_out(ids[:ANSWER])]
        end = int(held[0][ANSWER + 3])
        monkeypatch.setattr(target, "end_ids", frozenset({end}))
        families, found = held_out_chats(target, chats, every=1)
        assert len(found) == len(held) > 1
        assert set(families) <= {"temperature 0", "temperature 0.7"}
        ids, features, start = found[0]
        length = ANSWER + held[0][ANSWER:].tolist().index(end) + 1
        assert (ids.tolist(), start) == (held[0][:length].tolist(), ANSWER)
        expected, _ = target.extend(target.begin(), ids.tolist())
        assert np.allclose(features, expected.numpy(), atol=1e-4)
        assert len(held_out_chats(target, chats, every=2)[1]) == (len(held) + 1) // 2

    def test_that_there_are_none_is_said(self, target, chats):
        kept = [i for i, ids in enumerate(chats) if not held_out(ids[:ANSWER])][:1]
        one = Chats(
            list(chats)[kept[0]], *(part[kept] for part in (chats.length, chats.answer_start, chats.temperature))
        )
        with pytest.raises(ValueError, match="none of these 1 chats is held out"):
            held_out_chats(target, one, every=1)

    def test_the_command_measures_on_them(self, chats, tmp_path, capsys):
        np.savez(tmp_path / "chats-00000.npz", **vars(chats))
        pair = ["--target", str(PAIR / "target"), "--head", str(PAIR / "head"), "--device", "cpu"]
        shape = ["--max-nodes", "8", "--top-k", "3", "--depth", "3"]
        assert main(["measure", "--data", str(tmp_path), *pair, *shape]) == 0
        said = capsys.readouterr().out
        assert f"{PAIR / 'head'}: tau " in said
        assert "temperature 0.7 " in said


class TestCut:
    def test_a_head_proposes_the_most_frequent_tokens_of_the_answers_and_guesses_as_before(
        self, chats, tmp_path, capsys
    ):
        np.savez(tmp_path / "chats-00000.npz", **vars(chats))
        given = ["--target", str(PAIR / "target"), "--head", str(PAIR / "head"), "--data", str(tmp_path)]
        asked = ["cut", *given, "--vocabulary", "20", "--out", str(tmp_path / "cut")]
        assert main(asked) == 0
        head, before = load_head(tmp_path / "cut", 64, 256), load_head(PAIR / "head", 64, 256)
        counts = np.bincount(answers(chats), minlength=256)
        assert sorted(counts[head.draft_ids])[0] >= sorted(np.delete(counts, head.draft_ids))[-1]
        for name, weight in before.named_parameters():
            assert torch.allclose(head.get_parameter(name), weight, atol=2e-3)
        share = counts[head.draft_ids].sum() / counts.sum()
        assert f"20 of 256 tokens, {share:.2%} of the answers' text" in capsys.readouterr().out
        assert main(asked) == 2
        assert "holds a head already" in capsys.readouterr().err

    def test_a_vocabulary_larger_than_the_target_s_is_refused(self, chats, tmp_path, capsys):
        np.savez(tmp_path / "chats-00000.npz", **vars(chats))
        given = ["--target", str(PAIR / "target"), "--head", str(PAIR / "head"), "--data", str(tmp_path)]
        assert main(["cut", *given, "--vocabulary", "257", "--out", str(tmp_path / "cut")]) == 2
        assert "vocabulary of 257 tokens was asked for" in capsys.readouterr().err
        assert not (tmp_path / "cut").exists()


@pytest.mark.model
def test_a_replayed_head_fares_as_it_does_when_it_decodes(tmp_path, capsys):
    path = tmp_path / "questions.jsonl"
    path.write_text(
        json.dumps({"question_id": 1, "category": "lists", "turns": ["Count from one to ten."]}), encoding="utf-8"
    )
    head, same = str(bundled_pair.HEAD), str(tmp_path / "same")
    shutil.copytree(head, same)
    shape = ["--max-nodes", "8", "--top-k", "3", "--depth", "3", "--max-new-tokens", "12"]
    written = tmp_path / "found.json"
    assert (
        main(["measure", "--questions", str(path), "--head", head, "--head", same, *shape, "--json", str(written)]) == 0
    )
    found = json.loads(written.read_text())
    assert list(found) == [head, same]
    assert found[head]["tau"] == found[same]["tau"] > 1
    engine = eagle2.load()
    prompt = engine.encode_chat([{"role": "user", "content": "Count from one to ten."}])
    rounds = list(engine.rounds(prompt, TreeShape(3, 3, 8), max_new_tokens=12))
    # The end of the text is known in a replay and not in decoding, so the last tree can be a level deeper there.
    assert found[head]["tau"] == pytest.approx(metrics.tau(rounds), abs=0.5)
    assert f"{same}: tau {found[same]['tau']:.3f}" in capsys.readouterr().out
