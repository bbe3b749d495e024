"""Metrics on hand-made rounds."""

from dataclasses import replace

import pytest
from fixtures_edges import FIRST, SECOND, plain_round

from eagle2.analysis import metrics
from eagle2.settings import Settings
from eagle2.trace.rounds import Pair, Round


def wrong_round(index: int) -> Round:
    """A round whose one node is refused."""
    return replace(SECOND, index=index, committed=(7, 9) if index == 0 else (9,), finish=None)


def oracle_round(index: int, committed: int = 5) -> Round:
    """A chain of four nodes, all accepted, of whose tokens and bonus the first `committed` pass the cap."""
    return Round(
        index=index,
        prefix_length=9,
        root=1,
        accepted=(0, 1, 2, 3),
        bonus=6,
        committed=((1,) if index == 0 else ()) + (2, 3, 4, 5, 6)[:committed],
        finish=None if committed == 5 else "length",
        drafted=4,
        kept=4,
        token=(2, 3, 4, 5),
        parent=(-1, 0, 1, 2),
        depth=(1, 2, 3, 4),
        slot=(1, 2, 3, 4),
    )


def test_drafts_that_are_always_wrong_give_0_accepted_and_tau_1():
    rounds = [wrong_round(i) for i in range(4)]
    assert metrics.accepted_per_round(rounds) == 0
    assert metrics.tau(rounds) == 1


def test_an_oracle_chain_of_depth_4_gives_4_accepted_and_tau_5():
    rounds = [oracle_round(i) for i in range(3)]
    assert metrics.accepted_per_round(rounds) == 4
    assert metrics.tau(rounds) == 5


def test_plain_rounds_give_tau_1_and_the_prefills_token_is_not_counted():
    rounds = [plain_round(0, 2, 3, (3, 4)), plain_round(1, 3, 4, (5,)), plain_round(2, 4, 5, (6,))]
    assert sum(len(r.committed) for r in rounds) == 4
    assert metrics.decoded(rounds) == 3
    assert metrics.tau(rounds) == 1
    assert metrics.accepted_per_round(rounds) == 0


def test_a_cut_last_round_counts_what_it_committed_in_tau_and_what_it_accepted_besides():
    rounds = [oracle_round(0), oracle_round(1, committed=2)]
    assert metrics.tau(rounds) == (5 + 2) / 2
    assert metrics.accepted_per_round(rounds) == 4


def test_a_round_cut_to_nothing_is_a_pass_that_decoded_nothing():
    rounds = [replace(oracle_round(0), committed=(), finish="stop")]
    assert metrics.passes(rounds) == 1
    assert metrics.tau(rounds) == 0


def test_a_run_that_the_prefills_token_ended_has_no_pass_and_no_tau():
    only = Round(0, 2, 3, (), None, (3,), "stop", prefill_ms=5.0, rest_ms=1.0)
    assert metrics.passes([only]) == 0
    assert metrics.tau([only]) is None
    assert metrics.accepted_per_round([only]) is None
    assert metrics.speed([only]) is None


def test_no_rounds_give_no_numbers():
    assert metrics.tau([]) is None
    assert metrics.speed([]) is None
    assert metrics.acceptance_by_depth([]) == []


def test_acceptance_by_depth_counts_rounds_that_had_a_choice_there():
    # round 0: took one at depths 1 and 2, and had none at depth 3; round 1: refused the only one at depth 1
    assert metrics.acceptance_by_depth([FIRST, SECOND]) == [(2, 1), (1, 1)]


def test_a_deeper_branch_elsewhere_gives_the_walk_no_choice():
    # the walk takes node 1, a leaf; node 2 hangs under node 0, where the walk never was
    forked = replace(
        FIRST,
        accepted=(1,),
        bonus=9,
        committed=(3, 5, 9),
        kept=3,
        parent=(-1, -1, 0, 0),
        slot=(1, 2, 3, None),
        target_probability=(0.2, 0.7, 0.1, None),
        fate=("rejected", "accepted", "rejected", "pruned"),
    )
    assert metrics.acceptance_by_depth([forked]) == [(1, 1)]


def test_acceptance_by_depth_leaves_out_rounds_without_recorded_nodes():
    unrecorded = Round(1, 6, 8, (3, 4), 9, (5, 6, 9), None, drafted=10, kept=5)
    assert metrics.acceptance_by_depth([unrecorded, SECOND]) == [(1, 0)]


def test_speed_counts_decoding_alone_and_its_shares_sum_to_one():
    # round 0: 3 tokens after the prefill's in 1 + 2 + 1 ms; round 1: 1 token in 1 + 3 + 2 ms
    speed = metrics.speed([FIRST, SECOND])
    assert speed.tokens_per_s == pytest.approx(1e3 * 4 / 10)
    assert speed.prefill_ms == 5.0
    assert (speed.draft_share, speed.verify_share, speed.rest_share) == pytest.approx((0.2, 0.5, 0.3))


class TestNearFloor:
    def rounds(self, accepted):
        """One round per entry, with that many accepted of three kept."""
        return [
            Round(i, 5, 1, tuple(range(n)), 9, (2,) * n + (9,), None, drafted=3, kept=3) for i, n in enumerate(accepted)
        ]

    def test_hardly_any_accepted_in_sixteen_passes_is_near_the_floor(self):
        assert metrics.near_floor(self.rounds([0] * 15 + [1]))  # 1 / 16 < 0.1

    def test_fewer_passes_or_more_accepted_are_not(self):
        assert not metrics.near_floor(self.rounds([0] * 15))
        assert not metrics.near_floor(self.rounds([0] * 14 + [1, 1]))  # 2 / 16 > 0.1

    def test_rounds_without_drafts_tell_nothing(self):
        assert not metrics.near_floor([Round(i, 5, 1, (), 9, (9,), None) for i in range(40)])


class TestOddDrafts:
    PAIR = Pair("target", "head", head_positions=12)

    def test_a_drafter_whose_confidences_are_all_0_gives_no_numbers(self):
        silent = replace(SECOND, confidence=(0.0,) * len(SECOND.token), value=(0.0,) * len(SECOND.token))
        assert metrics.gives_no_numbers([silent, silent])
        assert not metrics.gives_no_numbers([silent, SECOND])
        assert not metrics.gives_no_numbers([plain_round(0, 5, 1, (9,))])

    def test_a_text_passes_the_positions_its_head_was_made_for(self):
        last = replace(SECOND, prefix_length=9, committed=(1, 2, 3, 4, 5))  # positions 0 to 13
        assert metrics.positions_past(self.PAIR, Settings(), [last]) == 2
        assert metrics.positions_past(replace(self.PAIR, head_positions=14), Settings(), [last]) == 0
        assert metrics.positions_past(self.PAIR, Settings("plain"), [last]) == 0
        assert metrics.positions_past(Pair("target", "head"), Settings(), [last]) == 0
