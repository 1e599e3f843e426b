"""Tests of the watch: series followed window by window, amended, taken up again, as if all had been known at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.outliers.findings import FindingChanges
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.outliers.window_values import extract_values
from hopwatch.monitor.results import Verdict, WindowResult
from hopwatch.monitor.store.rollups import HOUR_US
from tests.monitor.window_series import NODES, Shelf, lag, minute, straight, struck
from tests.support.examples import examples

MINUTE_US: Final = 60_000_000


def pieces(results: list[WindowResult], chance: random.Random) -> Iterator[list[WindowResult]]:
    """Yield the windows some at a time."""
    left = list(results)
    while left:
        size = chance.randint(1, 30)
        yield left[:size]
        left = left[size:]


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**31))
def test_amended_windows_and_restarts_leave_what_a_straight_run_finds(seed: int) -> None:
    """Memory, findings and what is said are the same to the byte.

    Windows come in pieces of any size, some first with other values, some late; the memory is kept before an hour, and
    the process is made anew, at any moment.
    """
    chance = random.Random(seed)
    results = [minute(number, chance) for number in range(400)]
    for number in chance.sample(range(220, 400), 3):
        results[number] = struck(results[number], chance.randint(0, 1))
    for number in chance.sample(range(400), 6):
        results[number] = replace(results[number], verdict=Verdict.UNKNOWN)
    late, wrong = set(chance.sample(range(330, 400), 8)), set(chance.sample(range(330, 400), 20))
    shelf, watched = Shelf(), SeriesTracker(NODES)
    for piece in pieces([one for number, one in enumerate(results) if number not in late], chance):
        first = [struck(one, times=3) if results.index(one) in wrong else one for one in piece]
        shelf.write(watched.enter(first, shelf))
        hour_us = min(watched.newest_us, results[320].window_start_us) // HOUR_US * HOUR_US
        if min(watched.values) < hour_us and chance.random() < 0.5:
            shelf.memory = watched.base_at(hour_us, shelf)
        if chance.random() < 0.2:
            watched = taken_up(watched, shelf)
    rest = [results[number] for number in late | wrong]
    chance.shuffle(rest)
    for piece in pieces(rest, chance):
        shelf.write(watched.enter(piece, shelf))
    expected, found = straight(results)
    assert watched.states.tobytes() == expected.states.tobytes()
    assert shelf.found == found.found
    assert found.found
    for result in results[-60:]:
        assert watched.find_outliers(result.window_start_us) == expected.find_outliers(result.window_start_us)


def taken_up(watched: SeriesTracker, shelf: Shelf) -> SeriesTracker:
    """Return the watch as another process makes it of what is kept."""
    again = SeriesTracker(NODES, watched.base_us)
    again.restore_windows(watched.values, shelf.outliers(watched.base_us), shelf)
    return again


def test_an_outlier_is_said_in_every_window_of_its_episode() -> None:
    """With the figures of the window in which it became one, also by a process that was started since."""
    chance = random.Random(1)
    results = [minute(number, chance) for number in range(1_900)]
    for number in range(1_497, 1_500):
        results[number] = struck(results[number])
    watched, shelf = straight(results[:1_510])
    at_us = results[1_497].window_start_us
    told = shelf.found[at_us, "b", Quantity.MESSAGES]
    assert told.is_outlier
    assert (told.why.observed, told.why.since_us) == (results[1_497].nodes[1].seen, at_us)
    assert told.why.high is not None
    assert told.why.high < 150
    before, first, last = (results[number].window_start_us for number in (1_496, 1_497, 1_509))
    assert watched.find_outliers(before) == {"a": (), "b": ()}
    assert watched.find_outliers(first) == watched.find_outliers(last) == {"a": (), "b": (told,)}
    shelf.memory = watched.base_at(last // HOUR_US * HOUR_US, shelf)
    assert taken_up(watched, shelf).enter(results[1_510:1_511], shelf) == FindingChanges([], [])
    again = taken_up(watched, shelf)
    again.enter(results[1_510:], shelf)
    assert again.find_outliers(results[1_510].window_start_us) == {"a": (), "b": (told,)}
    assert again.find_outliers(results[1_899].window_start_us) == {"a": (), "b": ()}


def test_an_amended_window_takes_back_what_it_was_taken_for() -> None:
    """Amending a window erases its findings, and undoes its effect on later windows."""
    chance = random.Random(2)
    results = [minute(number, chance) for number in range(1_500)]
    watched, shelf = straight([*results[:1_490], struck(results[1_490]), *results[1_491:]])
    quiet, _ = straight(results)
    at_us = results[1_490].window_start_us
    assert watched.find_outliers(at_us)["b"]
    shelf.write(watched.enter([results[1_490]], Shelf()))
    assert not [key for key in shelf.found if key[0] >= at_us]
    assert watched.find_outliers(at_us) == {"a": (), "b": ()}
    assert watched.states.tobytes() == quiet.states.tobytes()


def test_a_gap_is_no_value_and_ends_no_episode() -> None:
    """Of a node without values nothing is said; one whose other series are well says nothing while one is held."""
    chance = random.Random(3)
    results = [minute(number, chance) for number in range(1_500)]
    results[1_490] = struck(results[1_490])
    results[1_491] = replace(results[1_491], verdict=Verdict.UNKNOWN)
    blind = replace(results[1_492].nodes[1], coverage=0.5)
    results[1_492] = replace(results[1_492], nodes=(results[1_492].nodes[0], blind))
    watched, _ = straight(results)
    said = [watched.find_outliers(result.window_start_us) for result in results[1_490:1_494]]
    assert list(said[0]) == ["a", "b"]
    assert said[1:3] == [{}, {"a": ()}]
    assert said[3] == said[0]


def test_a_window_that_can_change_no_more_does_not_enter() -> None:
    """A window before the kept memory is not entered, and has no findings."""
    chance = random.Random(4)
    results = [minute(number, chance) for number in range(130)]
    watched, shelf = straight(results)
    shelf.memory = watched.base_at(results[60].window_start_us // HOUR_US * HOUR_US, shelf)
    before = watched.states.tobytes()
    assert watched.enter([struck(results[3])], shelf) == FindingChanges([], [])
    assert watched.states.tobytes() == before
    assert watched.find_outliers(results[3].window_start_us) == {}


def test_what_enters_is_what_is_known_of_a_node() -> None:
    """All of it where its books are complete; a quantity that is not there is a gap."""
    result = minute(0, random.Random(5))
    names = [node.node for node in result.nodes]
    values = extract_values(result, names)
    seen, p95_us = result.nodes[0].seen, result.nodes[0].lag_in_us
    assert p95_us is not None
    assert values.shape == (2, 7)
    assert values[0].tolist()[0] == p95_us.p95
    assert values[0, 4:].tolist() == [seen, 0, seen]
    for verdict in (Verdict.UNKNOWN, Verdict.SILENT):
        assert np.isnan(extract_values(replace(result, verdict=verdict), names)).all()
    nodes = (replace(result.nodes[0], coverage=None, seen=0), replace(result.nodes[1], lag_in_us=None))
    assert np.isnan(extract_values(replace(result, nodes=nodes), names)).tolist()[0] == [True] * 7
    assert np.isnan(extract_values(replace(result, nodes=nodes), names)).tolist()[1][0] is True
    of_later = extract_values(replace(result, nodes=result.nodes[:1]), ["added", *names])
    assert np.isnan(of_later).all(axis=1).tolist() == [True, False, True]


def test_an_episode_that_lasts_into_the_kept_hour_is_still_told_when_there_was_another_since() -> None:
    """Of what was found before the hour the latest stays known, whatever was found behind it."""
    chance = random.Random(1)
    results = [minute(number, chance) for number in range(1_600)]
    hour = next(number for number in range(1_500, 1_600) if not results[number].window_start_us % HOUR_US)
    results[hour - 50] = struck(results[hour - 50], times=4)
    results[hour + 66] = struck(results[hour + 66], times=10**13)
    watched, shelf = straight(results[: hour + 70])
    assert [one.window_start_us for one in shelf.found.values() if one.is_outlier] == [
        results[hour - 50].window_start_us,
        results[hour + 66].window_start_us,
    ]
    early = results[hour + 3]
    said = watched.find_outliers(early.window_start_us)
    assert said["b"]
    shelf.memory = watched.base_at(results[hour].window_start_us, shelf)
    assert watched.find_outliers(early.window_start_us) == said
    watched.enter([replace(early, nodes=(early.nodes[0], replace(early.nodes[1], seen=101)))], shelf)
    assert watched.find_outliers(early.window_start_us) == said


def test_a_gap_that_comes_late_is_held_as_one_that_came_in_time() -> None:
    """A window between others, in which a series that is told as an outlier has no value, is not well."""
    chance = random.Random(6)
    results = [minute(number, chance) for number in range(1_500)]
    odd, late = results[1_490].nodes[1], results[1_492].nodes[1]
    results[1_490] = replace(results[1_490], nodes=(results[1_490].nodes[0], replace(odd, lag_in_us=lag(10**9))))
    results[1_492] = replace(results[1_492], nodes=(results[1_492].nodes[0], replace(late, lag_in_us=None)))
    expected, _ = straight(results)
    assert expected.find_outliers(results[1_491].window_start_us)["b"]
    watched, shelf = straight(results[:1_492] + results[1_493:])
    watched.enter([results[1_492]], shelf)
    at_us = results[1_492].window_start_us
    assert watched.find_outliers(at_us) == expected.find_outliers(at_us) == {"a": ()}
