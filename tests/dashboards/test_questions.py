"""Tests of what the pages ask: the answers are those of ``hopwatch report``."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from dashboards.reading.questions import DAY_US, HOUR_US, HowAllStands, HowAStreamWent, OneWindow
from dashboards.reading.told import Edge
from dashboards.views import judged
from monitor.results import iso
from monitor.store import dialect, reader, rollups, schema
from tests.dashboards.places import chain, fill, minutes, url_of
from tests.monitor.cli.workplace import Workplace, one_of_ten_lost
from tests.monitor.spooled import START_US

MINUTE_US = 60_000_000


def went(engine: Engine, step_us: int, to_us: int) -> HowAStreamWent:
    """Return the question of the stream that tests look at, from its first window on."""
    del engine
    return HowAStreamWent("orders", START_US, to_us, step_us)


def watched(folder: Path) -> Engine:
    """Return a store that the monitor's own code has filled: ten messages, one lost."""
    place = Workplace(folder).configure().watch(*one_of_ten_lost())
    return dialect.engine(place.store_url)


def test_steps_and_whole_are_those_of_the_report(tmp_path: Path) -> None:
    """By the minute, the hour and the day, field by field, percentiles included."""
    engine = watched(tmp_path)
    windows = reader.report(engine)["streams"][0]["windows"]
    (hour,) = rollups.report(engine, "hour")["streams"][0]["hours"]
    with schema.reading(engine) as connection:
        by_minute = went(engine, MINUTE_US, START_US + HOUR_US).read(connection)
        by_hour = went(engine, HOUR_US, START_US + HOUR_US).read(connection)
        by_day = went(engine, DAY_US, START_US + DAY_US).read(connection)
    assert [iso(judged.start_us(one)) for one in by_minute.steps] == [one["window_start"] for one in windows]
    assert [one.lost for one in by_minute.steps] == [one["lost"] for one in windows]
    assert by_hour.steps == (by_hour.whole,)
    assert by_minute.whole == by_hour.whole == by_day.whole == by_day.steps[0]
    assert by_hour.whole is not None
    assert (by_hour.whole.known, by_hour.whole.lost_lower) == (hour["known"], hour["lost_lower"]) == (10, 1)
    assert by_minute.graph.edges == (Edge(0, 1, is_must=True),)


def test_one_window_is_that_of_the_store(tmp_path: Path) -> None:
    """And none where it has none."""
    with schema.reading(watched(tmp_path)) as connection:
        found = OneWindow("orders", START_US).read(connection)
        assert found == reader.window(connection, "orders", START_US)
        assert OneWindow("orders", START_US - MINUTE_US).read(connection) is None


def test_a_store_that_was_filled_once_has_no_watermark(tmp_path: Path) -> None:
    """Nothing moves it; one of a stream has one."""
    with schema.reading(watched(tmp_path)) as connection:
        assert HowAllStands().read(connection).watermark_us is None
    (tmp_path / "live").mkdir()
    with schema.reading(fill(url_of(tmp_path / "live"), *minutes(2))) as connection:
        assert HowAllStands().read(connection).watermark_us is not None


def test_a_stream_of_which_nothing_came_is_there_too(tmp_path: Path) -> None:
    """Without a window, and its range is empty; one that the store does not know has no node."""
    with schema.reading(fill(url_of(tmp_path), pathways={"orders": chain("a", "b")})) as connection:
        (only,) = HowAllStands().read(connection).streams
        assert (only.stream, only.newest, only.lately, only.first_us) == ("orders", None, (), None)
        nothing = HowAStreamWent("orders", START_US, START_US + HOUR_US, MINUTE_US).read(connection)
        assert (nothing.steps, nothing.whole, nothing.graph.nodes) == ((), None, ("a", "b"))
        assert HowAStreamWent("nobody", 0, HOUR_US, HOUR_US).read(connection).graph.nodes == ()
