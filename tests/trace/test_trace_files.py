"""Rounds and traces: what they derive, their JSON, and everything that is refused in a file."""

import json
from dataclasses import replace

import pytest
from fixtures_edges import FIRST, SECOND, TRACE, plain_round, refusal, written

from eagle2.settings import Settings
from eagle2.trace import files as trace_files
from eagle2.trace.files import TraceError, from_json, to_json
from eagle2.trace.rounds import Node, Round


class TestRound:
    def test_nodes_are_views_in_pool_order(self):
        assert len(FIRST.nodes) == 4
        assert FIRST.nodes[2] == Node(2, 6, 0, 2, 0.5, 0.3, False, 2, 0.8, "accepted")
        assert FIRST.nodes[-1] == FIRST.nodes[3]
        assert [node.token for node in FIRST.nodes] == [4, 5, 6, 7]
        assert [node.index for node in FIRST.nodes[1:3]] == [1, 2]

    @pytest.mark.parametrize("index", [4, -5])
    def test_a_node_beyond_the_pool_is_an_index_error(self, index):
        with pytest.raises(IndexError, match=f"node {index} of 4"):
            FIRST.nodes[index]

    def test_a_round_without_drafts_has_no_nodes(self):
        r = plain_round(1, 3, 4, (5,))
        assert len(r.nodes) == 0
        assert list(r.nodes) == []
        assert r.predicted == 1

    def test_paths_lead_from_the_first_level_down(self):
        assert FIRST.path(3) == (0, 3)
        assert FIRST.path(1) == (1,)
        assert FIRST.path(-1) == ()

    def test_flattened_leaves_out_the_root_and_the_pruned(self):
        assert FIRST.flattened == (0, 2, 3)

    def test_predicted_is_one_and_the_kept_values(self):
        assert FIRST.predicted == pytest.approx(1 + 0.6 + 0.3 + 0.24)

    def test_origins_name_the_source_of_each_id(self):
        assert FIRST.origins == ("prefill", "draft", "draft", "bonus")
        assert SECOND.origins == ("bonus",)
        assert replace(FIRST, committed=(3, 4)).origins == ("prefill", "draft")
        assert Round(0, 2, 3, (), None, (3,), "stop").origins == ("prefill",)


class TestTrace:
    def test_new_ids_and_finish_are_those_of_the_rounds(self):
        assert TRACE.new_ids == (3, 4, 6, 8, 9)
        assert TRACE.finish == "length"
        assert replace(TRACE, rounds=()).finish is None

    def test_used_ids_are_all_that_occur_anywhere(self):
        assert TRACE.used_ids() == {1, 2, 3, 4, 5, 6, 7, 8, 9}


class TestRoundTrip:
    def test_json_is_read_back_losslessly(self):
        assert from_json(to_json(TRACE)) == TRACE

    def test_a_file_is_read_back_losslessly(self, tmp_path):
        trace_files.save(TRACE, tmp_path / "run.json")
        assert trace_files.load(tmp_path / "run.json") == TRACE

    def test_a_pair_says_what_it_drafts_from_and_older_files_do_not(self):
        reduced = replace(TRACE, pair=replace(TRACE.pair, vocabulary=10, draft_vocabulary=8))
        assert from_json(to_json(reduced)) == reduced
        body = written()
        del body["pair"]["vocabulary"], body["pair"]["draft_vocabulary"]
        assert from_json(json.dumps(body)) == TRACE

    def test_top_level_names(self):
        assert list(written()) == [
            "format",
            "version",
            "prompt_ids",
            "settings",
            "effective",
            "pair",
            "tokens",
            "rounds",
            "messages",
            "costs",
        ]

    @pytest.mark.parametrize(
        "changed",
        [
            {"rounds": ()},
            {
                "settings": Settings("plain"),
                "effective": None,
                "rounds": (plain_round(0, 2, 3, (3, 4)), plain_round(1, 3, 4, (5,))),
            },
            {"rounds": (Round(0, 2, 3, (), None, (3,), "stop"),)},
            {"rounds": (Round(0, 2, 3, (), None, (), "stop"),)},
            {"rounds": (Round(0, 2, 3, (5, 9), 8, (3, 4, 6, 8), None, drafted=10, kept=4),)},  # not recorded
            {
                "rounds": (
                    replace(FIRST, committed=(3, 4), finish="stop", fate=("accepted", "pruned", "cut", "rejected")),
                )
            },
            {"settings": Settings("static", paths=((0,), (0, 0)))},
            {"messages": ()},
        ],
        ids=["empty", "plain", "ended by prefill", "stopped at 0", "not recorded", "cut", "static", "no messages"],
    )
    def test_every_kind_of_run_is_read_back(self, changed):
        trace = replace(TRACE, **changed)
        assert from_json(to_json(trace)) == trace

    def test_numbers_that_are_not_finite_are_never_written(self):
        with pytest.raises(ValueError, match="not JSON compliant"):
            to_json(replace(TRACE, rounds=(replace(FIRST, draft_ms=float("inf")), SECOND)))


class TestFile:
    @pytest.mark.parametrize("text", ["", "not json", "[1", b"\xff\xfe\x00", "[" * 100_000, "9" * 5000])
    def test_what_is_no_json_is_refused(self, text):
        with pytest.raises(TraceError, match="no JSON file that a trace could be in"):
            from_json(text)

    @pytest.mark.parametrize("body", [[], 3, None, {}, {"format": "other"}, {"rounds": []}])
    def test_json_of_another_kind_is_refused(self, body):
        assert refusal(body) == 'this JSON file is no trace: its "format" is not "eagle2-trace"'

    @pytest.mark.parametrize(
        ("version", "shown"), [(2, "2"), ("1", '"1"'), (True, "true"), (1.0, "1.0"), ([], "a list")]
    )
    def test_another_version_is_refused(self, version, shown):
        assert refusal(written() | {"version": version}) == (
            f"this trace has version {shown}; this program reads version 1"
        )

    @pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
    def test_numbers_that_are_not_finite_are_refused(self, name):
        text = to_json(TRACE).replace('"draft_ms":1.0', f'"draft_ms":{name}', 1)
        with pytest.raises(TraceError, match=f"{name} is no finite number"):
            from_json(text)

    @pytest.mark.parametrize("number", ["1e999", "1" + 400 * "0"])
    def test_numbers_that_no_float_holds_are_refused(self, number):
        for key in ('"draft_ms":1.0', '"temperature":0.7'):
            with pytest.raises(TraceError, match=key.split('"')[1]):
                from_json(to_json(TRACE).replace(key, key.split(":")[0] + ":" + number, 1))

    def test_a_file_that_is_too_large_is_refused_unread(self, tmp_path):
        trace_files.save(TRACE, tmp_path / "run.json")
        size = (tmp_path / "run.json").stat().st_size
        assert trace_files.load(tmp_path / "run.json", max_bytes=size) == TRACE
        with pytest.raises(TraceError, match=r"this trace has 0\.0 MiB; at most 0\.0 MiB are read"):
            trace_files.load(tmp_path / "run.json", max_bytes=size - 1)
        with pytest.raises(TraceError, match=r"has 2\.0 MiB; at most 1\.0 MiB"):
            from_json(" " * 2**21, max_bytes=2**20)

    def test_a_file_that_is_not_there_raises_as_usual(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            trace_files.load(tmp_path / "none.json")
