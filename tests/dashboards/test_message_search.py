"""Tests of searches: kept for a while, for as long as they may take, and never raised into a page."""

from __future__ import annotations

from pathlib import Path

from hopwatch.dashboards.queries.message_search import (
    MAX_ENTRIES,
    MIN_KEPT_S,
    SEARCH_TIMEOUT_S,
    MessagePathsQuery,
    MessageSearch,
    _SegmentScan,
)
from hopwatch.dashboards.queries.window_detail import WindowDetailQuery
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, reader, schema
from tests.support.clock import ManualClock
from tests.support.dashboard_stores import build_windows, clock, fill, store_url
from tests.support.spool import START_US, WINDOW_POLICY, pack_ids
from tests.support.workspace import Workspace, one_of_ten_lost


class SlowClock(ManualClock):
    """A clock by which each look at it takes a second."""

    def monotonic_s(self) -> float:
        """Return the moment, a second after the one before."""
        self.advance(1)
        return super().monotonic_s()


def searches(place: Workspace, now: ManualClock) -> MessageSearch:
    """Return the searches of a dashboard over a place."""
    return MessageSearch(settings.load(place.config, flags={}, environ={}), now)


def test_a_search_is_made_once_for_a_while(tmp_path: Path) -> None:
    """A search is cached for a while, and a later one no longer finds what has gone since."""
    place, now = Workspace(tmp_path).configure().watch(*one_of_ten_lost()), clock()
    made = searches(place, now)
    first = made.find("9", "")
    assert (len(first.stamps), len(first.lost), first.segments, first.searched_segments) == (1, 1, 1, 1)
    next((tmp_path / "spool").rglob("*.seg")).unlink()
    assert made.find("9", "") is first
    now.advance(MIN_KEPT_S)
    assert (made.find("9", "").segments, made.find("9", "").stamps) == (0, first.stamps)


def test_a_search_that_took_long_rests_long(tmp_path: Path) -> None:
    """Twenty times as long as it took, so that a page that stays open does not read all the time."""
    place, now = Workspace(tmp_path).configure().watch(*one_of_ten_lost()), SlowClock()
    made = searches(place, now)
    first = made.find("9", "")
    now.advance(10)
    assert made.find("9", "") is first


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    """The ones asked for last."""
    made = searches(Workspace(tmp_path).configure().watch(*one_of_ten_lost()), clock())
    first = made.find("0", "")
    for number in range(1, MAX_ENTRIES + 1):
        made.find(str(number), "")
    assert made.find("0", "") is not first


def test_segments_are_looked_into_newest_first_until_there_is_no_more_time(tmp_path: Path) -> None:
    """One is looked into however slow it is; one that the monitor has deleted comes last."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    (path,) = (tmp_path / "spool").rglob("*.seg")
    now = SlowClock()
    looked = _SegmentScan(now, now.monotonic_s() + SEARCH_TIMEOUT_S)
    gone = tmp_path / "gone.seg"
    assert next(iter(looked.newest_first([gone, path]))) == path
    looked = _SegmentScan(now, now.monotonic_s() + SEARCH_TIMEOUT_S)
    found = list(looked.newest_first([gone] * 50))
    assert (looked.segments, looked.scanned) == (50, len(found))
    assert 1 <= len(found) < 50
    assert place.config.exists()


def test_without_a_configuration_nothing_is_searched() -> None:
    """Without a configuration nothing is searched, and the answer says so."""
    made = MessageSearch(None, clock())
    assert made.find("9", "").errors == ("no transport is configured",)
    assert made.window_terms("orders") is None


def test_until_when_stamps_are_kept_goes_by_the_terms(tmp_path: Path) -> None:
    """A store that was filled once keeps them, as far as anybody knows, for ever."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    asked = MessagePathsQuery((("orders", START_US, WINDOW_POLICY), ("orders", 0, None)))
    with schema.open_snapshot(dialect.create_engine(place.store_url)) as connection:
        here, nowhere = asked.run(connection)
    assert (here.kept_until_us, here.sides, nowhere.window) == (None, ("both", "both"), None)
    (tmp_path / "live").mkdir()
    with schema.open_snapshot(fill(store_url(tmp_path / "live"), *build_windows(2))) as connection:
        here, nowhere = asked.run(connection)
    assert (here.kept_until_us, nowhere.kept_until_us) == (WINDOW_POLICY.kept_until_us(START_US), None)


def test_a_whole_window_is_that_of_the_reader(tmp_path: Path) -> None:
    """Its result, its lost ids; without terms no probe has to tell more than the minute."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost()[:2])
    with schema.open_snapshot(dialect.create_engine(place.store_url)) as connection:
        whole = WindowDetailQuery("orders", START_US, "", WINDOW_POLICY).run(connection)
        without = WindowDetailQuery("orders", START_US, "b", None).run(connection)
        assert WindowDetailQuery("orders", START_US + 1, "", WINDOW_POLICY).run(connection) is None
        expected = reader.read_window(connection, "orders", START_US)
    assert whole is not None
    assert without is not None
    assert whole.result == expected
    assert [(one.node, one.count, one.ids) for one in whole.lost_ids] == [("b", 1, ((pack_ids(9), pack_ids(9).hex()),))]
    assert [hole.node for hole in whole.holes] == ["a", "b"]
    assert without.holes == ()
