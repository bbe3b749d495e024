"""The loop over scripted models: exact tokens, rounds, stops, caps, the context, pausing, and what is refused.

`counting` says t + 1 follows t; with ten tokens the target's greedy text is 1 2 3 4 5 6 7 8 9 0 1 ... after a 0.
"""

import pytest
from fakes import ScriptedTarget, backwards, committed, counting, hashed, scripted_engine, wavering

from eagle2.analysis import metrics
from eagle2.decoding.engine import Engine
from eagle2.methods import METHODS
from eagle2.settings import Sampling, TreeShape
from eagle2.trace.rules import faults

PROMPT = [5, 0]


def test_an_oracle_chain_of_depth_4_gives_five_tokens_a_pass():
    rounds = list(scripted_engine().rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=11))
    assert [r.committed for r in rounds] == [(1, 2, 3, 4, 5, 6), (7, 8, 9, 0, 1)]
    assert [len(r.accepted) for r in rounds] == [4, 4]
    assert [r.bonus for r in rounds] == [6, 1]
    assert [r.prefix_length for r in rounds] == [2, 7]
    assert [r.root for r in rounds] == [1, 6]
    assert rounds[0].origins == ("prefill", "draft", "draft", "draft", "draft", "bonus")
    assert metrics.tau(rounds) == 5
    assert metrics.accepted_per_round(rounds) == 4


def test_a_draft_that_is_always_wrong_costs_nothing_but_time():
    one = scripted_engine(backwards(10))
    rounds = list(one.rounds(PROMPT, TreeShape(1, 3, 3), max_new_tokens=6))
    assert [r.committed for r in rounds] == [(1, 2), (3,), (4,), (5,), (6,)]
    assert {r.accepted for r in rounds} == {()}
    assert metrics.tau(rounds) == 1
    assert metrics.accepted_per_round(rounds) == 0
    assert one.target.passes == 5


def test_a_draft_that_is_sometimes_right_is_followed_that_far():
    """It errs where the number of tokens so far (the first left out) is divisible by 3: after 1 2, after 4 5."""
    draft = wavering(10, counting(10), backwards(10), every=3)
    rounds = list(scripted_engine(draft).rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=9))
    # Known to the draft: 0 1 -> guesses 2, then errs; 0 1 2 3 -> guesses 4, 5, errs; ...
    assert [r.committed for r in rounds] == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert [len(r.accepted) for r in rounds] == [1, 2, 2]


def test_nodes_tell_what_became_of_them():
    first = next(scripted_engine().rounds(PROMPT, TreeShape(2, 2, 3), max_new_tokens=9))
    assert first.drafted == 6
    assert [n.token for n in first.nodes] == [2, 0, 3, 0, 1, 0]
    assert [n.parent for n in first.nodes] == [-1, -1, 0, 0, 1, 1]
    assert [n.expanded for n in first.nodes] == [True, True, False, False, False, False]
    assert [n.slot for n in first.nodes] == [1, 2, 3, None, None, None]
    assert [n.fate for n in first.nodes] == ["accepted", "rejected", "accepted", "pruned", "pruned", "pruned"]
    assert first.nodes[2].confidence == pytest.approx(0.9)
    assert first.nodes[2].value == pytest.approx(0.81)
    assert first.nodes[2].target_probability == pytest.approx(0.9)
    assert first.nodes[1].target_probability == pytest.approx(0.1 / 9)
    assert first.nodes[3].target_probability is None
    assert first.predicted == pytest.approx(1 + 0.9 + 0.1 / 9 + 0.81)


def test_checks_tell_what_the_target_said_along_the_path():
    first = next(scripted_engine().rounds(PROMPT, TreeShape(2, 2, 3), max_new_tokens=9))
    assert [(c.node, c.drawn, c.child) for c in first.checks] == [(-1, 2, 0), (0, 3, 2), (2, 4, None)]
    assert [c.probability for c in first.checks] == [1.0, 1.0, 1.0]
    assert first.checks[0].top_tokens == (2, 0, 1, 3, 4)
    assert first.checks[0].top_probabilities[0] == pytest.approx(0.9)


