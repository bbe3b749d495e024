"""Static trees as text and as files: what is read, what is refused in a sentence, and that nothing gets lost."""

import json
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle2 import tree_paths
from eagle2.methods import EAGLE_PATHS
from eagle2.settings import TreeShape
from eagle2.tree_paths import MOST_CHARACTERS, PathsError, checked, load, ordered, parse, to_json, to_text

ranks = st.integers(0, 5)
loose = st.lists(st.lists(ranks, min_size=1, max_size=5).map(tuple), min_size=1, max_size=12)
trees = loose.map(lambda paths: {path[:n] for path in paths for n in range(1, len(path) + 1)})
"""Any paths with all of their ancestors."""

SMALL = ((0,), (1,), (0, 0), (0, 1), (0, 0, 0))


@pytest.mark.parametrize(
    "text",
    [
        "[0], [1], [0,0], [0,1], [0,0,0]",
        "[[0],[1],[0,0],[0,1],[0,0,0]]",
        "[(0,), (1,), (0, 0), (0, 1), (0, 0, 0)]",
        "[0]\n[1]\n[0, 0]\n[0, 1]\n[0, 0, 0]\n",
        "[0, 0, 0], [0, 1]; [1] [0], [0, 0],",
        "[[0], [1],\n[0, 0], [0, 1],\n[0, 0, 0],]\n",
    ],
)
def test_brackets_parentheses_breaks_and_any_order_are_read(text):
    assert parse(text) == SMALL


def test_a_tree_is_written_a_level_to_a_line_shallower_first():
    assert to_text(reversed(SMALL)) == "[0], [1],\n[0, 0], [0, 1],\n[0, 0, 0]"
    assert json.loads(to_json(SMALL)) == [[0], [1], [0, 0], [0, 1], [0, 0, 0]]
    assert to_text([(0,)]) == "[0]"
    assert to_text([]) == ""


@given(trees)
def test_text_and_file_give_the_tree_back_and_their_order_is_the_only_one(tree):
    assert parse(to_text(tree)) == parse(to_json(tree)) == checked(tree) == ordered(tree)
    assert to_text(parse(to_text(tree))) == to_text(tree)
    assert set(parse(to_text(tree))) == tree


@given(trees)
def test_every_parent_stands_before_its_children(tree):
    order = ordered(tree)
    assert all(len(path) == 1 or order.index(path[:-1]) < order.index(path) for path in order)
    assert [len(path) for path in order] == sorted(len(path) for path in order)


