"""Files that are no sound trace: each refused in one sentence that names what is wrong."""

import json
from dataclasses import replace

import pytest
from fixtures_edges import TRACE, refusal, written
from hypothesis import given, settings
from hypothesis import strategies as st

from eagle2.settings import TreeShape
from eagle2.trace.files import MAX_CONTAINERS, MAX_TOKEN_BYTES, TraceError, from_json, to_json

WRONG_TYPES = [
    (("prompt_ids",), None, '"prompt_ids" of the trace must be a list, not null'),
    (("prompt_ids", 0), -1, 'each entry of "prompt_ids" of the trace must be a token id, not -1'),
    (("messages", 0), ["user"], 'each entry of "messages" of the trace must be a [role, text] pair, not a list'),
    (("tokens",), [], '"tokens" of the trace must be an object, not a list'),
    (("tokens", "5"), "xx", '"tokens" of the trace must map ids to hexadecimal bytes'),
    (("tokens", "5"), 7, '"tokens" of the trace must map ids to hexadecimal bytes'),
    (("tokens", "05"), "00", '"tokens" of the trace must map ids to hexadecimal bytes, each id a plain count'),
    (("tokens", "-1"), "00", '"tokens" of the trace must map ids to hexadecimal bytes, each id a plain count'),
    (("tokens", "six"), "00", '"tokens" of the trace must map ids to hexadecimal bytes'),
    (("settings",), None, '"settings" of the trace must be an object, not null'),
    (("settings", "policy"), 3, '"policy" of "settings" must be a name, not 3'),
    (("settings", "paths"), [[0], ["x"]], '"paths" of "settings" must be lists of child ranks'),
    (("settings", "paths"), [[0]], "\"settings\" of the trace: a tree of one's own is policy 'static' with paths"),
    (("settings", "max_new_tokens"), -1, '"max_new_tokens" of "settings" must be a count, not -1'),
    (("settings", "shape", "depth"), 0, '"shape" of the trace: depth is 0; it must be at least 1'),
    (("settings", "sampling", "top_p"), 2, '"sampling" of the trace: top_p is 2; it must be above 0'),
    (("settings", "sampling", "seed"), "x", '"sampling" of the trace: seed must be an integer'),
    (("effective",), 3, '"effective" of the trace must be an object or null, not 3'),
    (("pair", "target"), None, '"target" of "pair" must be a text, not null'),
    (("pair", "head"), 1, '"head" of "pair" must be a text or null, not 1'),
    (("pair", "draft_vocabulary"), 0, '"draft_vocabulary" of "pair" must be a size or null, not 0'),
    (("pair", "vocabulary"), "big", '"vocabulary" of "pair" must be a size or null, not "big"'),
    (("pair", "draft_vocabulary"), 5, '"pair" of the trace has 5 draft tokens of none'),
    (("rounds",), {}, '"rounds" of the trace must be a list, not an object'),
    (("rounds", 1), [], "round 1 is not a JSON object"),
    (("rounds", 0, "index"), 1, '"index" of round 0 must be 0, not 1'),
    (("rounds", 0, "root"), 1.5, '"root" of round 0 must be a token id, not 1.5'),
    (("rounds", 0, "bonus"), "8", '"bonus" of round 0 must be a token id or null, not "8"'),
    (("rounds", 0, "finish"), "done", '"finish" of round 0 must be "stop", "length" or null, not "done"'),
    (("rounds", 0, "parent", 0), -1.0, 'each entry of "parent" of round 0 must be a node or -1, not -1.0'),
    (("rounds", 0, "parent", 0), -2, 'each entry of "parent" of round 0 must be a node or -1, not -2'),
    (("rounds", 0, "confidence", 1), 1.1, 'each entry of "confidence" of round 0 must be a probability, not 1.1'),
    (("rounds", 0, "value", 1), True, 'each entry of "value" of round 0 must be a probability, not true'),
    (("rounds", 0, "expanded", 1), 0, 'each entry of "expanded" of round 0 must be true or false, not 0'),
    (("rounds", 0, "fate", 1), [], 'each entry of "fate" of round 0 must be one of accepted, cut'),
    (("rounds", 0, "verify_ms"), -1, '"verify_ms" of round 0 must be a duration, not -1'),
    (("rounds", 0, "checks", 1), "x", "a check of round 0 is not a JSON object"),
    (("rounds", 0, "checks", 1, "child"), -1, '"child" of a check of round 0 must be a node or null, not -1'),
    (("rounds", 0, "checks", 1, "probability"), 2, '"probability" of a check of round 0 must be a probability, not 2'),
    (("messages", 0), "x" * 999, 'each entry of "messages" of the trace must be a [role, text] pair, not "xxx'),
    (
        ("messages", 0, 1),
        "half \ud83d",
        'each entry of "messages" of the trace must be a [role, text] pair, not a list',
    ),
    (("pair", "target"), "\udc00", r'"target" of "pair" must be a text, not "\udc00"'),
    (("pair", "head"), "a \udfff", r'"head" of "pair" must be a text or null, not "a \udfff"'),
    (("settings", "policy"), "\ud800", r'"policy" of "settings" must be a name, not "\ud800"'),
]


def place(body: object, path: tuple) -> object:
    for step in path:
        body = body[step]
    return body


@pytest.mark.parametrize(
    ("path", "value", "sentence"), WRONG_TYPES, ids=lambda v: ".".join(map(str, v)) if isinstance(v, tuple) else None
)
def test_a_member_of_a_wrong_type_is_named(path, value, sentence):
    body = written()
    place(body, path[:-1])[path[-1]] = value
    assert refusal(body).startswith(sentence)


