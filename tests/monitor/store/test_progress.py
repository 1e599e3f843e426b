"""Tests of up to when a store is read, and of a stop that is noted, in either database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from hopwatch.monitor.store import fencing, instances, schema, tables, writer
from hopwatch.monitor.store.writer import Changes
from hopwatch.monitor.texts.read_progress import ReadProgress
from tests.support.health_data import WATERMARK_US, book, write
from tests.support.spool import STREAM_CONFIGS

STOPPED_US = WATERMARK_US + 7


def reached(engine: Engine) -> ReadProgress:
    """Return what the store says."""
    with schema.open_snapshot(engine) as connection:
        return instances.read_progress(connection)


def begin(engine: Engine, folder: Path, run: str) -> None:
    """Let a run begin over an empty store, and write a batch."""
    fencing.claim_store(engine, folder / "checkpoint", STREAM_CONFIGS, run=run)


def test_an_empty_store_has_reached_nothing(engine: Engine) -> None:
    """Before the first batch."""
    assert reached(engine) == ReadProgress(0)


def test_a_stream_has_reached_its_watermark(engine: Engine) -> None:
    """A stream has been read through to its watermark."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, Changes(WATERMARK_US))
    assert reached(engine) == ReadProgress(WATERMARK_US)


def test_a_store_that_was_filled_once_has_reached_its_newest_record(engine: Engine) -> None:
    """Its own watermark is the end of all time."""
    write(engine, book())
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(tables.meta.delete())
        writer.set_values(connection, {"query_id": fencing.ONCE, "watermark_us": str(2**62)})
    assert reached(engine) == ReadProgress(book().last_arrival_us, is_once=True)


def test_a_stop_is_noted_until_the_next_run(engine: Engine, tmp_path: Path) -> None:
    """By the run that has the store; the next one takes the note away."""
    begin(engine, tmp_path, "first")
    fencing.record_stop(engine, "first", STOPPED_US)
    assert reached(engine).stopped_us == STOPPED_US
    begin(engine, tmp_path, "second")
    assert reached(engine).stopped_us is None


def test_a_run_that_has_lost_the_store_notes_nothing(engine: Engine, tmp_path: Path) -> None:
    """The other one goes on."""
    begin(engine, tmp_path, "first")
    begin(engine, tmp_path, "second")
    fencing.record_stop(engine, "first", STOPPED_US)
    assert reached(engine).stopped_us is None