@given(trees, st.data())
def test_a_tree_without_one_of_its_parents_is_refused_by_that_parents_name(tree, data):
    parents = sorted({path[:-1] for path in tree} - {()})
    if parents:
        lost = data.draw(st.sampled_from(parents))
        with pytest.raises(PathsError, match="has no parent: add") as caught:
            checked(tree - {lost})
        assert json.dumps(list(lost)) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a static tree needs at least one path, as in [0]"),
        ("[]", "a static tree needs at least one path, as in [0]"),
        ("[[]]", "an empty path is the root, which is always there; leave [] out of the static tree"),
        ("[0], []", "an empty path is the root, which is always there; leave [] out of the static tree"),
        ("[0], [0, -1]", "path [0, -1] holds -1; a child rank must be at least 0, the likeliest child"),
        ("[0], [0.5]", "path [0.5] holds 0.5; child ranks are whole numbers from 0, the likeliest child, on"),
        ("[true]", "path [true] holds True; child ranks are whole numbers from 0, the likeliest child, on"),
        ('["a"]', "path [\"a\"] holds 'a'; child ranks are whole numbers from 0, the likeliest child, on"),
        ("[0], [1, 0]", "path [1, 0] has no parent: add [1] to the static tree"),
        ("[0], [1], [0]", "path [0] is given more than once; a static tree holds each path once"),
        ("[0], 1", "“[0], 1” is no list of paths; write each as child ranks in brackets, as in [0], [1], [0, 0]"),
        ("0 1 00", "“0 1 00” is no list of paths; write each as child ranks in brackets, as in [0], [1], [0, 0]"),
        ("[0", "“[0” is no list of paths; write each as child ranks in brackets, as in [0], [1], [0, 0]"),
        ("[0], [4]", "path [4] holds rank 4; with 4 children each, ranks go from 0 to 3"),
        ("[0], [0,0], [0,0,0], [0,0,0,0]", "path [0, 0, 0, 0] is 4 levels deep; at most 3 are allowed"),
        ("[0],[1],[2],[3],[0,0],[0,1]", "the static tree has 6 nodes; at most 5 are allowed"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(PathsError) as caught:
        parse(text, TreeShape(4, 3, 5))
    assert str(caught.value) == sentence


@given(st.text(max_size=60) | st.text("[]()0123,; \n-", max_size=40))
def test_any_text_is_a_tree_or_one_sentence(text):
    try:
        tree = parse(text)
    except PathsError as error:
        said = str(error)
    else:
        said = ""
        assert parse(to_text(tree)) == tree
    assert "\n" not in said
    assert len(said) < 250


def test_a_sentence_repeats_only_the_beginning_of_a_long_text():
    with pytest.raises(PathsError, match="…") as caught:
        parse("x" * 10_000)
    assert len(str(caught.value)) < 200
    with pytest.raises(PathsError) as caught:
        parse("[" * 100_000)
    assert len(str(caught.value)) < 200


def test_a_text_too_long_is_refused_before_it_is_read():
    with pytest.raises(PathsError) as caught:
        parse("[0]" + " " * MOST_CHARACTERS)
    assert (caught.value.kind, caught.value.values["most"]) == ("long", MOST_CHARACTERS)


def test_a_file_too_long_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "tree.json"
    file.write_bytes(b"\xff" * (4 * MOST_CHARACTERS + 1))
    with pytest.raises(PathsError, match="at most 65536 are read"):
        load(file)


def test_no_pattern_meets_a_run_of_blanks_it_could_try_from_each_of_its_places(monkeypatch):
    searched = []

    def spy(pattern, replacement, text):
        searched.append(text)
        return re.sub(pattern, replacement, text)

    monkeypatch.setattr(tree_paths, "re", SimpleNamespace(sub=spy))
    with pytest.raises(PathsError, match=r"“\[0\] x” is no list of paths"):
        parse("[0]" + " " * 1000 + "x")
    assert parse("[0]" + " \n" * 1000 + ";" + " " * 1000 + "[1]" + "\t" * 1000) == ((0,), (1,))
    assert searched
    assert not any("  " in text for text in searched)


class Rank(int):
    """A child rank that counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        Rank.compared += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


def test_a_path_given_twice_is_found_without_comparing_all_paths_with_each_other():
    Rank.compared = 0
    with pytest.raises(PathsError) as caught:
        checked([(Rank(rank),) for rank in [*range(1000), 999]])
    assert (caught.value.kind, caught.value.values["path"]) == ("twice", "[999]")
    assert Rank.compared <= 20 * 1000


def test_a_tree_of_too_many_paths_is_refused_before_its_paths_are_looked_at():
    with pytest.raises(PathsError, match="the static tree has 6 nodes; at most 5 are allowed"):
        checked([("no rank",)] * 6, TreeShape(4, 3, 5))


def test_a_rank_of_many_digits_is_cut_in_its_sentence():
    for text in (f"[-{'9' * 4000}]", f"[{'9' * 4000}]"):
        with pytest.raises(PathsError) as caught:
            parse(text, TreeShape(4, 3, 5))
        assert len(str(caught.value)) < 250


def test_eagles_tree_fits_its_own_shape_and_no_smaller_one():
    assert checked(EAGLE_PATHS, TreeShape.around(EAGLE_PATHS)) == EAGLE_PATHS
    assert TreeShape.around(EAGLE_PATHS) == TreeShape.around(EAGLE_PATHS)
    for smaller in (TreeShape(3, 5, 25), TreeShape(4, 4, 25), TreeShape(4, 5, 24)):
        with pytest.raises(PathsError):
            checked(EAGLE_PATHS, smaller)


def test_files(tmp_path):
    file = tmp_path / "tree.json"
    file.write_text(to_json(SMALL), encoding="utf-8")
    assert load(file) == SMALL
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PathsError, match=r"“tree.json” is no list of paths"):
        load(file)
    with pytest.raises(OSError, match="nothing"):
        load(tmp_path / "nothing.json")
