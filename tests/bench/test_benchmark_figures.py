"""The benchmark's own figures, from results made by hand."""

from eagle2.bench.results import Phases, Result
from visual.figures.benchmark import gain_by_nodes, time_by_method

SPENT = [
    Phases("plain", 0.0, 9, 0.0, 80.0, 0.5, 0.006, 0.0, 0, 0),
    Phases("eagle2", 0.0, 9, 30.0, 160.0, 10.0, 0.05, 59.0, 0, 0),
    Phases("eagle2@16", 0.0, 9, 30.0, 110.0, 9.0, 0.06, 16.0, 0, 0),
]
RESULTS = [
    Result("plain", "chat", 0.0, 1.0, 12.0, 1.0, True),
    Result("eagle2", "chat", 0.0, 3.0, 15.0, 1.2, True),
    Result("eagle2", "code", 0.0, 4.0, 20.0, 1.6, True),
    Result("eagle2@16", "chat", 0.0, 2.5, 20.0, 1.7, True),
]


def test_the_bars_of_a_method_stack_its_phases():
    figure = time_by_method(SPENT)
    assert [bar.name for bar in figure.data] == ["draft", "verify", "rest"]
    assert [list(bar.y) for bar in figure.data] == [[0, 30, 30], [80, 160, 110], [0.5, 10, 9]]
    assert list(figure.data[0].x) == ["plain, T = 0", "eagle2, T = 0", "eagle2@16, T = 0"]
    assert figure.layout.barmode == "stack"


def test_gain_is_drawn_against_the_nodes_verified_as_means_over_families():
    tau, speedup = gain_by_nodes(RESULTS, SPENT).data
    assert list(tau.x) == list(speedup.x) == [0, 16, 59]
    assert list(tau.y) == [1, 2.5, 3.5]
    assert list(speedup.y) == [1, 1.7, 1.4]
    assert list(tau.text) == ["plain", "eagle2@16", "eagle2"]
