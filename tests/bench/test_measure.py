"""The procedure on tiny models: who answers when, what is counted, what is checked, what is taken up again."""

import pytest
import tiny
import torch
from fakes import ScriptedDrafter, ScriptedTarget, counting, hashed

from eagle2.bench.measure import compare, count, measure, order, run_trial, timed
from eagle2.bench.plan import Method, Plan
from eagle2.bench.records import Trial
from eagle2.bench.work import Question
from eagle2.decoding.engine import Engine
from eagle2.settings import Sampling, TreeShape

PROMPT = [3, 14, 15, 9, 2, 6]
QUESTIONS = [Question("1", "a", ("12", "3")), Question("2", "b", ("45",))]


class Digits:
    """A tokenizer of ten digits."""

    chat_template = None

    def __call__(self, text, add_special_tokens=True):
        return {"input_ids": [int(char) for char in text if char.isdigit()]}


def scripted():
    return Engine(ScriptedTarget(hashed(10, 3), 10), ScriptedDrafter(hashed(10, 4), 10), Digits())


def plan(*labels, **more):
    return Plan(tuple(map(Method.of, labels)), **{"shape": TreeShape(2, 3, 5), "max_new_tokens": 12, **more})


@pytest.fixture(scope="module")
def tiny_pair():
    return tiny.random_engine(tiny.FAMILIES["llama"])


def test_every_method_begins_once_in_as_many_trials_as_there_are_methods():
    methods = list(map(Method.of, ("plain", "eagle", "eagle2")))
    assert [[m.label for m in order(methods, shift)] for shift in range(4)] == [
        ["plain", "eagle", "eagle2"],
        ["eagle", "eagle2", "plain"],
        ["eagle2", "plain", "eagle"],
        ["plain", "eagle", "eagle2"],
    ]


def test_all_trials_are_measured_question_by_question():
    asked = plan("plain", "eagle", "ngram", repeats=2)
    found = list(measure(scripted(), asked, QUESTIONS))
    assert len(found) == count(asked, QUESTIONS) == 3 * 2 * 2
    assert [m[0].trial for m in found][:5] == [
        Trial("1", "a", 0, 0.0, 0),
        Trial("1", "a", 0, 0.0, 1),
        Trial("1", "a", 1, 0.0, 0),
        Trial("1", "a", 1, 0.0, 1),
        Trial("1", "a", 0, 1.0, 0),
    ]
    assert all([m.method for m in trial] == ["plain", "eagle", "ngram"] for trial in found)
    assert all(m.lossless and m.near_ties == 0 for trial in found for m in trial)
    assert all(m.timed.ids == trial[0].timed.ids for trial in found for m in trial)


def test_a_second_turn_follows_plain_decoding_s_answer_to_the_first():
    one = scripted()
    first, second = measure(one, plan("plain", "eagle", temperatures=(0.0,)), QUESTIONS[:1])
    expected = one.plain([1, 2, *first[0].timed.ids, 3], max_new_tokens=12)
    assert list(second[0].timed.ids) == expected


def test_trials_that_are_done_are_handed_on_and_not_run_again():
    asked = plan("plain", "eagle")
    whole = list(measure(scripted(), asked, QUESTIONS))
    done = [m for trial in whole[:4] for m in trial]
    one = scripted()
    resumed = list(measure(one, asked, QUESTIONS, done))
    assert resumed[:4] == whole[:4]
    ids = [[m.timed.ids for m in trial] for trial in resumed]
    assert ids == [[m.timed.ids for m in trial] for trial in whole]
    idle = scripted()
    assert list(measure(idle, asked, QUESTIONS, [m for trial in whole for m in trial])) == whole
    assert (idle.target.passes, idle.target.fed) == (0, [])


def test_tokens_are_counted_without_the_prefill_s_and_passes_with_the_bonus():
    one = Engine(ScriptedTarget(counting(10), 10), ScriptedDrafter(counting(10), 10))
    asked = plan("plain", "chain", shape=TreeShape(1, 4, 4))
    plain, chain = (timed(one, m, asked, [5, 0], Sampling(), 11) for m in asked.methods)
    assert plain.ids == chain.ids == (1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1)
    assert (plain.tokens, plain.passes, plain.nodes) == (10, 10, 0)
    assert (chain.tokens, chain.passes, chain.nodes) == (10, 2, 8)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_transformers_own_generate_gives_our_tokens_at_every_temperature(tiny_pair, temperature):
    """Its own loop, cache and masks; above temperature 0 the noise is ours."""
    asked = plan("plain", "transformers", "eagle2")
    found = run_trial(tiny_pair, asked, PROMPT, Trial("1", "a", 0, temperature, 0), shift=1)
    assert [m.method for m in found] == ["plain", "transformers", "eagle2"]
    assert len({m.timed.ids for m in found}) == 1
    assert [(m.timed.tokens, m.timed.passes) for m in found[:2]] == [(11, 11)] * 2


def test_transformers_obeys_the_same_end_tokens_and_context(tiny_pair):
    ids = tiny_pair.plain(PROMPT, max_new_tokens=9)
    tiny_pair.target.end_ids = frozenset([ids[4]])
    try:
        cut = timed(tiny_pair, Method.of("transformers"), plan("plain"), PROMPT, Sampling(), 9)
        assert list(cut.ids) == ids[: ids.index(ids[4]) + 1] == tiny_pair.plain(PROMPT, max_new_tokens=9)
    finally:
        tiny_pair.target.end_ids = frozenset()
    long = [(7 * i) % tiny.VOCAB for i in range(tiny.CONTEXT - 3)]
    whole = timed(tiny_pair, Method.of("transformers"), plan("plain"), long, Sampling(), 9)
    assert list(whole.ids) == tiny_pair.plain(long, max_new_tokens=9)
    assert len(whole.ids) == 3


class TestComparing:
    """The target counts: after 5 0 come 1 2 3 4 5; ties of 0.4 against 0.4 are rounding's to break."""

    def compare(self, ids, script=None, room=5):
        one = Engine(ScriptedTarget(script or counting(10), 10, end_ids=[9]))
        return compare(one, [5, 0], ids, one.plain([5, 0], max_new_tokens=room), Sampling(), room)

    def test_plain_decoding_s_own_text_is_lossless(self):
        assert self.compare([1, 2, 3, 4, 5]) == (True, 0)

    def test_another_token_is_not(self):
        assert self.compare([1, 2, 4, 5, 6]) == (False, 0)

    def test_neither_is_a_text_that_ends_too_early_or_too_late(self):
        assert self.compare([1, 2, 3]) == (False, 0)
        assert self.compare([1, 2, 3, 4, 5, 6, 7, 8, 9, 0], room=10) == (False, 0)

    def test_what_rounding_decides_is_counted_and_forgiven(self):
        nearly = [0.0] * 6 + [0.40001, 0.4, 0.19999, 0.0]
        assert self.compare([7, 6], lambda _: [p + 1e-9 for p in nearly], room=2) == (True, 1)


def test_at_half_precision_another_text_within_rounding_is_no_fault():
    """Teacher-forced: every token of the tree's own text is scored where plain decoding would have drawn it."""
    torch.manual_seed(0)
    one = tiny.random_engine(tiny.FAMILIES["llama"])
    one.target.model.to(torch.bfloat16)
    one.drafter.head.to(torch.bfloat16)
    for shift in range(2):
        trial = Trial("1", "a", 0, float(shift), 0)
        assert all(m.lossless for m in run_trial(one, plan("plain", "eagle", "eagle2"), PROMPT, trial, shift))
