"""Each rule of `trace_rules` broken alone, in a run that is sound otherwise."""

from dataclasses import replace

import pytest
from fixtures_edges import FIRST, SECOND, TRACE, plain_round

from eagle2.trace.files import TraceError, from_json, to_json
from eagle2.trace.rounds import Check, Round
from eagle2.trace.rules import contradictions, faults


def test_a_sound_run_has_no_contradictions():
    assert list(contradictions(TRACE)) == []


def cut(**changed) -> Round:
    """Round 0, cut after its first draft token."""
    fate = ("accepted", "pruned", "cut", "rejected")
    return replace(FIRST, **{"committed": (3, 4), "finish": "stop", "fate": fate} | changed)


NODE_0 = "node 0 was kept and not verified, or verified and not kept"
PLACE = "which its place in the pool does not allow"
WORTH = "is worth more than its parent, or that was never expanded"
ORDER = "is kept out of order or without its parent"
CHECKS = "its checks are not those of its accepted path"

BROKEN_ROUNDS = [
    (replace(FIRST, depth=(1, 1, 2)), "its node columns differ in length"),
    (replace(FIRST, drafted=5), "it counts other nodes than it holds"),
    (replace(FIRST, kept=2), "it counts other nodes than it holds"),
    (Round(1, 5, 8, (), 9, (9,), None, drafted=1, kept=2), "its counts cannot be"),
    (Round(1, 5, 8, (0, 1), 9, (4, 6, 9), None, drafted=4, kept=1), "its counts cannot be"),
    (Round(1, 5, 8, (), None, (), "stop"), "its counts cannot be"),
    (replace(SECOND, accepted=(1,)), "its accepted path leaves the pool"),
    (Round(1, 5, 8, (4,), 9, (4, 9), None, drafted=4, kept=4), "its accepted path leaves the pool"),
    (replace(FIRST, parent=(-1, -1, 2, 0)), f"node 2 has parent 2 and depth 2, {PLACE}"),
    (replace(FIRST, depth=(1, 1, 2, 3)), f"node 3 has parent 0 and depth 3, {PLACE}"),
    (replace(FIRST, parent=(-1, 0, -1, 0), depth=(1, 2, 1, 2)), f"node 2 has parent -1 and depth 1, {PLACE}"),
    (replace(FIRST, value=(0.6, 0.3, 0.7, 0.24)), f"node 2 {WORTH}"),
    (replace(FIRST, expanded=(False,) * 4), f"node 2 {WORTH}"),
    (replace(FIRST, slot=(1, None, 3, 2)), f"node 2 {ORDER}"),
    (replace(FIRST, slot=(2, None, 3, 4)), f"node 0 {ORDER}"),
    (
        replace(FIRST, slot=(None, 1, 2, 3), target_probability=(None, 0.1, 0.8, 0.1)),
        f"node 2 {ORDER}",
    ),
    (replace(FIRST, target_probability=(None, None, 0.8, 0.1)), NODE_0),
    (replace(FIRST, target_probability=(0.7, 0.1, 0.8, 0.1)), NODE_0.replace("0", "1")),
    (replace(FIRST, accepted=(2, 0)), "its accepted nodes are no path from the root"),
    (replace(FIRST, accepted=(0, 1)), "its accepted nodes are no path from the root"),
    (
        replace(FIRST, token=(4, 5, 6, 8), accepted=(0,), fate=("accepted", "pruned", "rejected", "rejected")),
        "its walk stopped above a node that holds the token drawn",
    ),
    (replace(FIRST, fate=("accepted", "rejected", "accepted", "rejected")), "node 1 cannot be rejected"),
    (replace(FIRST, fate=("rejected", "pruned", "accepted", "rejected")), "node 0 cannot be rejected"),
    (replace(FIRST, fate=("accepted", "pruned", "accepted", "accepted")), "node 3 cannot be accepted"),
    (replace(FIRST, fate=("accepted", "pruned", "cut", "rejected")), "node 2 cannot be cut"),
    (cut(fate=FIRST.fate), "node 2 cannot be accepted"),
    (
        replace(FIRST, accepted=(1,), fate=("rejected", "accepted", "rejected", "rejected")),
        "node 1 cannot be accepted",
    ),
    (replace(FIRST, checks=FIRST.checks[:2]), CHECKS),
    (replace(FIRST, checks=(replace(FIRST.checks[0], node=1), *FIRST.checks[1:])), CHECKS),
    (replace(FIRST, checks=(replace(FIRST.checks[0], child=1), *FIRST.checks[1:])), CHECKS),
    (replace(FIRST, checks=(replace(FIRST.checks[0], drawn=5), *FIRST.checks[1:])), CHECKS),
    (plain_round(1, 5, 8, (9,), checks=(Check(7, 9, 0.5, None, (9,), (0.5,)),)), CHECKS),
    (
        replace(SECOND, checks=(replace(SECOND.checks[0], top_tokens=(9,)),)),
        "a check names tokens without probabilities",
    ),
    (replace(FIRST, committed=(3, 4, 6)), "it commits 3 ids where 4 were drawn"),
    (cut(committed=(3, 4, 6, 8, 9), fate=FIRST.fate), "it commits 5 ids where 4 were drawn"),
    (replace(FIRST, committed=(3, 4, 7, 8)), "it commits other ids than it accepted"),
    (replace(FIRST, committed=(2, 4, 6, 8)), "it commits other ids than it accepted"),
    (replace(FIRST, committed=(3, 4, 6, 9)), "it commits other ids than it accepted"),
    (Round(1, 5, 8, (2,), 9, (4, 8), None, drafted=4, kept=4), "it commits other ids than it accepted"),
]


