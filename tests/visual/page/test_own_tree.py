"""The tab "Your tree" without a browser: where a pool's nodes stand, what trees bring, what its handlers answer."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_round import ROUND, TOKENS

from eagle2.analysis import metrics
from eagle2.methods import EAGLE_PATHS
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace.rounds import ROOT, Pair
from visual.page.context import Common
from visual.page.form import Form, explain
from visual.page.tabs.running import Running
from visual.page.tabs.viewing import recording
from visual.page.tabs.your_tree import picker
from visual.page.tabs.your_tree.drawing import Drawing
from visual.page.tabs.your_tree.parts import STARTS
from visual.page.tabs.your_tree.weighing import Brought, Weighing, kept_places
from visual.server.conversation import Turn, Visit, advance
from visual.words.say import say

VISITOR = SimpleNamespace(session_hash="visitor")
RUN = Turn([1] * 37, [], Settings("eagle2", TreeShape(2, 2, 5)), Pair("t", "h"), TOKENS, [replace(ROUND, index=0)])
RUN.effective = TreeShape(2, 2, 5)
# Pool: 'm .6 [0], 'd .3 [1], glad .36 [0, 0], sorry .12 [0, 1], love .15 [1, 0], be .03 [1, 1].
# The target takes 'm, glad, then wants you.


@pytest.fixture
def drawing(common):
    return Drawing(common)


@pytest.fixture
def live(common, engine):
    """A visitor with a finished run of the tiny pair."""
    visit = common.visit(VISITOR)
    turn = visit.begin(engine, "one two", "", Settings("eagle2", TreeShape(3, 3, 8), Sampling(), 20))
    while turn.open:
        advance(turn, engine)
    return visit


def opened(common: Common) -> SimpleNamespace:
    return SimpleNamespace(value=common.say("page.tab_own"))


def typed(drawing: Drawing, text: str) -> dict:
    return drawing.typed(SimpleNamespace(_data={"text": text}), VISITOR)


def table(told: str) -> dict[str, list[str]]:
    """The rows of the comparison by their heads."""
    rows = told.split("<tbody>")[1].split("</tbody>")[0].split("</tr>")[:-1]
    return {
        row.split('row">')[1].split("</th>")[0]: [c.split("</td>")[0] for c in row.split("<td>")[1:]] for row in rows
    }


class TestPool:
    def test_a_block_of_children_stands_as_high_as_its_parent_or_under_the_block_before(self):
        made = picker.lay_out(ROUND)
        assert made.row == (0, 1, 0, 1, 2.5, 3.5)
        assert made.blocks == ((ROOT, 0, 1), (0, 0, 1), (1, 2.5, 3.5))
        assert made.height == 4.5

    @given(st.integers(1, 5), st.integers(1, 4), st.randoms())
    @settings(deadline=None, max_examples=40)
    def test_no_two_nodes_of_a_level_share_a_row_and_lines_never_cross(self, top_k, depth, random):
        parent, level, depths = [], [ROOT], []
        for d in range(1, depth + 1):
            children = [node for node in level for _ in range(top_k)]
            start = len(parent)
            parent += children
            depths += [d] * len(children)
            level = sorted(random.sample(range(start, len(parent)), min(top_k, len(children))))
            random.shuffle(level)
        n = len(parent)
        r = replace(ROUND, token=tuple(range(n)), parent=tuple(parent), depth=tuple(depths), drafted=n)
        made = picker.lay_out(r)
        assert len({(d, row) for d, row in zip(depths, made.row, strict=True)}) == n
        for d in range(2, depth + 1):
            order = sorted((made.row[p], made.row[node]) for node, p in enumerate(parent) if depths[node] == d)
            assert [row for _, row in order] == sorted(row for _, row in order)
            assert all(row >= above for above, row in order)

    def test_the_message_names_places_and_what_the_target_chose(self):
        told = json.loads(picker.message(RUN, 0, ((0,), (7,))))
        assert told["place"] == ["0", "1", "0,0", "0,1", "1,0", "1,1"]
        assert told["chosen"] == [0, 2]
        assert told["picked"] == ["0", "7"]
        assert told["label"] == ["'m", "'d", "·glad", "·sorry", "·love", "·be"]
        assert (told["round"], told["rounds"], told["root"], told["wide"]) == (0, 1, "I", [1, 2, 6])


class TestWeighing:
    def test_every_number_of_the_comparison_by_hand(self):
        rows = {row.key: row for row in Weighing().rows(RUN, 0, ((0,), (0, 0)))}
        own = rows["own"]
        assert (own.nodes, own.depth, own.here, own.mean) == (2, 2, Brought(3, True), Brought(3.0, True))
        assert (own.predicted, own.whole) == (pytest.approx(1 + 0.6 + 0.36), True)
        eagle = rows["eagle"]  # 25 nodes, of which this pool holds six; under glad nothing was drafted
        assert (eagle.nodes, eagle.depth, eagle.here, eagle.whole) == (25, 5, Brought(3, False), False)
        same = rows["same"]  # the two best by value: 'm and glad
        assert (same.nodes, same.depth, same.here) == (2, 2, Brought(3, True))
        recorded = rows["recorded"]
        assert (recorded.nodes, recorded.here) == (5, Brought(3, True))
        assert recorded.predicted == pytest.approx(1 + 0.6 + 0.3 + 0.36 + 0.12 + 0.15)

    def test_a_tree_that_leaves_the_targets_way_is_settled_though_nodes_are_missing(self):
        rows = {row.key: row for row in Weighing().rows(RUN, 0, ((0,), (1,), (5,), (0, 1)))}
        assert rows["own"].here == Brought(2, True)  # 'm, and not glad
        assert not rows["own"].whole  # no sixth child of the root was drafted

    def test_what_a_static_run_drafted_tells_static_trees_alone(self):
        paths = ((0,), (2,), (0, 0), (0, 3), (2, 0), (2, 1))
        turn = replace(RUN, settings=Settings("static", paths=paths), effective=TreeShape(4, 2, 6))
        rows = {row.key: row for row in Weighing().rows(turn, 0, paths)}
        assert set(rows) == {"own", "eagle"}
        assert rows["own"].here == Brought(3, True)
        assert kept_places(turn, 0) == ((0,), (2,), (0, 0), (0, 3), (2, 0))

    def test_over_a_recorded_run_the_runs_own_tree_brings_what_it_brought(self):
        turn = Turn.recorded(recording("pancakes"), "pancakes")
        rows = {row.key: row for row in Weighing().rows(turn, 0, EAGLE_PATHS)}
        kept = [r for r in turn.rounds if r.token]
        brought = sum(len(r.accepted) + 1 for r in kept) / len(kept)
        assert rows["recorded"].mean == Brought(brought, True)
        assert rows["recorded"].here.tokens == len(turn.rounds[0].accepted) + 1
        assert rows["own"] == replace(rows["eagle"], key="own", settings=rows["own"].settings)


class TestHandlers:
    def test_the_tab_opens_with_the_tree_over_the_round_that_is_shown(self, common, drawing, live):
        live.round = 1
        told = drawing.tab(opened(common), VISITOR, Form().tree)
        pool = json.loads(told[common.parts.own.picker])
        assert (pool["run"], pool["round"], pool["rounds"]) == (live.last.run, 1, len(live.last.rounds))
        assert len(pool["place"]) == live.last.rounds[1].drafted
        assert table(told[common.parts.own.table])["Your tree"][:3] == ["25", "5", "26"]
        other = drawing.tab(SimpleNamespace(value="Trace"), VISITOR, "")
        assert list(other) == [common.parts.own.note]

    def test_the_player_at_another_round_brings_its_pool(self, common, drawing, live):
        told = drawing.moved(SimpleNamespace(_data={"run": live.last.run, "round": 2}), VISITOR, "[0]")
        assert json.loads(told[common.parts.own.picker])["round"] == 2
        assert live.round == 2

    def test_picks_become_text_and_text_becomes_picks(self, common, drawing, live):
        told = drawing.picked(SimpleNamespace(_data={"paths": "[0, 1], [1], [0]"}), VISITOR)
        assert told[common.parts.own.text] == "[0], [1],\n[0, 1]"
        assert table(told[common.parts.own.table])["Your tree"][:3] == ["3", "2", "4"]
        told = typed(drawing, "[0] [0,1] [1] [30]")
        assert json.loads(told[common.parts.own.picker])["picked"] == ["0", "1", "30", "0,1"]
        assert "1 of the nodes of your tree" in told[common.parts.own.note]

    def test_a_text_that_is_no_tree_is_told_in_a_sentence_and_the_picture_stays(self, common, drawing, live):
        told = typed(drawing, "[0], [1, 0]")
        assert "path [1, 0] has no parent: add [1] to the static tree" in told[common.parts.own.note]
        assert common.parts.own.picker not in told
        assert told[common.parts.own.table] == ""
        assert "&lt;b&gt;" in typed(drawing, "<b>")[common.parts.own.note]
        assert (
            "at most 12 are allowed"
            in typed(drawing, ", ".join(f"{[0] * n}" for n in range(1, 14)))[common.parts.own.note]
        )
        assert "No nodes yet" in drawing.picked(SimpleNamespace(_data={"paths": ""}), VISITOR)[common.parts.own.note]

    def test_what_one_can_start_from(self, common, drawing, live):
        text = {name: drawing.start(name)(VISITOR, "[0], [1]").get(common.parts.own.text) for name in STARTS}
        assert text["eagle"] == Form().tree
        assert text["nothing"] == ""
        assert text["round"].count("[") == live.last.rounds[0].kept
        fitted = drawing.start("fitted")(VISITOR, "[0], [1]")
        if common.parts.own.text in fitted:
            assert fitted[common.parts.own.text].count("[") <= 2
        else:
            assert "no tree fits it" in fitted[common.parts.own.note]

    def test_files(self, common, drawing, tmp_path):
        saved = drawing.save("[1], [0], [0,0]")
        assert json.loads(saved[common.parts.text]) == [[0], [1], [0, 0]]
        assert saved[common.parts.name] == "tree.json"
        file = tmp_path / "tree.json"
        file.write_text(saved[common.parts.text], encoding="utf-8")
        assert drawing.opened(VISITOR, str(file))[common.parts.own.text] == "[0], [1],\n[0, 0]"
        file.write_text("[0]" * 30_000, encoding="utf-8")
        assert "at most 64 kB can be read" in drawing.opened(VISITOR, str(file))[common.parts.own.note]
        assert "es-fault" in drawing.save("nothing")[common.parts.own.note]
        assert drawing.save("nothing")[common.parts.text] == ""

    def test_without_a_round_the_tab_says_so(self, common, drawing):
        told = drawing.tab(opened(common), VISITOR, "[0]")
        assert "No round yet" in told[common.parts.own.note]
        assert json.loads(told[common.parts.own.picker])["place"] == []

    def test_a_model_grows_the_trees_that_the_recording_does_not_hold(self, common, drawing, live):
        *_, told = drawing.grow(VISITOR, "[0], [0, 0], [0, 0, 0], [0, 0, 0, 0]")
        rows = table(told[common.parts.own.table])
        assert rows["Your tree"][:3] == ["4", "4", "5"]
        assert rows["EAGLE&#x27;s static tree"][:3] == ["25", "5", "26"]
        assert not any("≥" in cells[4] for cells in rows.values())
        assert rows["EAGLE-2, 8 nodes"][4] == str(len(live.last.rounds[0].accepted) + 1)


class TestRunning:
    def test_the_same_prompt_runs_again_with_ones_own_tree_and_writes_the_same_text(self, common, live):
        was = live.last
        form = Form(method="eagle2", max_new_tokens=20, tree="[0], [2], [0, 0]")
        told = list(Running(common).own_tree(VISITOR, "", "", *vars(form).values()))
        assert told[0][common.parts.method] == "static"
        made = live.last
        assert made is not was
        assert made.settings.paths == ((0,), (2,), (0, 0))
        assert [token for r in made.rounds for token in r.committed] == [t for r in was.rounds for t in r.committed]
        assert all(r.kept == 3 for r in made.rounds if r.token)
        assert metrics.tau(made.rounds) <= 3
        assert made.trace().settings.paths == made.settings.paths

    def test_a_tree_that_is_none_starts_nothing(self, common, live):
        (told,) = Running(common).own_tree(VISITOR, "hello", "", *vars(Form(max_new_tokens=20, tree="[1, 0]")).values())
        assert "has no parent" in told[common.parts.status]
        assert len(live.turns) == 1

    def test_a_run_of_another_target_is_not_run_again(self, engine):
        visit = Visit()
        visit.load(recording("figure-7"), "figure 7")
        with pytest.raises(ValueError, match="write a prompt for it"):
            visit.again(Settings(), engine)


class TestForm:
    def test_your_tree_is_a_method_whose_paths_come_with_the_form(self):
        made = Form(method="static", tree="[0], [1], [0, 0]").settings(512)
        assert (made.policy, made.paths) == ("static", ((0,), (1,), (0, 0)))
        assert Form.of(made).settings(512) == made
        assert Form().settings(512).paths is None
        assert Form(tree="nonsense").settings(512).paths is None  # other methods have no use for it

    def test_what_it_means_and_costs_is_explained(self):
        told = explain(Form(method="static", tree="[0], [1], [0, 0]"), 512)
        assert "3 nodes in 2 levels" in told
        assert say("form.cost", rows=4, passes=2, most=3) in told
        assert "top_k, depth and max_nodes have no effect here" in told
        assert "has no parent" in explain(Form(method="static", tree="[1, 0]"), 512)
        shape = TreeShape.around(EAGLE_PATHS)
        fixed = Form("static", shape.top_k, shape.depth, shape.max_nodes)
        assert "no effect" not in explain(fixed, 512)

    def test_an_edited_tree_is_no_other_setting_while_another_method_runs(self):
        run = Settings(max_new_tokens=96)
        assert Form(tree="[0]").asks_for(run)
        assert not Form("static", tree="[0]").asks_for(run)
        assert not Form(top_k="x").asks_for(run)