@pytest.mark.parametrize("policy", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
def test_every_method_commits_what_plain_decoding_draws_and_keeps_the_rules(policy, temperature):
    one = scripted_engine(hashed(10, 4), hashed(10, 3))
    sampling = Sampling(temperature, top_p=0.9, seed=11)
    # "sps" above temperature 0 by the rule of all others: by its own it has the same distribution as plain decoding
    rounds = list(one.rounds(PROMPT, TreeShape(3, 3, 7), sampling, max_new_tokens=60, policy=policy, rule="walk"))
    assert committed(rounds) == one.plain(PROMPT, sampling, max_new_tokens=60)
    assert [fault for r in rounds for fault in faults(r)] == []
    assert [r.finish for r in rounds] == [None] * (len(rounds) - 1) + ["length"]


@pytest.mark.parametrize("top_k", [1, 2, 10, 50])
@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("max_nodes", [1, 5, 400])
def test_the_text_does_not_depend_on_the_tree(top_k, depth, max_nodes):
    one = scripted_engine(hashed(10, 4), hashed(10, 3))
    sampling = Sampling(1.0, seed=2)
    shape = TreeShape(top_k, depth, max_nodes)
    rounds = list(one.rounds(PROMPT, shape, sampling, max_new_tokens=20))
    assert committed(rounds) == one.plain(PROMPT, sampling, max_new_tokens=20)
    effective = one.policy("eagle2", shape).shape
    assert all(r.kept == effective.max_nodes for r in rounds)
    assert all(max(r.depth) == depth for r in rounds)


def test_plain_decoding_yields_rounds_without_nodes():
    rounds = list(scripted_engine().rounds(PROMPT, max_new_tokens=4, policy="plain"))
    assert [r.committed for r in rounds] == [(1, 2), (3,), (4,)]
    assert [len(r.nodes) for r in rounds] == [0, 0, 0]
    assert [c.drawn for r in rounds for c in r.checks] == [2, 3, 4]


def test_without_a_record_rounds_hold_ids_and_counts_only():
    with_it = list(scripted_engine().rounds(PROMPT, TreeShape(2, 2, 3), max_new_tokens=8))
    without = list(scripted_engine().rounds(PROMPT, TreeShape(2, 2, 3), max_new_tokens=8, record=False))
    assert committed(without) == committed(with_it)
    assert [(r.drafted, r.kept, r.accepted) for r in without] == [(r.drafted, r.kept, r.accepted) for r in with_it]
    assert all(not r.nodes and not r.checks for r in without)
    assert [fault for r in without for fault in faults(r)] == []


class TestStopping:
    """A round that draws 2 3 4 5 6, where 4 is an end token."""

    def run(self, cap, **options):
        one = scripted_engine(end_ids=[4])
        rounds = list(one.rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=cap, **options))
        assert committed(rounds) == one.plain(PROMPT, max_new_tokens=cap, **options)
        return rounds

    def test_an_end_token_ends_the_run_and_is_kept(self):
        (r,) = self.run(20)
        assert (r.committed, r.finish) == ((1, 2, 3, 4), "stop")
        assert [n.fate for n in r.nodes] == ["accepted", "accepted", "accepted", "cut"]
        assert r.bonus == 6  # what the pass gave stays on record

    @pytest.mark.parametrize(("cap", "ids", "finish"), [(4, (1, 2, 3, 4), "stop"), (3, (1, 2, 3), "length")])
    def test_stop_comes_before_cap(self, cap, ids, finish):
        (r,) = self.run(cap)
        assert (r.committed, r.finish) == (ids, finish)

    def test_a_run_may_end_with_the_token_of_the_prefill(self):
        one = scripted_engine(end_ids=[1])
        (r,) = one.rounds(PROMPT, max_new_tokens=9)
        assert (r.committed, r.finish, r.bonus, len(r.nodes), r.prefix_length) == ((1,), "stop", None, 0, 2)
        assert one.target.passes == 0
        assert one.plain(PROMPT) == [1]
        assert metrics.tau([r]) is None

    def test_a_cap_of_one_token_needs_no_round_of_verification(self):
        (r,) = self.run(1)
        assert (r.committed, r.finish, r.bonus) == ((1,), "length", None)

    def test_any_of_several_end_tokens_ends_the_run(self):
        assert scripted_engine(end_ids=[8, 3]).plain(PROMPT) == [1, 2, 3]
        assert committed(scripted_engine(end_ids=[8, 3]).rounds(PROMPT)) == [1, 2, 3]

    def test_a_stop_rule_sees_all_new_ids_after_each_one(self):
        seen = []
        list(scripted_engine().rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=4, stop=lambda ids: seen.append(ids)))
        assert seen == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]

    @pytest.mark.parametrize("keep", [0, 1, 2, 3])
    def test_a_stop_rule_says_how_many_ids_stay(self, keep):
        (r,) = self.run(20, stop=lambda ids: keep if ids[-1] == 3 else None)
        assert (r.committed, r.finish) == ((1, 2, 3)[:keep], "stop")
        assert [n.fate for n in r.nodes] == ["accepted" if place < keep - 1 else "cut" for place in range(4)]

    def test_ids_of_earlier_rounds_are_not_taken_back(self):
        rounds = list(
            scripted_engine().rounds(PROMPT, TreeShape(1, 1, 1), stop=lambda ids: 1 if len(ids) == 5 else None)
        )
        assert [r.committed for r in rounds] == [(1, 2, 3), ()]
        assert rounds[-1].finish == "stop"
        assert scripted_engine().plain(PROMPT, stop=lambda ids: 1 if len(ids) == 5 else None) == [1]

    @pytest.mark.parametrize(
        ("keep", "error"), [(9, ValueError), (-1, ValueError), ("2", TypeError), (True, TypeError)]
    )
    def test_a_stop_rule_must_return_a_possible_number(self, keep, error):
        with pytest.raises(error, match="stop rule"):
            list(scripted_engine().rounds(PROMPT, stop=lambda ids: keep))


