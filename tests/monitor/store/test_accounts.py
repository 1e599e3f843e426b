"""Tests of what a micro-batch leaves in the store beside windows: books, records set aside, segments, the watermark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import Engine

from hopwatch.monitor.kernel.books import BatchRun, Book, ClockOffset, InstanceCounts
from hopwatch.monitor.kernel.books import judge_book as judge
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.store import fencing, reader, writer
from hopwatch.monitor.store.writer import Changes
from tests.support.conclusions import dump_tables
from tests.support.spool import START_MS, START_US, at_us

BOOK = Book(
    "orders",
    "a",
    "host-1 '[b]",
    at_us(-10),
    first_arrival_us=at_us(1),
    last_arrival_us=at_us(70),
    runs=(BatchRun(0, 2, at_us(0), at_us(20)), BatchRun(4, 4, at_us(40), at_us(65))),
    said_bye=True,
    skew_us=-3,
    clock_offset=ClockOffset(-5, 2_700),
    drops={(START_MS, "queue full"): 3, (START_MS, "a\"b'c"): 1},
    sent={START_MS: False, START_MS + 60_000: True},
    tallies=InstanceCounts(6, 1, 500, 40, 30, 20),
)
AFTER = (BatchRun(0, 0, at_us(9_000), at_us(9_000)),)
LONG_AGO = (BatchRun(0, 0, at_us(-9_000), at_us(-9_000)),)
BROKEN = SetAside("s.seg", 6, 10, at_us(70), "bad_crc", "CRC-32C 0x1 was written, 0x2 was read")


def write(engine: Engine, changes: Changes) -> None:
    """Write the changes in a transaction of their own."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, changes)


def accounts(engine: Engine) -> reader.Json:
    """Return the monitor's own accounting."""
    with engine.begin() as connection:
        return reader.read_accounts(connection)


def test_a_book_is_read_as_it_was_written(engine: Engine) -> None:
    """Runs and holes, drops by window and cause, windows sent, tallies."""
    other = replace(
        BOOK, probe="other", clock_offset=None, runs=(), drops={}, sent={}, said_bye=False, tallies=InstanceCounts()
    )
    write(engine, Changes(0, books=[BOOK, other]))
    with engine.begin() as connection:
        assert list(reader.read_books(connection)) == [BOOK, other]


def test_the_newest_book_of_an_instance_stands(engine: Engine) -> None:
    """Another epoch is another instance."""
    for book in (BOOK, replace(BOOK, skew_us=5), replace(BOOK, epoch_us=at_us(0))):
        write(engine, Changes(0, books=[book]))
    with engine.begin() as connection:
        assert [(book.epoch_us, book.skew_us) for book in reader.read_books(connection)] == [
            (at_us(-10), 5),
            (at_us(0), -3),
        ]


def test_every_book_with_a_say_in_a_window_is_read_for_it(engine: Engine) -> None:
    """The books read for a window are those that lived then, may hold stamps of it, or sent or dropped some."""
    silent = replace(BOOK, drops={}, sent={}, said_bye=False)
    alive = replace(silent, first_arrival_us=at_us(0), runs=(BatchRun(0, 0, at_us(0), at_us(90)),))
    written = [
        replace(alive, probe="alive"),
        replace(alive, probe="may-hold", epoch_us=at_us(-900), runs=(BatchRun(0, 0, at_us(-900), at_us(-500)),)),
        replace(alive, probe="clock-ahead", epoch_us=at_us(9_000)),
        replace(alive, probe="sent", runs=(BatchRun(0, 0, at_us(-9_000), at_us(-9_000)),), sent={START_MS: False}),
        replace(
            alive, probe="dropped", runs=(BatchRun(0, 0, at_us(-9_000), at_us(-9_000)),), drops={(START_MS, "full"): 1}
        ),
        replace(
            alive,
            probe="before",
            epoch_us=at_us(-9_000),
            first_arrival_us=at_us(-9_000),
            last_arrival_us=at_us(-9_000),
            runs=LONG_AGO,
        ),
        replace(alive, probe="backwards", epoch_us=at_us(9_000), first_arrival_us=at_us(9_000)),
        replace(alive, probe="after", epoch_us=at_us(9_000), first_arrival_us=at_us(9_000), runs=AFTER),
        replace(alive, probe="elsewhere", stream="trades"),
    ]
    write(engine, Changes(0, books=written))
    start, end, horizon = (np.array([us]) for us in (START_US, START_US + 60_000_000, START_US + 210_000_000))
    having_a_say = {one.probe for one in written if judge(one, start, end, horizon).has_a_say[0]} - {"elsewhere"}
    with engine.begin() as connection:
        found = {one.probe for one in reader.read_window_books(connection, "orders", START_US, int(horizon[0]))}
    assert having_a_say == {"alive", "may-hold", "clock-ahead", "sent", "dropped"}
    # What is read beyond them is judged all the same.
    assert found - having_a_say == {"backwards"}
    assert having_a_say <= found


