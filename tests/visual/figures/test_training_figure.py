"""A training log as a figure: smoothed cross-entropy above, held-out agreement below, by draft step."""

import json

import pytest

from visual import figures


def write(tmp_path, *entries):
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps(entry) for entry in entries), encoding="utf-8")
    return log


def test_one_line_a_draft_step_over_the_tokens_seen(tmp_path):
    log = write(
        tmp_path,
        {"step": 1, "tokens": 100, "share": 0.1, "loss": [4.0]},
        {"step": 2, "tokens": 200, "share": 0.2, "loss": [3.0]},
        {"step": 2, "tokens": 200, "held_out": [0.5, 0.4]},
        {"step": 3, "tokens": 300, "share": 0.3, "loss": [3.0, 3.5]},
        {"step": 3, "tokens": 300, "held_out": [0.6, 0.5]},
    )
    figure = figures.training(log)
    first, second, *agreement = figure.data
    assert list(first.x) == [100, 200, 300]
    assert list(first.y) == pytest.approx([4.0, 3.97, 3.9409])  # 0.97 of the last, 0.03 of the new
    assert (list(second.x), list(second.y)) == ([300], [3.5])
    assert [list(line.x) for line in agreement] == [[200, 300]] * 2
    assert [list(line.y) for line in agreement] == [[0.5, 0.6], [0.4, 0.5]]
    assert [line.name for line in agreement] == ["draft step 1", "draft step 2"]


@pytest.mark.parametrize("text", ["", "no log", '{"step": 1}', '{"loss": [1], "tokens": null}'])
def test_another_file_is_refused(tmp_path, text):
    log = tmp_path / "log.jsonl"
    log.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"log\.jsonl"):
        figures.training(log)
