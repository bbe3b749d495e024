"""States of every phase, worked out by hand on a tiny round."""

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import grown, plain_round, prefill_round, run
from tiny_round import ROUND

from eagle2.trace.rounds import ROOT
from eagle2.trace.rules import contradictions, faults
from visual.figures import theme
from visual.figures.phases import phases


def test_the_rounds_of_these_tests_are_sound():
    for r in (ROUND, plain_round(), prefill_round(), *(grown(seed, 6, 4, 20) for seed in range(5))):
        assert not list(faults(r))
    assert not list(contradictions(run(5)))


def by_name(r):
    return {phase.name: phase for phase in phases(r)}


def test_a_round_goes_from_expansion_to_acceptance():
    assert [p.name for p in phases(ROUND)] == ["expand-1", "expand-2", "rerank", "flatten", "verify", "accept"]


def test_states_of_a_tiny_round():
    p = by_name(ROUND)
    assert p["expand-1"].nodes == "nn----"
    assert p["expand-2"].nodes == "xxnnnn"
    assert p["rerank"].nodes == "kkkkkp"
    assert p["flatten"].nodes == "kkkkkp"
    assert p["verify"].nodes == "vkvkkp"
    assert p["accept"].nodes == "ararrp"


def test_mask_rows_of_a_tiny_round():
    p = by_name(ROUND)
    assert p["rerank"].rows == "------"
    assert p["flatten"].rows == "mmmmmm"
    assert p["verify"].rows == "vvmvmm"
    assert p["accept"].rows == "aamamm"


def test_the_bonus_the_cut_and_the_notes_come_in_their_phase():
    steps = phases(ROUND)
    assert [p.bonus for p in steps] == [False] * 5 + [True]
    assert [p.cut for p in steps] == [False, False, True, True, True, True]
    assert [p.note for p in steps] == ["value", "value", "value", "slot", "target", "value"]
    assert steps[-1].focus == (ROOT, 0, 2)


def test_what_a_stop_dropped_is_told_apart():
    stopped = dataclasses.replace(
        ROUND, committed=(1,), finish="stop", fate=("accepted", "rejected", "cut", *ROUND.fate[3:])
    )
    assert by_name(stopped)["accept"].nodes == "arcrrp"
    assert by_name(stopped)["verify"].nodes == "vkvkkp"


def test_rounds_without_nodes_have_phases_too():
    assert [(p.name, p.nodes, p.rows, p.bonus) for p in phases(plain_round())] == [
        ("verify", "", "v", False),
        ("accept", "", "a", True),
    ]
    assert [p.name for p in phases(prefill_round())] == ["prefill"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_every_phase_speaks_of_every_node_and_row_in_known_letters(seed):
    r = grown(seed, 6, 4, 20)
    for phase in phases(r):
        assert len(phase.nodes) == len(r.token)
        assert len(phase.rows) == 1 + len(r.flattened)
        assert set(phase.nodes) <= set(theme.NODE_STYLES) & (set(theme.BAR_STYLES))
        assert set(phase.rows) <= set(theme.CELL_CODES)
    assert sum(letter != "p" for letter in phases(r)[-1].nodes) == len(r.flattened)


def test_colour_is_never_the_only_difference():
    looks = [(s["symbol"], s["fill"], s["width"]) for s in theme.NODE_STYLES.values()]
    assert len(set(looks)) == len(looks)
    without_hue = {
        letter: (
            style["symbol"],
            style["fill"].endswith("_soft") or style["fill"] in ("panel", "none"),
            style["width"] > 2,
        )
        for letter, style in theme.NODE_STYLES.items()
    }
    assert without_hue["a"] != without_hue["r"]
    assert without_hue["x"] != without_hue["n"]
    assert without_hue["k"] != without_hue["p"]
    assert without_hue["v"] != without_hue["k"]
    assert without_hue["c"] != without_hue["a"]


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_and_shapes_stand_out_in_light_and_dark():
    for palette in theme.PALETTES.values():
        for ink in ("ink", "muted", "green_ink", "vermillion_ink", "blue_ink", "purple_ink"):
            assert contrast(palette[ink], palette["panel"]) >= 4.5, ink
        for shape in ("blue", "green", "vermillion", "purple", "faint"):
            assert contrast(palette[shape], palette["panel"]) >= 2.95, shape
