"""Which drafters and policies combine, under which name, and what the engine makes of them."""

import pytest
from fakes import ScriptedDrafter, ScriptedTarget, counting, hashed

from eagle2 import methods
from eagle2.decoding.engine import Engine
from eagle2.decoding.policy import make_policy
from eagle2.methods import DRAFTERS, METHODS, POLICIES, STATIC, combine, drafter_of
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files
from eagle2.trace.rounds import Pair
from eagle2.trace.rules import faults

PROMPT = [5, 0, 1, 2, 3, 0, 1, 2]


def engine(head=True, draft_model=True):
    """The head is right, the draft model an arbitrary distribution."""
    made = ScriptedDrafter(hashed(10, 3), 10) if draft_model else None
    drafter = ScriptedDrafter(counting(10), 10) if head else made
    return Engine(ScriptedTarget(counting(10), 10), drafter, draft_model=made)


def committed(rounds):
    return [token for r in rounds for token in r.committed]


def test_every_method_is_a_policy_a_preset_of_a_chain_or_plain():
    assert set(METHODS) == {*POLICIES, "ngram", "sps", "plain"}
    assert [drafter_of(method) for method in ("ngram", "sps", "eagle2", "chain")] == [
        "ngram",
        "draft-model",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("policy", "drafter", "name"),
    [
        ("eagle2", None, ("eagle2", None)),
        ("plain", None, ("plain", None)),
        ("chain", "ngram", ("ngram", None)),
        ("chain", "draft-model", ("sps", None)),
        ("chain", "head", ("chain", "head")),
        ("ngram", "ngram", ("ngram", None)),
        ("sps", "draft-model", ("sps", None)),
        ("eagle2", "draft-model", ("eagle2", "draft-model")),
        ("eagle", "draft-model", ("eagle", "draft-model")),
        ("static", "head", ("static", "head")),
        ("eagle2-no-both", "ngram", ("eagle2-no-both", "ngram")),
    ],
)
def test_one_combination_has_one_name(policy, drafter, name):
    assert combine(policy, drafter) == name
    assert combine(*name) == name


@pytest.mark.parametrize(
    ("policy", "drafter", "sentence"),
    [
        ("magic", None, "policy 'magic' is unknown; choose one of plain, chain"),
        ("eagle2", "oracle", "drafter 'oracle' is unknown; choose one of head, draft-model, ngram"),
        ("plain", "head", "plain decoding drafts nothing, so it takes no drafter"),
        ("sps", "head", "method sps is a chain drafted by draft-model; for one by head choose policy chain"),
        (
            "ngram",
            "draft-model",
            "method ngram is a chain drafted by ngram; for one by draft-model choose policy chain",
        ),
        ("eagle", "ngram", "prompt lookup guesses one continuation, which fills no static tree"),
        ("static", "ngram", "prompt lookup guesses one continuation, which fills no static tree"),
    ],
)
def test_what_cannot_be_combined_is_refused_in_one_sentence(policy, drafter, sentence):
    with pytest.raises(ValueError, match=sentence):
        combine(policy, drafter)
    paths = ((0,),) if policy == STATIC else None
    with pytest.raises(ValueError, match=sentence):
        Settings(policy, paths=paths, drafter=drafter)
    with pytest.raises(ValueError, match=sentence):
        engine().rounds(PROMPT, policy=paths or policy, drafter=drafter)


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_all_others_run_are_exact_and_come_back_from_their_files(policy, drafter, temperature):
    if (policy, drafter) == ("eagle", "ngram"):
        return  # refused above
    one, sampling = engine(), Sampling(temperature, seed=4)
    rounds = list(one.rounds(PROMPT, TreeShape(3, 3, 7), sampling, 30, policy, drafter=drafter, rule="walk"))
    assert committed(rounds) == one.plain(PROMPT, sampling, 30)
    assert [fault for r in rounds for fault in faults(r)] == []
    trace = one.trace(PROMPT, rounds, Settings(policy, TreeShape(3, 3, 7), sampling, 30, drafter=drafter))
    assert trace_files.from_json(trace_files.to_json(trace)) == trace


def test_the_drafter_that_was_named_is_the_one_that_guesses():
    def accepted(**asked):
        return sum(len(r.accepted) for r in engine().rounds(PROMPT, TreeShape(1, 3, 3), None, 30, **asked))

    assert accepted(policy="eagle2", drafter="head") == accepted(policy="eagle2") > 20
    assert accepted(policy="eagle2", drafter="draft-model") == accepted(policy="sps") < 10
    assert accepted(policy="eagle2-no-value", drafter="ngram") == accepted(policy="ngram")


def test_lookup_proposes_one_token_after_each_so_its_tree_is_a_chain():
    assert engine().policy("eagle2", TreeShape(8, 4, 16), "ngram").shape == TreeShape(1, 4, 4)


def test_a_draft_model_that_stands_in_for_a_head_is_no_head():
    one = engine(head=False)
    assert one.drafter_of("eagle2") is one.draft_model
    with pytest.raises(ValueError, match=r"policy 'eagle2' needs a draft model.*give a head"):
        one.rounds(PROMPT, drafter="head")
    with pytest.raises(ValueError, match=r"policy 'eagle2' needs a draft model.*give an independent draft model"):
        engine(draft_model=False).rounds(PROMPT, drafter="draft-model")


def test_costs_are_measured_for_each_drafter():
    one = engine()
    assert one.costs_with("ngram") is one.costs_with("ngram") is not one.costs_with("head")
    assert one.costs is one.costs_with("head")


def test_whose_guesses_a_run_has_is_told_by_its_settings():
    pair = Pair("target", "head", draft_model="small")
    drafts = {(p, d): pair.head_drafts(Settings(p, drafter=d)) for p in POLICIES for d in ("head", "draft-model", None)}
    assert all(head == (drafter != "draft-model") for (_, drafter), head in drafts.items())
    assert not any(pair.head_drafts(Settings(method)) for method in ("plain", "ngram", "sps"))
    assert not Pair("target").head_drafts(Settings())


def test_a_trace_whose_settings_cannot_be_is_refused():
    one = engine()
    rounds = list(one.rounds(PROMPT, max_new_tokens=4))
    text = trace_files.to_json(one.trace(PROMPT, rounds, Settings(max_new_tokens=4)))
    assert '"drafter":null' in text
    with pytest.raises(trace_files.TraceError, match="drafter 'oracle' is unknown"):
        trace_files.from_json(text.replace('"drafter":null', '"drafter":"oracle"'))
    with pytest.raises(trace_files.TraceError, match="policy 'magic' is unknown"):
        trace_files.from_json(text.replace('"policy":"eagle2"', '"policy":"magic"'))


def test_a_new_method_is_one_row(monkeypatch):
    row = methods.Method("wide-first", by_value=False, rerank=False, drafter=methods.LOOKUP)
    monkeypatch.setattr(methods, "METHODS", {**methods.METHODS, row.name: row})
    asked = Settings("wide-first", TreeShape(3, 2, 99))
    assert (asked.method, asked.rule, asked.fixed_paths) == (row, methods.WALK, None)
    policy = make_policy("wide-first", asked.shape, vocabulary=61)
    assert (policy.by_value, policy.rerank, policy.shape) == (
        False,
        False,
        TreeShape(3, 2, 6),
    )  # the 3 best of 2 levels
    assert methods.drafter_of("wide-first") == methods.LOOKUP