@pytest.mark.parametrize(("broken", "sentence"), BROKEN_ROUNDS)
def test_each_broken_rule_of_a_round_has_its_sentence(broken, sentence):
    assert next(faults(broken)) == sentence


def test_a_cut_round_is_sound():
    assert list(faults(cut())) == []
    assert list(faults(cut(committed=(), fate=("cut", "pruned", "cut", "rejected")))) == []


BROKEN_RUNS = [
    ((FIRST, replace(SECOND, index=2)), "round 1 does not follow from the rounds before it"),
    ((FIRST, replace(SECOND, prefix_length=4)), "round 1 does not follow from the rounds before it"),
    ((FIRST, replace(SECOND, root=6)), "round 1 does not follow from the rounds before it"),
    ((replace(FIRST, prefix_length=1), SECOND), "round 0 does not follow from the rounds before it"),
    ((replace(FIRST, finish="stop"), SECOND), "round 0 ends the run, and yet more rounds follow"),
    ((FIRST, replace(SECOND, kept=0)), "round 1 contradicts itself: it counts other nodes than it holds"),
]


@pytest.mark.parametrize(("rounds", "sentence"), BROKEN_RUNS)
def test_each_broken_rule_between_rounds_has_its_sentence(rounds, sentence):
    assert list(contradictions(replace(TRACE, rounds=rounds))) == [sentence]


def test_a_file_that_contradicts_itself_is_refused_with_that_sentence():
    broken = replace(TRACE, rounds=(FIRST, replace(SECOND, prefix_length=4)))
    with pytest.raises(TraceError, match=r"^round 1 does not follow from the rounds before it$"):
        from_json(to_json(broken))


def test_missing_bytes_of_a_token_are_a_contradiction():
    spelled = {token: name for token, name in TRACE.tokens.items() if token not in (5, 7)}
    assert list(contradictions(replace(TRACE, tokens=spelled))) == ['"tokens" of the trace lacks the bytes of id 5']


@pytest.mark.parametrize("policy", ["eagle2", "eagle", "chain", "ngram"])
def test_a_run_that_drafts_has_an_effective_shape(policy):
    drafting = replace(TRACE, settings=replace(TRACE.settings, policy=policy), effective=None)
    assert list(contradictions(drafting)) == ["only a run with policy 'plain' has no effective shape"]
