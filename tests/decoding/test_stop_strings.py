"""Stop strings over rounds: ids, rounds and text end at the same place, as plain decoding's do.

`counting` says t + 1 follows t, and token t is the letter chr(97 + t): after 3, "d", comes "efghijabc...".
"""

import pytest
from fakes import committed, scripted_engine
from hypothesis import given
from hypothesis import strategies as st

from eagle2.settings import TreeShape
from eagle2.text import stop_strings
from eagle2.trace.rules import faults


class Letters:
    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(97 + token) for token in ids)


PROMPT = [0, 3]


SHAPE = TreeShape(3, 3, 9)


def rounds(*strings, shape=SHAPE, cap=30):
    return list(scripted_engine().rounds(PROMPT, shape, max_new_tokens=cap, stop=stop_strings(Letters(), strings)))


def test_a_stop_string_that_began_in_an_earlier_round_ends_the_text_before_it():
    (only,) = rounds("ij")  # without it the first round commits 4 5 6 7 8, "efghi", and the second begins with "j"
    assert (only.committed, only.finish, only.bonus) == ((4, 5, 6, 7), "stop", 8)
    assert [only.fate[node] for node in only.accepted] == ["accepted", "accepted", "accepted"]
    assert list(faults(only)) == []
    assert scripted_engine().plain(PROMPT, stop=stop_strings(Letters(), ["ij"])) == [4, 5, 6, 7]


def test_a_round_is_held_back_until_what_it_ends_in_is_decided():
    engine = scripted_engine()
    stop = stop_strings(Letters(), ["ix"])
    first = next(engine.rounds(PROMPT, TreeShape(3, 3, 9), stop=stop))
    assert (first.committed, engine.target.passes) == ((4, 5, 6, 7, 8), 2)  # "j" came: it was no stop string
    engine = scripted_engine()
    next(engine.rounds(PROMPT, TreeShape(3, 3, 9), stop=stop_strings(Letters(), ["xx"])))
    assert engine.target.passes == 1


def test_the_cut_can_fall_between_two_rounds_and_into_the_first_ones_nodes():
    assert [(r.committed, r.finish) for r in rounds("jab")] == [((4, 5, 6, 7, 8), None), ((), "stop")]
    (cut,) = rounds("ghij")
    assert (cut.committed, cut.finish) == ((4, 5), "stop")
    assert [cut.fate[node] for node in cut.accepted] == ["accepted", "cut", "cut"]
    assert list(faults(cut)) == []


@pytest.mark.parametrize("text", ["e", "ef", "efghijabc"])
def test_a_stop_string_may_begin_the_text(text):
    (only,) = rounds(text)
    assert (only.committed, only.finish) == ((), "stop")


@given(st.text("efghijabcd", min_size=1, max_size=9), st.integers(1, 4), st.integers(1, 25))
def test_all_rounds_together_are_plain_decodings_text(string, depth, cap):
    made = rounds(string, shape=TreeShape(2, depth, 4), cap=cap)
    wanted = scripted_engine().plain(PROMPT, max_new_tokens=cap, stop=stop_strings(Letters(), [string]))
    assert committed(made) == wanted
    assert made[-1].finish in ("stop", "length")
    assert all(r.finish is None for r in made[:-1])
