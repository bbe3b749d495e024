"""`eagle2-auto` in the engine: costs are measured once, runs are exact, and a record explains each of its trees."""

import dataclasses
import json

import pytest
from tiny import FAMILIES, VOCAB, random_engine

from eagle2.decoding.budget import Costs, best_budget, rows_fed, width
from eagle2.decoding.cost_timing import ROWS
from eagle2.models.target import Target
from eagle2.settings import Sampling, Settings, TreeShape
from eagle2.trace import files as trace_files

PROMPT = [(11 * i + 2) % VOCAB for i in range(12)]
SHAPE = TreeShape(3, 4, 12)


@pytest.fixture
def engine():
    return random_engine(FAMILIES["llama"])


def test_costs_are_measured_once_and_never_fall_with_more_rows(engine):
    costs = engine.costs
    assert engine.costs is costs
    assert costs.rows == ROWS
    assert list(costs.verify_ms) == sorted(costs.verify_ms)
    assert list(costs.level_ms) == sorted(costs.level_ms)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=4)], ids=["greedy", "sampled"])
def test_a_run_is_exact_and_its_rounds_follow_from_the_recorded_costs(engine, sampling):
    rounds = list(engine.rounds(PROMPT, SHAPE, sampling, max_new_tokens=40, policy="eagle2-auto"))
    assert [t for r in rounds for t in r.committed] == engine.plain(PROMPT, sampling, max_new_tokens=40)
    settings = Settings("eagle2-auto", SHAPE, sampling, 40)
    trace = trace_files.from_json(trace_files.to_json(engine.trace(PROMPT, rounds, settings)))
    shape = trace.effective
    for r in trace.rounds:
        fed = rows_fed(r.depth, r.expanded)
        assert r.kept == best_budget(r.value, fed, shape.max_nodes, trace.costs).nodes
        for level in range(1, min(len(fed) + 1, shape.depth)):
            pool = r.depth.index(level + 1) if level < len(fed) else len(r.depth)  # what was known then
            rows = width(r.value[:pool], r.depth[:pool], fed[:level], shape.top_k, shape.max_nodes, trace.costs)
            assert rows == (fed[level] if level < len(fed) else 0)


def test_where_nothing_pays_the_root_is_verified_alone():
    engine = random_engine(FAMILIES["llama"], costs=Costs((1, 2), (1.0, 1000.0), (1.0, 1.0)))
    rounds = list(engine.rounds(PROMPT, SHAPE, max_new_tokens=10, policy="eagle2-auto"))
    assert [(r.drafted, r.kept) for r in rounds] == [(3, 0)] * len(rounds)
    assert [t for r in rounds for t in r.committed] == engine.plain(PROMPT, max_new_tokens=10)


def test_traces_from_before_there_were_costs_are_read_and_impossible_ones_refused(engine):
    rounds = list(engine.rounds(PROMPT, SHAPE, max_new_tokens=5))
    body = json.loads(trace_files.to_json(engine.trace(PROMPT, rounds, Settings("eagle2", SHAPE))))
    assert body.pop("costs") is None
    assert trace_files.from_json(json.dumps(body)).costs is None
    costs = dataclasses.asdict(Costs((1,), (2.0,), (3.0,)))
    for wrong in (costs, 5, {"rows": [1]}, {**costs, "rows": [0]}, {**costs, "level_ms": [1, 2]}):
        with pytest.raises(trace_files.TraceError):
            trace_files.from_json(json.dumps(body | {"costs": wrong}))
    body["settings"]["policy"] = "eagle2-auto"
    with pytest.raises(trace_files.TraceError, match="has the costs it decided by"):
        trace_files.from_json(json.dumps(body))
    assert trace_files.from_json(json.dumps(body | {"costs": costs})).costs == Costs((1,), (2.0,), (3.0,))


def test_without_a_drafter_it_says_so(engine):
    alone = type(engine)(Target(engine.target.model))
    with pytest.raises(ValueError, match="policy 'eagle2-auto' needs a draft model"):
        alone.rounds(PROMPT, policy="eagle2-auto")
