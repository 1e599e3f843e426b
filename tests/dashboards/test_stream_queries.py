"""Tests of what the pages ask: the answers are those of ``hopwatch report``."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, event

from hopwatch.dashboards.queries import overview
from hopwatch.dashboards.queries.models import Edge
from hopwatch.dashboards.queries.query_cache import Query
from hopwatch.dashboards.queries.stream_queries import (
    DAY_US,
    HOUR_US,
    StreamRangeQuery,
    StreamsOverviewQuery,
    WindowQuery,
    query_running_from_us,
)
from hopwatch.display import step_marks
from hopwatch.monitor.results import Status, format_iso
from hopwatch.monitor.store import dialect, reader, rollups, schema
from hopwatch.monitor.store.writer import set_values
from tests.support.dashboard_stores import build_windows, chain, fill, store_url, without_verdict
from tests.support.spool import START_US
from tests.support.windows import window
from tests.support.workspace import Workspace, one_of_ten_lost

MINUTE_US = 60_000_000
LIVE_STATEMENTS = 4
"""What an hour that is not rolled up yet takes at most."""


def went(engine: Engine, step_us: int, to_us: int) -> StreamRangeQuery:
    """Return the question of the stream that tests look at, from its first window on."""
    del engine
    return StreamRangeQuery("orders", START_US, to_us, step_us)


def watched(folder: Path) -> Engine:
    """Return a store that the monitor's own code has filled: ten messages, one lost."""
    place = Workspace(folder).configure().watch(*one_of_ten_lost())
    return dialect.create_engine(place.store_url)


def test_steps_and_whole_are_those_of_the_report(tmp_path: Path) -> None:
    """By the minute, the hour and the day, field by field, percentiles included."""
    engine = watched(tmp_path)
    windows = reader.read_report(engine)["streams"][0]["windows"]
    (hour,) = rollups.read_report(engine, "hour")["streams"][0]["hours"]
    with schema.open_snapshot(engine) as connection:
        by_minute = went(engine, MINUTE_US, START_US + HOUR_US).run(connection)
        by_hour = went(engine, HOUR_US, START_US + HOUR_US).run(connection)
        by_day = went(engine, DAY_US, START_US + DAY_US).run(connection)
    assert [format_iso(step_marks.get_start_us(one)) for one in by_minute.steps] == [
        one["window_start"] for one in windows
    ]
    assert [one.lost for one in by_minute.steps] == [one["lost"] for one in windows]
    assert by_hour.steps == (by_hour.total,)
    assert by_minute.total == by_hour.total == by_day.total == by_day.steps[0]
    assert by_hour.total is not None
    assert (by_hour.total.known, by_hour.total.lost_lower) == (hour["known"], hour["lost_lower"]) == (10, 1)
    assert by_minute.graph.edges == (Edge(0, 1, is_required=True),)


def test_one_window_is_that_of_the_store(tmp_path: Path) -> None:
    """And none where it has none."""
    with schema.open_snapshot(watched(tmp_path)) as connection:
        found = WindowQuery("orders", START_US).run(connection)
        assert found == reader.read_window(connection, "orders", START_US)
        assert WindowQuery("orders", START_US - MINUTE_US).run(connection) is None


def test_a_store_that_was_filled_once_has_no_watermark(tmp_path: Path) -> None:
    """Nothing moves it; one of a stream has one."""
    with schema.open_snapshot(watched(tmp_path)) as connection:
        assert StreamsOverviewQuery().run(connection).watermark_us is None
    (tmp_path / "live").mkdir()
    with schema.open_snapshot(fill(store_url(tmp_path / "live"), *build_windows(2))) as connection:
        assert StreamsOverviewQuery().run(connection).watermark_us is not None


def test_hours_are_over_by_the_time_of_the_monitor(tmp_path: Path) -> None:
    """Not while the watermark lies in one or a window of it waits; of a store that was filled once all are."""
    with schema.open_snapshot(watched(tmp_path)) as connection:
        assert query_running_from_us(connection, "orders", HOUR_US) is None
    (tmp_path / "live").mkdir()
    engine = fill(store_url(tmp_path / "live"), *build_windows(2))
    hour = START_US // HOUR_US * HOUR_US

    def running(watermark_us: int, stream: str = "orders") -> int | None:
        with engine.execution_options(writes=True).begin() as connection:
            set_values(connection, {"watermark_us": str(watermark_us)})
            return query_running_from_us(connection, stream, HOUR_US)

    assert running(hour + HOUR_US - 1) == running(0) == hour
    assert running(hour + HOUR_US) == running(hour + 2 * HOUR_US - 1) == hour + HOUR_US
    assert running(hour + HOUR_US, "unknown") == hour + HOUR_US
    with schema.open_snapshot(engine) as connection:
        assert query_running_from_us(connection, "orders", MINUTE_US) is None
        assert went(engine, HOUR_US, START_US + HOUR_US).run(connection).running_from_us == hour + HOUR_US
    (tmp_path / "waits").mkdir()
    waits = without_verdict(window(2, status=Status.PROVISIONAL))
    engine = fill(store_url(tmp_path / "waits"), *build_windows(2), waits)
    assert running(hour + 5 * HOUR_US) == hour