class TestContext:
    def test_the_context_clips_the_depth_and_ends_the_run_when_it_is_full(self):
        one = scripted_engine(context_limit=10)
        rounds = list(one.rounds(PROMPT, TreeShape(1, 4, 4), max_new_tokens=99))
        assert [r.committed for r in rounds] == [(1, 2, 3, 4, 5, 6), (7, 8)]
        assert [r.drafted for r in rounds] == [4, 1]  # seven of ten places are taken: one node and the bonus fit
        assert rounds[-1].finish == "length"
        assert committed(rounds) == one.plain(PROMPT, max_new_tokens=99)

    def test_with_no_room_for_nodes_the_root_alone_is_verified(self):
        rounds = list(scripted_engine(context_limit=4).rounds(PROMPT, max_new_tokens=99))
        assert [(r.committed, r.drafted, r.bonus) for r in rounds] == [((1, 2), 0, 2)]

    def test_a_prompt_just_under_the_limit_gets_its_one_token(self):
        rounds = list(scripted_engine(context_limit=3).rounds(PROMPT, max_new_tokens=99))
        assert [(r.committed, r.finish) for r in rounds] == [((1,), "length")]

    @pytest.mark.parametrize("length", [3, 4])
    def test_a_prompt_at_or_over_the_limit_is_refused_before_any_pass(self, length):
        one = scripted_engine(context_limit=3)
        with pytest.raises(ValueError, match=f"the prompt has {length} tokens .* holds 3.*shorten it to 2"):
            one.rounds([0] * length)
        assert one.target.fed == []

    def test_the_length_cap_never_changes_the_tree(self):
        first = next(scripted_engine().rounds(PROMPT, TreeShape(2, 4, 9), max_new_tokens=2))
        assert first.drafted == 14
        assert first.committed == (1, 2)

    def test_a_prompt_of_one_token_works(self):
        one = scripted_engine()
        assert committed(one.rounds([3], max_new_tokens=5)) == one.plain([3], max_new_tokens=5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"ids": []}, ValueError, "the prompt is empty"),
        ({"ids": [0, 10]}, ValueError, "id 1 of the prompt is 10; the vocabulary has ids 0 to 9"),
        ({"ids": [-1]}, ValueError, "id 0 of the prompt is -1"),
        ({"ids": [0, 1.0]}, TypeError, "id 1 of the prompt is 1.0; it must be an integer"),
        ({"ids": [True]}, TypeError, "id 0 of the prompt is True"),
        ({"ids": "hello"}, TypeError, "encode text with encode_chat first"),
        ({"ids": 5}, TypeError, "must be a list of token ids, not int"),
        ({"shape": (8, 5, 16)}, TypeError, "shape must be a TreeShape"),
        ({"sampling": 0.7}, TypeError, "sampling must be a Sampling"),
        ({"max_new_tokens": 0}, ValueError, "max_new_tokens is 0; it must be at least 1"),
        ({"max_new_tokens": 2.5}, TypeError, "max_new_tokens must be an integer"),
        ({"ids": [[0, 1]]}, TypeError, r"id 0 of the prompt is \[0, 1\]; it must be an integer"),
        ({"ids": {0, 1}}, TypeError, "must be a list of token ids, not set"),
        ({"policy": None}, TypeError, "policy must be a method's name or a list of paths"),
        ({"policy": [0, 1]}, TypeError, "policy must be a method's name or a list of paths"),
        ({"policy": "eagle9"}, ValueError, "policy 'eagle9' is unknown"),
        ({"stop": "\n"}, TypeError, "stop must be a function"),
        ({"beam": 3}, TypeError, "unexpected keyword argument 'beam'"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(change, error, sentence):
    with pytest.raises(error, match=sentence):
        scripted_engine().rounds(**{"ids": PROMPT, **change})


def test_a_target_alone_can_only_decode_plainly():
    one = Engine(ScriptedTarget(counting(10), 10))
    assert committed(one.rounds(PROMPT, max_new_tokens=3, policy="plain")) == [1, 2, 3]
    with pytest.raises(ValueError, match="policy 'eagle2' needs a draft model and none is loaded"):
        one.rounds(PROMPT)
