"""Tests of the bench of the dashboard: its store is as a monitor leaves it, and what is counted is what happened."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from bench import month, query_cost
from bench.dashboard import CrowdTimes, Line, PageTimes, QueryTimes, configuration
from bench.dashboard_server import OURS, PLAIN, ServerFailedError, run_server
from bench.dashboard_tables import dashboard
from bench.month import GREAT, Month
from bench.truth import WrongResultError
from bench.viewers import looked
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, reader, rollups, schema
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from tests.bench.contestants import quiet

LITTLE = Month(days=2, nodes=2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store of two days, and a configuration that names it."""
    folder = tmp_path_factory.mktemp("month")
    patch = pytest.MonkeyPatch()
    patch.setattr(month, "SMALL", 1)
    engine = dialect.create_engine(url_of(folder))
    month.fill(engine, LITTLE, quiet)
    engine.dispose()
    (folder / "hopwatch.toml").write_text(configuration(url_of(folder), LITTLE))
    patch.undo()
    return folder


def url_of(folder: Path) -> str:
    """Return the URL of the store in a folder."""
    return f"sqlite:///{folder}/month.db"


def test_the_store_is_as_a_monitor_leaves_it(place: Path) -> None:
    """Hours and days are those of their windows, copied days too; the last hours are live, the last minutes wait."""
    engine = dialect.create_engine(url_of(place))
    with schema.open_snapshot(engine) as connection:
        windows = reader.read_windows(connection, GREAT, 0, 2**62)
        hours, days = (of(connection, GREAT, None, None) for of in (rollups.read_hours, rollups.read_days))
        live = rollups.read_live_hours(connection, GREAT)
    assert len(windows) == LITTLE.minutes
    assert sum(not one.status.is_final for one in windows) == month.PENDING
    assert [one.windows for one in days] == [1440, LITTLE.minutes - 1440 - month.PENDING]
    assert [one.known for one in days] == [
        sum(one.known for one in hours if one.start_us // DAY_US == day.start_us // DAY_US) for day in days
    ]
    last_us = (LITTLE.end_us - 1) // HOUR_US * HOUR_US
    assert live == [last_us - HOUR_US, last_us]
    assert settings.load(place / "hopwatch.toml", flags={}, environ={}).store.url == url_of(place)


def test_questions_are_timed_and_checked(place: Path) -> None:
    """Each has a number of statements; pandas reads all of what it is asked for."""
    told = query_cost.ours(place, url_of(place), LITTLE.days, LITTLE.nodes)
    assert set(told) == {query_cost.STANDING, "1h", "6h", "24h", "7d", "30d"}
    assert all(0 < one["statements"] < 30 and one["first_ms"] > 0 for one in told.values())
    assert query_cost.plain(place, url_of(place), LITTLE.days, LITTLE.nodes, ["1h", "30d"]).keys() == {"1h", "30d"}


def test_what_was_not_read_whole_is_told(place: Path) -> None:
    """With what there is and what was read."""
    with pytest.raises(WrongResultError, match="pandas read 120 node-windows of 1h, there are 180"):
        query_cost.plain(place, url_of(place), LITTLE.days, 3, ["1h"])
    with pytest.raises(WrongResultError, match="1h has 0 final windows, there are 57"):
        query_cost.ours(place, url_of(place), 4, LITTLE.nodes)


@pytest.mark.soak  # a bench
def test_viewers_of_the_dashboard_share_their_questions(place: Path, tmp_path: Path) -> None:
    """Those who come at one time cost the database less than a trip each; the plain page a trip each and refresh."""
    with run_server(OURS, tmp_path, str(place / "hopwatch.toml")) as server:
        samples = []
        spans_s = looked(server.url, [f"stream={GREAT}"] * 8, 1, lambda: samples.append(server.sample()))
        after = server.sample()
        assert len(spans_s) == 8
        assert after.trips - samples[0].trips < 8
        assert after.cpu_s > 0
    with run_server(PLAIN, tmp_path, url_of(place), GREAT, str(LITTLE.end_us)) as server:
        samples = []
        looked(server.url, [""] * 3, 1, lambda: samples.append(server.sample()))
        assert server.sample().trips - samples[0].trips == 3


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    """With what it said last."""
    with (
        pytest.raises(ServerFailedError, match=r"(?s)the dashboard did not start: .*IndexError"),
        run_server(OURS, tmp_path),
    ):
        pass


def test_tables_have_every_line() -> None:
    """Questions with ratios, pages with goals, viewers with what a refresh costs."""
    lines: list[Line] = [
        QueryTimes("SQLite", "30d", 900.0, 100.0, 17, 36_000.0),
        PageTimes("SQLite", "overview, new session", 20, 0.5, 0.75, 1.0, 2.0),
        CrowdTimes("SQLite", "ours", 50, 300, 0.08, 0.7, 0.04, 0.4, 231_000_000, 0.05, 0.07),
    ]
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as told:
        console.print(dashboard(lines))
    assert "40.00" in told.get()
    assert "4.00" in told.get()
    assert "0.080" in told.get()
