"""Tests of what the store says of the monitor's own work, in either database."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Engine

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.kernel.books import BatchRun, Book, InstanceCounts
from hopwatch.monitor.metrics.snapshot import InitialState, StoreFigures
from hopwatch.monitor.payloads import SET_ASIDE_REASONS, SetAside
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import figures, schema, writer
from hopwatch.probes.contract.limits import MONITOR_STREAM, WINDOW_US
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.spool import START_US, STREAM_CONFIGS

WATERMARK_US = START_US + 3_600_000_000


def book(probe: str, told_ago_s: int, *, said_bye: bool = False, missing: int = 0) -> Book:
    """Return the book of an instance that has told up to so many seconds before the watermark."""
    told_us = WATERMARK_US - told_ago_s * 1_000_000
    first = BatchRun(0, 0, START_US, START_US)
    rest = BatchRun(missing + 1, missing + 1, told_us, told_us)
    tallies = InstanceCounts(2, 1, 50, 3, 4, 5)
    return Book("orders", "a", probe, START_US, START_US, told_us, (first, rest), said_bye, tallies=tallies)


def put(engine: Engine, *books: Book, set_aside: tuple[SetAside, ...] = (), holes: tuple[Hole, ...] = ()) -> None:
    """Write what came in."""
    changes = writer.Changes(WATERMARK_US, books=list(books), set_aside=list(set_aside), holes=list(holes))
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, changes)


def read(engine: Engine) -> StoreFigures:
    """Return the figures."""
    with schema.open_snapshot(engine) as connection:
        return figures.read_figures(connection, STREAM_CONFIGS)


def test_an_empty_store_says_zero(engine: Engine) -> None:
    """Of all that it always has; of each reason of records set aside too, so that the first record is an increase."""
    none = dict.fromkeys(SET_ASIDE_REASONS, 0)
    waiting, instances = {"OPEN": 0, "PROVISIONAL": 0}, {"alive": 0, "silent": 0}
    nothing = StoreFigures(set_aside=none, waiting=waiting, instances=instances)
    assert read(engine) == nothing


def test_instances_are_alive_silent_or_gone(engine: Engine) -> None:
    """By what they told of last, against the watermark; a bye ends it, and so do ten minutes. The pulse is none."""
    put(
        engine,
        book("p1", 5, missing=2),
        book("p2", 60),
        book("p3", 61, missing=3),
        book("p4", 600),
        book("p5", 601, missing=100),
        book("p6", 5, said_bye=True, missing=100),
        replace(book("p7", 5, missing=100), stream=MONITOR_STREAM),
    )
    found = read(engine)
    assert found.instances == {"alive": 2, "silent": 2}
    assert found.missing_batches == 5


def test_the_accounts_are_those_of_the_report(engine: Engine) -> None:
    """With what had aged out counted in records."""
    torn = SetAside("/spool/1.seg", 0, 10, START_US, "torn_tail", "the record ends early")
    put(engine, book("p1", 5), book("p2", 5), set_aside=(torn,), holes=(Hole("0", 5, 7, 0, 0), Hole("1", 0, 0, 0, 0)))
    found = read(engine)
    assert (found.records, found.observations, found.duplicate_batches) == (5, 100, 2)
    assert (found.too_late, found.implausible) == (8, 10)
    assert {reason: count for reason, count in found.set_aside.items() if count} == {"torn_tail": 1}
    assert found.aged_out == 4


def test_windows_that_wait_are_counted_by_status(engine: Engine) -> None:
    """Final ones do not wait."""
    base = build_conclusion().result
    statuses = [Status.OPEN, Status.PROVISIONAL, Status.PROVISIONAL, Status.FINAL]
    for minute, status in enumerate(statuses):
        moment_us = WATERMARK_US - (1 + minute) * WINDOW_US
        write_conclusions(engine, build_conclusion(replace(base, window_start_us=moment_us, status=status)))
    put(engine)
    assert read(engine).waiting == {"OPEN": 1, "PROVISIONAL": 2}


def test_a_beginning_is_the_newest_final_window_of_each_stream(engine: Engine) -> None:
    """And which windows were judged already; streams that are not asked for, and those without windows, have none."""
    base = build_conclusion().result
    kept = [
        replace(base, window_start_us=START_US + minute * WINDOW_US, status=status, known=minute)
        for minute, status in enumerate([Status.FINAL, Status.AMENDED, Status.PROVISIONAL])
    ]
    write_conclusions(engine, *map(build_conclusion, kept), build_conclusion(replace(base, stream="refunds")))
    put(engine)
    with schema.open_snapshot(engine) as connection:
        found = figures.read_starting_point(
            connection, {"orders": STREAM_CONFIGS["orders"], "new": STREAM_CONFIGS["orders"]}
        )
    judged = {("orders", START_US), ("orders", START_US + WINDOW_US)}
    assert found == InitialState(WATERMARK_US, (kept[1],), judged)


def test_a_window_that_nothing_can_change_is_not_judged_again(engine: Engine) -> None:
    """A window that nothing can change is not judged again, and is still the newest."""
    write_conclusions(engine, build_conclusion())
    with engine.execution_options(writes=True).begin() as connection:
        writer.drop_tallies(connection, [("orders", START_US)])
    with schema.open_snapshot(engine) as connection:
        found = figures.read_starting_point(connection, STREAM_CONFIGS)
    assert (len(found.newest), found.judged) == (1, set())
