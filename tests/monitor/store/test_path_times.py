"""Tests of times on the path in the store: of a window, over several, and what an amendment leaves of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.results import PathTime, Quantiles, SpanTime, Status
from hopwatch.monitor.store import path_times
from hopwatch.monitor.store.path_times import query_span_times, query_timed_span, read_path_times
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.spool import START_US

EDGE: Final = PathTime("a", Quantiles(9, -5, 10, 40, 50, 60), 10, 10, 8, 170)
BEFORE: Final = PathTime("", Quantiles(10, 0, 1, 2, 3, 4), 10, 10, 8, 20)
LATER: Final = PathTime("a", Quantiles(2_000, 1, 30, 35, 70, 80), 2_048, 90_000, 80_000, 9_000)


def write(
    engine: Engine, minute: int, *times: tuple[PathTime, ...], changed: Mapping[str, object] | None = None
) -> None:
    """Write a final window of two nodes with these times; one with changes is amended."""
    made, is_first = build_conclusion(), changed is None
    status, revision = (Status.FINAL, 0) if is_first else (Status.AMENDED, 1)
    start_us = START_US + minute * WINDOW_US
    result = replace(made.result, window_start_us=start_us, status=status, revision=revision)
    write_conclusions(engine, made._replace(result=result, times=times, changed=changed))


def test_times_are_read_as_they_were_written(engine: Engine) -> None:
    """By window and node, those of a node by source."""
    write(engine, 0, (BEFORE,), (EDGE,))
    with engine.begin() as connection:
        assert read_path_times(connection, "orders", None, None) == {
            (START_US, "a"): (BEFORE,),
            (START_US, "b"): (EDGE,),
        }
        assert read_path_times(connection, "orders", START_US + 1, None) == {}
        assert read_path_times(connection, "trades", None, None) == {}


def test_an_amended_window_has_its_new_times_alone(engine: Engine) -> None:
    """A part that the first judgement timed and the second one did not is gone."""
    write(engine, 0, (BEFORE,), (EDGE,))
    write(engine, 0, (), (replace(EDGE, total_us=7),), changed={"b.loss": [1, 0]})
    with engine.begin() as connection:
        assert read_path_times(connection, "orders", None, None) == {(START_US, "b"): (replace(EDGE, total_us=7),)}


def test_totals_of_windows_are_added_and_percentiles_are_bounds(engine: Engine) -> None:
    """A window counts with its own messages, whichever parts of the path were timed in it."""
    write(engine, 0, (BEFORE,), (EDGE,))
    write(engine, 2, (), (LATER,))
    with engine.begin() as connection:
        found = query_span_times(connection, "orders", START_US, START_US + 3 * WINDOW_US, parts=5)
        assert query_span_times(connection, "orders", START_US + 3 * WINDOW_US, START_US + 4 * WINDOW_US, 5) is None
    assert found is not None
    assert (found.windows, found.samples, found.messages, found.path_messages) == (2, 2_058, 90_010, 80_008)
    assert set(found.times) == {
        SpanTime("a", "", 10, 1, 2, 3, 20),
        SpanTime("b", "a", 2_009, 30, 40, 70, 9_170),
    }


def test_a_span_with_too_many_rows_is_cut_to_its_end(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of thirty days of a long path adds up its last windows, and says since when."""
    monkeypatch.setattr(path_times, "MAX_ROWS", 10)
    for minute in range(3):
        write(engine, minute, (BEFORE,), (EDGE,))
    with engine.begin() as connection:
        found = query_span_times(connection, "orders", START_US, START_US + 3 * WINDOW_US, parts=5)
    assert found is not None
    assert (found.windows, found.from_us) == (2, START_US + WINDOW_US)


def test_times_of_the_last_windows_are_parts_of_the_path(engine: Engine) -> None:
    """Of each part, window by window, with the messages for which a sample stands; the span ends with the last one."""
    write(engine, 0, (BEFORE,), (EDGE,))
    write(engine, 2, (), (LATER,))
    with engine.begin() as connection:
        assert query_timed_span(connection, "trades", WINDOW_US) is None
        last = query_timed_span(connection, "orders", WINDOW_US)
        found = query_timed_span(connection, "orders", 3 * WINDOW_US)
    assert last is not None
    assert (last.from_us, last.to_us, last.windows) == (START_US + 2 * WINDOW_US, START_US + 3 * WINDOW_US, 1)
    assert list(last.times) == [("a", "b")]
    assert found is not None
    assert (found.from_us, found.windows, sorted(found.times)) == (START_US, 2, [("", "a"), ("a", "b")])
    times = found.times["a", "b"]
    assert sorted(times.messages.tolist()) == [9, 2_000 * 90_000 / 2_048]
    assert sorted(times.times_us.tolist()) == [[10, 40, 50, 60], [30, 35, 70, 80]]
