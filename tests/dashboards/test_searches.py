"""Tests of searches: kept for a while, for as long as they may take, and never raised into a page."""

from __future__ import annotations

from pathlib import Path

from hopwatch.dashboards.reading.searches import LEAST_KEPT_S, MOST_KEPT, PATIENCE_S, Searches, WaysOf, _Looked
from hopwatch.dashboards.reading.whole_window import AllOfAWindow
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, reader, schema
from tests.cli.workspace import Workspace, one_of_ten_lost
from tests.dashboards.places import clock, fill, minutes, url_of
from tests.monitor.manual_clock import ManualClock
from tests.monitor.spooled import START_US, TERMS, ids


class SlowClock(ManualClock):
    """A clock by which each look at it takes a second."""

    def monotonic_s(self) -> float:
        """Return the moment, a second after the one before."""
        self.advance(1)
        return super().monotonic_s()


def searches(place: Workspace, now: ManualClock) -> Searches:
    """Return the searches of a dashboard over a place."""
    return Searches(settings.load(place.config, flags={}, environ={}), now)


def test_a_search_is_made_once_for_a_while(tmp_path: Path) -> None:
    """What went since is gone when it is made anew; of a lost message the store has the stamps."""
    place, now = Workspace(tmp_path).configure().watch(*one_of_ten_lost()), clock()
    made = searches(place, now)
    first = made.find("9", "")
    assert (len(first.stamps), len(first.lost), first.segments, first.looked_into) == (1, 1, 1, 1)
    next((tmp_path / "spool").rglob("*.seg")).unlink()
    assert made.find("9", "") is first
    now.advance(LEAST_KEPT_S)
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
    for number in range(1, MOST_KEPT + 1):
        made.find(str(number), "")
    assert made.find("0", "") is not first


def test_segments_are_looked_into_newest_first_until_there_is_no_more_time(tmp_path: Path) -> None:
    """One is looked into however slow it is; one that the monitor has deleted comes last."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    (path,) = (tmp_path / "spool").rglob("*.seg")
    now = SlowClock()
    looked = _Looked(now, now.monotonic_s() + PATIENCE_S)
    gone = tmp_path / "gone.seg"
    assert next(iter(looked.newest_first([gone, path]))) == path
    looked = _Looked(now, now.monotonic_s() + PATIENCE_S)
    found = list(looked.newest_first([gone] * 50))
    assert (looked.segments, looked.into) == (50, len(found))
    assert 1 <= len(found) < 50
    assert place.config.exists()


def test_without_a_configuration_nothing_is_searched() -> None:
    """Which is told; no terms are known then."""
    made = Searches(None, clock())
    assert made.find("9", "").trouble == ("no transport is configured",)
    assert made.terms_of("orders") is None


def test_until_when_stamps_are_kept_goes_by_the_terms(tmp_path: Path) -> None:
    """A store that was filled once keeps them, as far as anybody knows, for ever."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    asked = WaysOf((("orders", START_US, TERMS), ("orders", 0, None)))
    with schema.open_snapshot(dialect.create_engine(place.store_url)) as connection:
        here, nowhere = asked.read(connection)
    assert (here.kept_until_us, here.sides, nowhere.window) == (None, ("both", "both"), None)
    (tmp_path / "live").mkdir()
    with schema.open_snapshot(fill(url_of(tmp_path / "live"), *minutes(2))) as connection:
        here, nowhere = asked.read(connection)
    assert (here.kept_until_us, nowhere.kept_until_us) == (TERMS.kept_until_us(START_US), None)


def test_a_whole_window_is_that_of_the_reader(tmp_path: Path) -> None:
    """Its result, its lost ids; without terms no probe has to tell more than the minute."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost()[:2])
    with schema.open_snapshot(dialect.create_engine(place.store_url)) as connection:
        whole = AllOfAWindow("orders", START_US, "", TERMS).read(connection)
        without = AllOfAWindow("orders", START_US, "b", None).read(connection)
        assert AllOfAWindow("orders", START_US + 1, "", TERMS).read(connection) is None
        expected = reader.read_window(connection, "orders", START_US)
    assert whole is not None
    assert without is not None
    assert whole.result == expected
    assert [(one.node, one.kept, one.ids) for one in whole.lost] == [("b", 1, ((ids(9), ids(9).hex()),))]
    assert [hole.node for hole in whole.holes] == ["a", "b"]
    assert without.holes == ()
