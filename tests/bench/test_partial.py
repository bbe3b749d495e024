"""What a stopped benchmark leaves behind, and what it takes up again."""

import pytest

from eagle2.bench.partial import Partial
from eagle2.bench.records import Measurement, Timed, Trial

HEADING = {"methods": ["plain", "eagle2"], "temperatures": (0.0, 1.0)}


def trial(question):
    at = Trial(question, "chat", 0, 0.0, 0)
    answer = Timed((1, 2, 3), 2, 1, 9, 1.5, 0.25, 0.5, 0.125)
    return [Measurement(at, "plain", answer, True, 0), Measurement(at, "eagle2", answer, False, 2)]


def test_what_was_added_is_read_back(tmp_path):
    file = Partial(tmp_path / "new" / "folder", HEADING)
    assert file.load() == []
    file.add(trial("1"))
    file.add(trial("2"))
    assert Partial(tmp_path / "new" / "folder", HEADING).load() == [*trial("1"), *trial("2")]


def test_a_line_cut_short_is_forgotten_and_written_again(tmp_path):
    file = Partial(tmp_path, HEADING)
    file.add(trial("1"))
    file.add(trial("2"))
    text = file.path.read_text()
    file.path.write_text(text[:-30])
    assert file.load() == trial("1")
    file.add(trial("2"))
    assert file.path.read_text() == text


def test_measurements_of_other_settings_are_not_mixed(tmp_path):
    Partial(tmp_path, HEADING).add(trial("1"))
    with pytest.raises(ValueError, match="holds measurements of other models or settings; give another folder"):
        Partial(tmp_path, {**HEADING, "temperatures": (0.0,)}).load()


@pytest.mark.parametrize("line", ["no json", '[{"method": "plain"}]', "[7]"])
def test_a_damaged_line_is_named(tmp_path, line):
    file = Partial(tmp_path, HEADING)
    file.path.write_text(file.path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"line 2 of .*measurements\.jsonl is no"):
        file.load()
