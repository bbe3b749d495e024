"""Questions: our own, Spec-Bench's layout, every N-th of them."""

import json

import pytest

from eagle2.bench import work
from eagle2.bench.work import FAMILIES, Question


def lines(tmp_path, *bodies):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(body if isinstance(body, str) else json.dumps(body) for body in bodies), "utf-8")
    return path


def test_our_own_are_six_families_of_at_least_eight():
    own = work.own()
    assert list(dict.fromkeys(question.family for question in own)) == list(FAMILIES)
    assert all(sum(question.family == family for question in own) >= 8 for family in FAMILIES)
    assert len({question.id for question in own}) == len({question.turns for question in own}) == len(own)
    assert all(turn.strip() == turn for question in own for turn in question.turns)


def test_spec_bench_s_layout_is_read_and_mt_bench_is_one_family(tmp_path):
    path = lines(
        tmp_path,
        {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]},
        "",
        {"question_id": 161, "category": "translation", "turns": ["Translate."], "reference": ["..."]},
        {"question_id": 82, "category": "math", "turns": ["Add."]},
    )
    assert work.read(path) == [
        Question("81", "mt-bench", ("Write.", "Rewrite.")),
        Question("161", "translation", ("Translate.",)),
        Question("82", "mt-bench", ("Add.",)),
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2 of .* is no JSON"),
        ("[]", "line 2 of .* is no question"),
        ({"question_id": 1, "category": "a"}, "line 2 of .* is no question"),
        ({"question_id": 1, "category": "a", "turns": []}, "line 2 of .* is no question"),
        ({"question_id": 1, "category": 5, "turns": ["x"]}, "line 2 of .* is no question"),
        ({"question_id": 1, "category": "a", "turns": ["x", " "]}, "line 2 of .* has a turn that is no text"),
        ({"question_id": 0, "category": "a", "turns": ["x"]}, "has question_id 0 more than once"),
    ],
)
def test_a_line_that_is_no_question_is_named(tmp_path, line, sentence):
    with pytest.raises(ValueError, match=sentence):
        work.read(lines(tmp_path, {"question_id": 0, "category": "a", "turns": ["x"]}, line))


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no question"):
        work.read(lines(tmp_path, ""))


def test_every_nth_question_is_counted_within_its_family():
    made = [Question(f"{family}{i}", family, ("?",)) for i in range(5) for family in "ab"]
    assert [question.id for question in work.every(made, 2)] == ["a0", "b0", "a2", "b2", "a4", "b4"]
    assert work.every(made, 1) == made
    assert [question.id for question in work.every(made, 99)] == ["a0", "b0"]
    with pytest.raises(ValueError, match="--every is 0"):
        work.every(made, 0)


def test_one_each_takes_first_turns_of_first_questions():
    made = [Question("1", "a", ("x", "y")), Question("2", "a", ("z",)), Question("3", "b", ("w",))]
    assert work.one_each(made) == [Question("1", "a", ("x",)), Question("3", "b", ("w",))]