OBJECTS = [
    ((), "the trace"),
    (("settings",), '"settings"'),
    (("settings", "shape"), '"shape"'),
    (("settings", "sampling"), '"sampling"'),
    (("effective",), '"effective"'),
    (("pair",), '"pair"'),
    (("rounds", 0), "round 0"),
    (("rounds", 0, "checks", 0), "a check of round 0"),
]


OPTIONAL = ("vocabulary", "draft_vocabulary", "draft_model", "head_positions", "costs", "drafter", "rule", "chance")
"""What older files lack."""


@pytest.mark.parametrize(("path", "where"), OBJECTS)
def test_unknown_members_are_named(path, where):
    body = written()
    place(body, path)["extra"] = 1
    assert refusal(body) == f'{where} has unknown members: "extra"'


@pytest.mark.parametrize(("path", "where"), OBJECTS)
def test_missing_members_are_named(path, where):
    for key in place(written(), path):
        if key in ("format", "version", *OPTIONAL):
            continue  # the first two have sentences of their own
        body = written()
        del place(body, path)[key]
        assert refusal(body) == f'{where} lacks "{key}"'


def test_a_missing_token_spelling_is_named():
    body = written()
    del body["tokens"]["7"]
    assert refusal(body) == '"tokens" of the trace lacks the bytes of id 7'


@pytest.mark.parametrize("size", [MAX_TOKEN_BYTES + 1, 4 * 2**20])
def test_a_token_longer_than_any_tokenizers_is_refused(size):
    body = written()
    body["tokens"]["7"] = "20" * size
    assert refusal(body) == f"token 7 of the trace has {size} bytes; at most {MAX_TOKEN_BYTES} are read"
    body["tokens"]["7"] = "20" * MAX_TOKEN_BYTES
    assert len(from_json(json.dumps(body)).tokens[7]) == MAX_TOKEN_BYTES


def test_a_file_of_lists_alone_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr("eagle2.trace.files.json.loads", lambda *_, **__: pytest.fail("it was parsed"))
    for text in ("[" + "[],{}," * MAX_CONTAINERS + "[]]", b"[" * (MAX_CONTAINERS + 1)):
        with pytest.raises(TraceError, match=f"lists and objects; at most {MAX_CONTAINERS} are read"):
            from_json(text)


def test_lists_within_lists_without_end_are_no_trace():
    with pytest.raises(TraceError, match="this is no JSON file that a trace could be in"):
        from_json("[" * 100_000)


def test_of_many_unknown_members_three_are_named():
    body = written()
    body |= {f"extra{number}": 1 for number in range(1000)}
    assert refusal(body) == 'the trace has unknown members: "extra0", "extra1", "extra10", …'


LARGEST = TreeShape(top_k=2, depth=2, max_nodes=3)
"""The shape of round 0 of the run made by hand: two children each, two levels, three kept; a pool of 2 + 2 x 2."""


def flat(children: int) -> dict:
    """Columns of a pool in which the root alone has children."""
    return {"parent": [-1] * children, "depth": [1] * children, "token": list(range(children))}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (flat(1600), "round 0 has 1600 drafted nodes; at most 6 are read"),
        (flat(4), "round 0 has 4 children of one node; at most 2 are read"),
        ({"depth": [1, 1, 2, 1600]}, "round 0 has 1600 levels; at most 2 are read"),
        ({"depth": [1, 1, 2, 10**4000]}, "round 0 has more than 10^18 levels; at most 2 are read"),
        ({"slot": [1, 2, 3, 4]}, "round 0 has 4 kept nodes; at most 3 are read"),
    ],
)
def test_a_tree_larger_than_the_reader_allows_is_refused_before_its_rules_are_checked(change, sentence, monkeypatch):
    monkeypatch.setattr("eagle2.trace.files.contradictions", lambda _: pytest.fail("its rules were checked"))
    text = to_json(replace(TRACE, rounds=(replace(TRACE.rounds[0], **change),)))
    with pytest.raises(TraceError) as caught:
        from_json(text, most=LARGEST)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("grow", "sentence"),
    [
        (lambda r: replace(r, checks=r.checks * 2), "round 0 has 6 checks; at most 3 are read"),
        (
            lambda r: replace(r, checks=(replace(r.checks[0], top_tokens=(4,) * 65),)),
            "round 0 has 65 likeliest tokens in one check; at most 64 are read",
        ),
    ],
)
def test_more_checks_or_likeliest_tokens_than_a_tree_has_are_refused(grow, sentence):
    with pytest.raises(TraceError) as caught:
        from_json(to_json(replace(TRACE, rounds=(grow(TRACE.rounds[0]),))), most=LARGEST)
    assert str(caught.value) == sentence


def test_a_tree_as_large_as_the_reader_allows_is_read():
    assert from_json(to_json(TRACE), most=LARGEST) == TRACE


def mutable_places(body: object, path: tuple = ()) -> list[tuple]:
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    return [found for key, value in inner for found in [(*path, key), *mutable_places(value, (*path, key))]]


GARBAGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 12)
    | st.floats()
    | st.text(max_size=5)
    | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(where=st.sampled_from(mutable_places(written())), garbage=GARBAGE, drop=st.booleans())
def test_garbage_anywhere_is_a_trace_error_or_reads_as_a_sound_trace(where, garbage, drop):
    body = written()
    holder = place(body, where[:-1])
    if drop:
        del holder[where[-1]]
    else:
        holder[where[-1]] = garbage
    try:
        trace = from_json(json.dumps(body))
    except TraceError:
        return
    assert from_json(to_json(trace)) == trace