def test_an_empty_store_accounts_for_nothing(engine: Engine) -> None:
    """Zeroes, not nulls."""
    assert accounts(engine) == {
        "records": 0,
        "batches": 0,
        "duplicate_batches": 0,
        "observations": 0,
        "too_late": 0,
        "implausible": 0,
        "set_aside": {},
    }


def test_accounts_add_up_over_instances_and_reasons(engine: Engine) -> None:
    """Records are batches and what was set aside; the pulse of the monitor counts like any other."""
    pulse = replace(BOOK, stream="_hopwatch", node="monitor", tallies=InstanceCounts(batches=7))
    places = [
        replace(BROKEN, position=n, reason=reason) for n, reason in enumerate(["torn_tail", "bad_crc", "bad_crc"])
    ]
    write(engine, Changes(0, books=[BOOK, replace(BOOK, epoch_us=0), pulse], set_aside=places))
    assert accounts(engine) == {
        "records": 22,
        "batches": 19,
        "duplicate_batches": 2,
        "observations": 1_000,
        "too_late": 60,
        "implausible": 40,
        "set_aside": {"bad_crc": 2, "torn_tail": 1},
    }


def test_a_record_is_set_aside_once(engine: Engine) -> None:
    """Its place is its key: reading a segment again adds nothing."""
    write(engine, Changes(0, set_aside=[BROKEN]))
    write(engine, Changes(0, set_aside=[BROKEN, replace(BROKEN, position=99)]))
    assert accounts(engine)["set_aside"] == {"bad_crc": 2}
    assert dump_tables(engine)["set_aside"][0] == ("s.seg", 6, 10, at_us(70), "bad_crc", BROKEN.message)


def test_an_empty_record_and_the_torn_tail_behind_it_are_two(engine: Engine) -> None:
    """An empty record and a torn tail in the same place are two records."""
    write(engine, Changes(0, set_aside=[replace(BROKEN, length=0), replace(BROKEN, length=3, reason="torn_tail")]))
    assert accounts(engine)["set_aside"] == {"bad_crc": 1, "torn_tail": 1}


def test_streams_keep_their_first_and_last_window(engine: Engine) -> None:
    """The newest range stands."""
    write(engine, Changes(0, streams={"orders": (at_us(0), at_us(60)), "trades": (at_us(0), at_us(0))}))
    write(engine, Changes(0, streams={"orders": (at_us(-60), at_us(60))}))
    with engine.begin() as connection:
        assert reader.read_stream_ranges(connection) == {
            "orders": (at_us(-60), at_us(60)),
            "trades": (at_us(0), at_us(0)),
        }


def test_the_watermark_is_that_of_the_last_batch(engine: Engine) -> None:
    """0 before the first."""
    with engine.begin() as connection:
        assert fencing.read_watermark_us(connection) == 0
    write(engine, Changes(at_us(70)))
    with engine.begin() as connection:
        assert fencing.read_watermark_us(connection) == at_us(70)


@pytest.mark.parametrize(
    ("watermark_us", "batch_id", "released"),
    [
        (at_us(100), 9, []),
        (at_us(100) + 1, 9, ["old.seg"]),
        (at_us(200) + 1, 9, ["new.seg", "old.seg"]),
        (at_us(200) + 1, 6, ["old.seg"]),
        (at_us(200) + 1, 5, []),
    ],
)
def test_a_segment_is_released_when_no_window_and_no_replay_needs_it(
    watermark_us: int, batch_id: int, released: list[str], engine: Engine
) -> None:
    """Its last window can be amended no more, and it was read in a batch that Spark will not read again."""
    write(engine, Changes(0, batch_id=5, segments={"old.seg": at_us(100)}))
    write(engine, Changes(0, batch_id=6, segments={"new.seg": at_us(200)}))
    with engine.execution_options(writes=True).begin() as connection:
        assert sorted(writer.release_segments(connection, watermark_us, batch_id)) == released
        assert writer.release_segments(connection, watermark_us, batch_id) == []
    kept = {row[0] for row in dump_tables(engine)["segments"]}
    assert kept == {"old.seg", "new.seg"} - set(released)
