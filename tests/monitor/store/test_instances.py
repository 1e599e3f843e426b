"""Tests of which probe instances there are: states, order, pages, and what is folded away, in either database."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.accounting.instances import InstanceClock, InstancePage, InstanceState
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US, ClockOffset, InstanceCounts
from hopwatch.monitor.metrics.snapshot import StoreFigures
from hopwatch.monitor.store import fencing, figures, instances, schema
from hopwatch.monitor.store.instances import InstanceFilter
from hopwatch.probes.contract.limits import MONITOR_STREAM
from tests.support.health_data import WATERMARK_US, book, holed, write
from tests.support.spool import STREAM_CONFIGS


def roll(engine: Engine, first: int = 0, most: int = 100, **asked: object) -> InstancePage:
    """Return the instances that are asked for."""
    with schema.open_snapshot(engine) as connection:
        return instances.query_instances(connection, InstanceFilter(**asked), first, most)  # type: ignore[arg-type]  # as a test gives them


def names(found: InstancePage) -> list[str]:
    """Return the probes in order."""
    return [one.book.probe for one in found.instances]


@pytest.mark.parametrize(
    ("told_ago_s", "state"),
    [
        (60, InstanceState.ALIVE),
        (60.000001, InstanceState.SILENT),
        (600, InstanceState.SILENT),
        (600.000001, InstanceState.RETIRED),
    ],
)
def test_silence_is_told_by_what_an_instance_completes(told_ago_s: float, state: InstanceState, engine: Engine) -> None:
    """Over a minute by the watermark it is silent, and retired once nothing waits for it."""
    write(engine, book(told_ago_s=told_ago_s))
    assert RETIRED_AFTER_US == 600_000_000
    assert [one.state for one in roll(engine).instances] == [state]


@pytest.mark.parametrize(
    "trouble",
    [
        holed(drops={}),
        book(drops={(0, "sink"): 1}),
        book(tallies=InstanceCounts(too_late=1)),
        book(tallies=InstanceCounts(implausible=1)),
        book(skew_us=1_000_001),
    ],
    ids=["missing", "drops", "too late", "implausible", "ahead"],
)
def test_what_tells_and_is_not_whole_is_troubled(trouble: object, engine: Engine) -> None:
    """An instance with any trouble is TROUBLED, and one whose clock is a little ahead is not."""
    write(engine, trouble)  # type: ignore[arg-type]  # a book
    write(engine, book(node="a", skew_us=1_000_000))
    assert [one.state for one in roll(engine).instances] == [InstanceState.TROUBLED, InstanceState.ALIVE]


def test_clocks_that_are_surely_wrong_are_found(engine: Engine) -> None:
    """Those of reporting instances that are five milliseconds off or more, whatever the error; the farthest first."""
    clocks = {"right": (-900, 4_000), "maybe": (4_999, 90_000), "ahead": (5_000, 5_100), "behind": (-9_000, -7_000)}
    written = [book(probe=probe, clock_offset=ClockOffset(*offset_us)) for probe, offset_us in clocks.items()]
    other = book(probe="other", stream="clicks", clock_offset=ClockOffset(8_000, 9_000))
    gone = [
        book(probe="bye", said_bye=True, clock_offset=ClockOffset(9_000, 9_000)),
        book(probe="silent", told_ago_s=61, clock_offset=ClockOffset(9_000, 9_000)),
    ]
    write(engine, *written, *gone, other, book(probe="unknown"))
    with engine.connect() as connection:
        assert [one.probe for one in instances.read_wrong_clocks(connection)] == ["other", "behind", "ahead"]
        found = instances.read_wrong_clocks(connection, "orders")
    assert found[0] == InstanceClock("orders", "b", "behind", ClockOffset(-9_000, -7_000))
    assert len(found) == 2


def test_books_come_back_as_they_were_written(engine: Engine) -> None:
    """Holes, drops and tallies included."""
    written = holed(tallies=InstanceCounts(62, 2, 6_000, 20, 14, 3))
    write(engine, written)
    assert [one.book for one in roll(engine).instances] == [written]


def test_every_instance_is_on_one_page(engine: Engine) -> None:
    """All pages together are the whole list in its order, for any size of page."""
    write(engine, *[book(probe=f"p{n}", told_ago_s=n * 7 % 90) for n in range(23)])
    whole = roll(engine)
    assert whole.found == len(set(names(whole))) == 23
    pages = [name for first in range(0, 30, 5) for name in names(roll(engine, first, 5))]
    assert pages == names(whole)


def test_what_is_searched_for_is_taken_as_it_is(engine: Engine) -> None:
    """In stream, node or probe, in any case; wildcards are themselves."""
    write(engine, book(probe="Pod-1"), book("a_b", "x"), book("axb", "y"), book("a", "100%"))
    found = {search: sorted(names(roll(engine, search=search))) for search in ("pod", "a_b", "%", "\\", "order")}
    assert found == {
        "pod": ["Pod-1"],
        "a_b": ["x"],
        "%": ["100%"],
        "\\": [],
        "order": ["100%", "Pod-1", "x", "y"],
    }


def test_the_long_gone_are_counted_and_not_listed(engine: Engine) -> None:
    """Byes after an hour, the others after a day; the monitor's own pulse is no instance."""
    write(
        engine,
        book(probe="here"),
        book(probe="bye", said_bye=True, told_ago_s=3_600),
        book(probe="long ago", said_bye=True, told_ago_s=3_601),
        book(probe="killed", told_ago_s=86_400),
        book(probe="killed long ago", told_ago_s=86_401),
        book(probe="pulse", stream=MONITOR_STREAM),
    )
    lately = roll(engine)
    assert names(lately) == ["killed", "here", "bye"]
    assert lately.folded == {InstanceState.BYE: 1, InstanceState.RETIRED: 1}
    everybody = roll(engine, include_gone=True)
    assert (everybody.found, everybody.folded) == (5, {})
    assert everybody.counts == {InstanceState.RETIRED: 2, InstanceState.ALIVE: 1, InstanceState.BYE: 2}


def test_metrics_count_the_same_instances(engine: Engine) -> None:
    """Alive and silent are what the monitor exports."""
    books = [book(probe=f"p{n}", told_ago_s=n * 30) for n in range(30)]
    write(engine, *books, holed(probe="q"), book(probe="r", said_bye=True))
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, STREAM_CONFIGS)
    counts = roll(engine).counts
    with schema.open_snapshot(engine) as connection:
        told: StoreFigures = figures.read_figures(connection, STREAM_CONFIGS)
    alive = counts[InstanceState.ALIVE] + counts[InstanceState.TROUBLED]
    assert told.instances == {"alive": alive, "silent": counts[InstanceState.SILENT]}
    assert roll(engine).moment_us == WATERMARK_US
