"""Whose visit is whose: visitors apart, bounded, forgotten, and parked between two pages."""

from __future__ import annotations

from turns import SETTINGS

from visual.server.visits import Visits


def test_visitors_are_bounded_and_the_longest_unseen_is_forgotten():
    visits = Visits(limit=3)
    first = visits.of("a")
    for name in "bc":
        visits.of(name)
    assert visits.of("a") is first
    second = visits.of("b")
    visits.of("d")  # c was seen longest ago
    assert len(visits) == 3
    assert visits.of("a") is first
    assert visits.of("b") is second


def test_a_busy_visitor_is_never_forgotten():
    visits = Visits(limit=2)
    busy = visits.of("busy")
    busy.busy = True
    for number in range(10):
        visits.of(str(number))
    assert visits.of("busy") is busy
    assert len(visits) == 2


def test_forgetting_closes_an_idle_run_and_halts_a_busy_one(engine):
    visits = Visits()
    idle, busy = visits.of("idle"), visits.of("busy")
    turns = [visit.begin(engine, "one", "", SETTINGS) for visit in (idle, busy)]
    busy.busy = True
    for name in ("idle", "busy", "never seen"):
        visits.forget(name)
    assert [turn.source is None for turn in turns] == [True, False]
    assert busy.halt
    assert len(visits) == 0


def test_without_a_session_nothing_is_shared():
    visits = Visits()
    assert visits.of(None) is not visits.of(None)
    assert len(visits) == 0


def test_a_parked_visit_goes_to_whoever_has_its_key_once_and_what_was_carried_with_it(engine):
    visits = Visits()
    visit = visits.of("english")
    turn = visit.begin(engine, "one", "", SETTINGS)
    visit.halt = True
    key = visits.park("english", carried="typed")
    assert visits.of("english") is visit  # until it is taken over: the change of pages may fail
    assert visits.resume("no such key", "chinese") is None
    assert visits.resume(key, "chinese") == (visit, "typed")
    assert (visits.of("chinese"), visit.halt, visit.last) == (visit, False, turn)
    assert visits.resume(key, "a third") is None
    visits.forget("english")  # its page is closed only now
    assert not visit.halt
    assert turn.source is not None


def test_parked_visits_are_forgotten_oldest_first():
    visits = Visits(limit=2)
    keys = [visits.park(name) for name in ("one", "two", "three")]
    assert [visits.resume(key, "next") is not None for key in keys] == [False, True, True]
