"""A hand-made run, worked out on paper, for the tests of traces and metrics. No torch.

Prompt [1, 2]; the prefill draws 3, the root of round 0:

    pool   token  parent  c    V    slot
    0      4      root    0.6  0.6  1     accepted
    1      5      root    0.3  0.3  -     pruned
    2      6      0       0.5  0.3  2     accepted
    3      7      0       0.4  0.24 3     rejected

The target draws 4, then 6, then 8: the bonus. Round 1 hangs under 8, drafts one node, and its token (2) is refused: 9.
"""

import json

import pytest

from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.files import TraceError, from_json, to_json
from eagle2.trace.rounds import Check, Pair, Round, Trace

FIRST = Round(
    index=0,
    prefix_length=2,
    root=3,
    accepted=(0, 2),
    bonus=8,
    committed=(3, 4, 6, 8),
    finish=None,
    drafted=4,
    kept=3,
    token=(4, 5, 6, 7),
    parent=(-1, -1, 0, 0),
    depth=(1, 1, 2, 2),
    confidence=(0.6, 0.3, 0.5, 0.4),
    value=(0.6, 0.3, 0.3, 0.24),
    expanded=(True, False, False, False),
    slot=(1, None, 2, 3),
    target_probability=(0.7, None, 0.8, 0.1),
    fate=("accepted", "pruned", "accepted", "rejected"),
    checks=(
        Check(-1, 4, 0.7, 0, (4, 5), (0.7, 0.2)),
        Check(0, 6, 0.8, 2, (6, 7), (0.8, 0.1)),
        Check(2, 8, 0.9, None, (8, 9), (0.9, 0.05)),
    ),
    prefill_ms=5.0,
    draft_ms=1.0,
    verify_ms=2.0,
    rest_ms=1.0,
)

SECOND = Round(
    index=1,
    prefix_length=5,
    root=8,
    accepted=(),
    bonus=9,
    committed=(9,),
    finish="length",
    drafted=1,
    kept=1,
    token=(2,),
    parent=(-1,),
    depth=(1,),
    confidence=(0.25,),
    value=(0.25,),
    expanded=(False,),
    slot=(1,),
    target_probability=(0.1,),
    fate=("rejected",),
    checks=(Check(-1, 9, 0.6, None, (9, 2), (0.6, 0.1)),),
    draft_ms=1.0,
    verify_ms=3.0,
    rest_ms=2.0,
)

TRACE = Trace(
    prompt_ids=(1, 2),
    settings=Settings("eagle2", TreeShape(2, 2, 3), Sampling(0.7, 0.9, 5, 3), 5),
    effective=TreeShape(2, 2, 3),
    pair=Pair("a target", "a head", "1f2e", None, "cpu", "float32"),
    tokens={token: bytes([0xF0, token]) for token in range(1, 10)},
    rounds=(FIRST, SECOND),
    messages=(("user", "Grüße 😀"),),
)


def plain_round(index: int, prefix_length: int, root: int, committed: tuple[int, ...], **changed) -> Round:
    """A round that drafts nothing: the root is verified alone."""
    return Round(index, prefix_length, root, (), committed[-1], committed, None, verify_ms=4.0, **changed)


def written(trace: Trace = TRACE) -> dict:
    """The trace's JSON, as an object to tamper with."""
    return json.loads(to_json(trace))


def refusal(body: object) -> str:
    with pytest.raises(TraceError) as caught:
        from_json(json.dumps(body))
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 250
    return message
