"""What our own work costs: whose time is the models', and which methods and prompts are measured."""

import byte_pair
import pytest
import torch
from torch import nn

import eagle2
from eagle2.bench import bookkeeping
from eagle2.bench.plan import Method, Plan
from eagle2.bench.results import Overhead
from eagle2.bench.table import overhead_table
from eagle2.settings import TreeShape

PROMPTS = [list(b"u:Hi\n"), list(b"u:Why?\n")]


class Laps:
    """A clock that notes what is booked, not how long it took."""

    def __init__(self, device):
        self.booked = []

    def lap(self, phase):
        self.booked.append(phase)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    _, target, _, head, _, device = byte_pair.options(tmp_path_factory.mktemp("pair") / "target")
    return eagle2.load(target, head, device)


def test_time_in_a_model_is_booked_once_though_its_parts_are_watched_too(monkeypatch):
    monkeypatch.setattr(bookkeeping, "Clock", Laps)
    part = nn.Linear(2, 2)
    whole = nn.Sequential(part, nn.ReLU(), part)
    with bookkeeping._at_work([whole, part], torch.device("cpu")) as clock:
        whole(torch.zeros(1, 2))
        part(torch.zeros(1, 2))
    assert clock.booked == ["rest", "verify", "rest", "verify"]
    whole(torch.zeros(1, 2))
    assert len(clock.booked) == 4  # nothing stays hooked


def test_the_methods_of_an_eagle_head_are_measured_with_shares_of_one(engine):
    methods = tuple(map(Method.of, ("plain", "ngram", "eagle2", "eagle2-auto", "eagle")))
    plan = Plan(methods, (0.0,), TreeShape(3, 3, 6), max_new_tokens=12)
    made = bookkeeping.overheads(engine, plan, PROMPTS)
    assert [cost.method for cost in made] == ["eagle2", "eagle2-auto"]
    assert all(0 < cost.outside < 1 and cost.recording > -1 for cost in made)


def test_answers_of_a_single_round_tell_nothing(engine):
    plan = Plan(tuple(map(Method.of, ("plain", "eagle2"))), (0.0,), TreeShape(3, 3, 6), max_new_tokens=2)
    assert bookkeeping.overheads(engine, plan, PROMPTS) == []


def test_a_large_tree_is_timed_on_a_pool_that_holds_more_nodes_than_are_kept(monkeypatch):
    kept = []
    flatten = bookkeeping.tree.flatten
    monkeypatch.setattr(
        bookkeeping.tree, "flatten", lambda pool, nodes: kept.append((len(pool), len(nodes))) or flatten(pool, nodes)
    )
    assert bookkeeping.large_tree_ms(torch.device("cpu")) > 0
    assert kept == [(32 + 5 * 32 * 32, 1024)] * bookkeeping.SAMPLES


@pytest.mark.parametrize("costs", [[], [Overhead("eagle2", 0.0213, -0.004)]])
def test_the_table_tells_shares_and_the_large_tree(costs):
    text = overhead_table(costs, 1024, 1.96)
    assert "a tree of 1,024 nodes is selected, laid out and masked in 2.0 ms" in text
    assert ("2.1%" in text) is ("-0.4%" in text) is bool(costs)