def test_a_stream_of_which_nothing_came_is_there_too(tmp_path: Path) -> None:
    """Without a window, and its range is empty; one that the store does not know has no node."""
    with schema.open_snapshot(fill(store_url(tmp_path), pathways={"orders": chain("a", "b")})) as connection:
        (only,) = StreamsOverviewQuery().run(connection).streams
        assert (only.stream, only.newest, only.recent_windows, only.first_us) == ("orders", None, (), None)
        nothing = StreamRangeQuery("orders", START_US, START_US + HOUR_US, MINUTE_US).run(connection)
        assert (nothing.steps, nothing.total, nothing.graph.nodes) == ((), None, ("a", "b"))
        assert StreamRangeQuery("nobody", 0, HOUR_US, HOUR_US).run(connection).graph.nodes == ()


def counted(engine: Engine, *questions: Query[object]) -> list[int]:
    """Return how many statements each question takes, those of the check of the store's version included."""
    found: list[int] = []

    def note(*_: object) -> None:
        found[-1] += 1

    event.listen(engine, "before_cursor_execute", note)
    for question in questions:
        found.append(0)
        with schema.open_snapshot(engine) as connection:
            question.run(connection)
    event.remove(engine, "before_cursor_execute", note)
    return found


def test_a_few_statements_answer_for_all_streams(tmp_path: Path) -> None:
    """As many for forty streams as for one."""
    (one_only := tmp_path / "one").mkdir()
    few = counted(fill(store_url(one_only), *build_windows(3)), StreamsOverviewQuery())
    many = [window for number in range(40) for window in build_windows(3, stream=f"s{number:02d}")]
    assert counted(fill(store_url(tmp_path), *many), StreamsOverviewQuery()) == few


def test_a_range_takes_no_more_statements_than_an_hour(tmp_path: Path) -> None:
    """A month takes no more statements than an hour, and fewer when it is asked for again."""
    engine = fill(store_url(tmp_path), *build_windows(), *[window(60 * 24 * day) for day in range(1, 6)])
    hour, month = (
        StreamRangeQuery("orders", START_US, START_US + 30 * DAY_US, step_us) for step_us in (60_000_000, HOUR_US)
    )
    first, again = counted(engine, hour, hour)
    assert again < first
    assert counted(engine, month)[0] <= first + LIVE_STATEMENTS * 6


def test_each_stream_has_its_newest_final_window_and_its_last_hour(tmp_path: Path) -> None:
    """Also where that is long ago, or nothing of the last hour is final yet."""
    old = build_windows(3, stream="old")
    waits = [
        window(0, stream="waits"),
        *(window(n, stream="waits", status=Status.OPEN, verdict=None) for n in (90, 91)),
    ]
    now = [window(n, stream="now", lost={"b": 3}) for n in range(100, 103)]
    engine = fill(store_url(tmp_path), *old, *waits, *now)
    with schema.open_snapshot(engine) as connection:
        standing = StreamsOverviewQuery().run(connection)
        expected = {name: reader.read_newest_final_us(connection, name) for name in ("old", "waits", "now")}
        for one in standing.streams:
            assert one.newest == reader.read_window(connection, one.stream, expected[one.stream] or 0)
    assert {one.stream: [at.start_us for at in one.recent_windows] for one in standing.streams} == {
        "old": [],
        "waits": [START_US + n * MINUTE_US for n in (90, 91)],
        "now": [START_US + n * MINUTE_US for n in (100, 101, 102)],
    }


def test_streams_that_stopped_at_many_moments_are_told(tmp_path: Path) -> None:
    """More moments than a database takes in one condition."""
    engine = fill(store_url(tmp_path), *build_windows(3))
    moments = {f"s{number}": START_US - number for number in range(1_100)} | {"orders": START_US - 1}
    with schema.open_snapshot(engine) as connection:
        found = overview._query_recent_windows(connection, moments)
    assert {name: len(of_stream) for name, of_stream in found.items()} == {"orders": 3}


def test_a_step_has_no_more_nodes_than_are_shown(tmp_path: Path) -> None:
    """Those that lost most, the last one and the one that is looked at; the whole and the window have all."""
    names = tuple(f"n{number}" for number in range(20))
    engine = fill(
        store_url(tmp_path), *build_windows(3, names=names, lost={"n7": 9}), window(3, names=names, lost={"n4": 9})
    )
    question = StreamRangeQuery(
        "orders", START_US, START_US + HOUR_US, MINUTE_US, "n2", START_US + 3 * MINUTE_US, max_nodes=1
    )
    with schema.open_snapshot(engine) as connection:
        found = question.run(connection)
    shown = {tuple(node.node for node in step.nodes) for step in found.steps}
    assert len(shown) == 1
    assert {"n2", "n4", "n7", "n19"} <= set(*shown)
    assert len(*shown) < len(names)
    assert found.total is not None
    assert found.window is not None
    assert len(found.total.nodes) == len(found.window.nodes) == len(names)
