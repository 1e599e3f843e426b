"""Tests of the sink: whatever the store does to a transaction, each batch is written once, and told once."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
import stamina
from sqlalchemy import event, func, select, update
from sqlalchemy.exc import OperationalError, ProgrammingError

from hopwatch.monitor.accounting.unheard_instances import folder_retention_us
from hopwatch.monitor.errors import StoreError, StoreTakenError
from hopwatch.monitor.results import CommittedBatch
from hopwatch.monitor.settings.durations import parse_duration_us
from hopwatch.monitor.spark.job import JobContext
from hopwatch.monitor.spark.sink import LOG_BYTES, SWEEP_EVERY_US
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, fencing, reader, rollups, schema, tables, writer
from hopwatch.monitor.store.rollups import HOUR_US
from servers.postgres import Postgres
from tests.support.batch_traffic import traffic
from tests.support.conclusions import dump_tables
from tests.support.sink_stream import ATTEMPTS, BEFORE, BEHIND, QUERY, WORK_S, Stream, Trouble
from tests.support.spool import START_US, STREAM_CONFIGS

if TYPE_CHECKING:
    pass


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Let the attempts follow each other at once, so many in all."""
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


Make = Callable[[str], Stream]


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return what makes streams, each over an empty store of its own."""

    def stream(name: str) -> Stream:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path}/{name}.db"
        else:
            server: Postgres = request.getfixturevalue("postgres")
            url = server.database()
        engine = dialect.create_engine(url)
        schema.prepare_store(engine)
        return Stream(STREAM_CONFIGS, engine, folder=tmp_path / name)

    return stream


class _Asked(SpoolSource):
    """A spool that notes until when folders are to be removed."""

    def __init__(self, folder: Path, asked: list[int]) -> None:
        super().__init__(folder)
        object.__setattr__(self, "asked", asked)

    def remove_folders(self, before_us: int) -> None:
        """Note it."""
        self.asked.append(before_us)  # type: ignore[attr-defined]  # a frozen class has it all the same


Batches = Callable[[], Iterator[list[Path]]]


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    """Return what writes traffic with losses, drops, duplicates, late and broken records; the sink deletes it."""
    return lambda: iter(traffic(tmp_path / "spool"))


def run(stream: Stream, batches: Batches) -> Stream:
    """Run all micro-batches."""
    for paths in batches():
        stream.run(paths)
    return stream


def test_a_batch_that_fails_anywhere_is_written_once_and_told_once(
    make: Make, batches: Batches, times: Callable[[int, int], int]
) -> None:
    """At statements all over it, before the COMMIT and when its answer is lost: the store of an undisturbed run.

    In a soak at every statement; on a server at every third of these: there a transaction takes ten times as long.
    """
    calm = make("calm")
    counting = Trouble(calm.engine)
    most = 0
    for paths in batches():
        calm.run(paths)
        most = max(most, counting.statements)
    assert most > 10
    step = times(8, 1) * (1 if calm.engine.dialect.name == "sqlite" else 3)
    for at in (*range(1, most + 1, step), BEFORE, BEHIND):
        stream = make(f"at-{at}")
        trouble = Trouble(stream.engine)
        for paths in batches():
            trouble.at = at
            stream.run(paths)
        assert dump_tables(stream.engine) == dump_tables(calm.engine), at
        assert stream.told == calm.told, at
        stream.engine.dispose()


def test_each_batch_is_observed_once_it_is_written(make: Make, batches: Batches) -> None:
    """With what was judged, how long it took, and how far the watermark is; of a replay, nothing new."""
    stream = make("observed")
    written = []
    for paths in batches():
        stream.run(paths)
        with stream.engine.begin() as connection:
            written.append(fencing.read_watermark_us(connection))
    assert [one.watermark_us for one in stream.observed] == written
    assert {one.took_s for one in stream.observed} == {WORK_S}
    assert [result for one in stream.observed for result in one.results] == stream.told
    stream.batch_id -= 1
    stream.run([])
    assert stream.observed[-1] == CommittedBatch((), 0, WORK_S)


def test_a_batch_of_a_query_that_was_replaced_is_not_written(make: Make, batches: Batches) -> None:
    """Another query reads it again, by other versions of the streams; nothing is written, and nothing is told."""
    stream, (first, second, *_) = make("replaced"), batches()
    stream.run(first)
    before, told = dump_tables(stream.engine), list(stream.told)
    stream.sink.place.gate.close()
    with pytest.raises(StoreError) as caught:
        stream.run(second)
    assert str(caught.value) == (
        "another query of this monitor has taken its place: this batch is read again by that one"
    )
    assert (dump_tables(stream.engine), stream.told) == (before, told)


def test_trouble_twice_in_a_batch_is_overcome(make: Make, batches: Batches) -> None:
    """The answer to a COMMIT is lost, and then the way to ask whether it came."""
    calm, stream = run(make("calm"), batches), make("disturbed")
    trouble = Trouble(stream.engine)
    on_commit = stream.engine.dialect.do_commit

    def and_again(connection: Any) -> None:  # noqa: ANN401 - the driver's
        try:
            on_commit(connection)
        except (sqlite3.Error, psycopg.Error):
            trouble.at = 1
            raise

    stream.engine.dialect.do_commit = and_again  # type: ignore[assignment,method-assign]
    for paths in batches():
        trouble.at = BEHIND
        stream.run(paths)
    assert dump_tables(stream.engine) == dump_tables(calm.engine)
    assert stream.told == calm.told


def test_spent_segments_are_deleted_when_the_answer_to_the_commit_was_lost(make: Make, tmp_path: Path) -> None:
    """Segments to delete are deleted though the answer to the commit was lost."""
    stream = make("disturbed")
    spent = tmp_path / "spent.seg"
    spent.write_text("")
    trouble = Trouble(stream.engine)
    for batch_id in range(2):
        with stream.engine.execution_options(writes=True).begin() as connection:
            connection.exec_driver_sql("DELETE FROM segments")
            connection.exec_driver_sql(f"INSERT INTO segments VALUES ('{spent}', -1, -1)")  # noqa: S608 - a path of ours
        trouble.at = BEHIND if batch_id else None
        if batch_id:
            spent.write_text("")
        stream.run([])
        assert not spent.exists()


def test_a_store_that_stays_away_ends_the_job_with_its_name(make: Make, batches: Batches) -> None:
    """After the last attempt; the batch is there to be written by the next run."""
    stream = make("disturbed")
    trouble, tries = Trouble(stream.engine), []

    def always(*_: object) -> None:
        tries.append(1)
        raise trouble._error()

    event.listen(stream.engine, "do_execute", always)
    event.listen(stream.engine, "do_execute_no_params", always)
    with pytest.raises(StoreError, match=re.escape(f"the store {dialect.redact_url(stream.engine.url)} failed: ")):
        stream.run(next(batches()))
    assert len(tries) == ATTEMPTS
    assert stream.told == []


def test_nothing_is_tried_again_once_the_job_is_to_stop(make: Make, batches: Batches) -> None:
    """An operator who stops the monitor while its store is away does not wait for it."""
    stream = make("disturbed")
    stream.is_stopping = True
    Trouble(stream.engine).at = 2
    with pytest.raises(StoreError):
        stream.run(next(batches()))
    stream.is_stopping = False
    stream.kept, stream.timers = {}, set()  # as Spark would do
    calm = run(make("calm"), batches)
    assert dump_tables(run(stream, batches).engine) == dump_tables(calm.engine)


def test_a_fault_of_our_own_is_not_tried_again(make: Make, batches: Batches) -> None:
    """An error of our own is raised at the first try."""
    stream = make("disturbed")
    tries = []

    def wrong(*_: object) -> None:
        tries.append(1)
        fault = sqlite3 if stream.engine.dialect.name == "sqlite" else psycopg
        raise fault.ProgrammingError("no such column")

    event.listen(stream.engine, "do_executemany", wrong)
    with pytest.raises(ProgrammingError):
        stream.run(next(batches()))
    assert len(tries) == 1


def test_folders_of_instances_that_ended_are_removed_once_no_window_needs_them(make: Make, batches: Batches) -> None:
    """By the watermark, and not at each batch."""
    stream = make("folders")
    asked: list[int] = []
    stream.sink.place = replace(stream.sink.place, source=_Asked(stream.folder, asked))
    run(stream, batches)
    with stream.engine.begin() as connection:
        latest_us = fencing.read_watermark_us(connection)
    assert asked == sorted(asked)
    assert all(later - earlier >= SWEEP_EVERY_US for earlier, later in pairwise(asked))
    assert 0 <= latest_us - folder_retention_us(STREAM_CONFIGS) - asked[-1] < SWEEP_EVERY_US


def test_no_segment_is_deleted_once_the_store_is_gone(tmp_path: Path, batches: Batches) -> None:
    """A file that was deleted takes each batch without a word: the job ends instead, and the segments stay."""
    url = f"sqlite:///{tmp_path}/gone.db"
    schema.prepare_store(dialect.create_engine(url))
    stream = Stream(STREAM_CONFIGS, dialect.create_engine(url), folder=tmp_path / "gone")

    def lose_the_store(_: object) -> None:
        if stream.sink.written.spent:
            (tmp_path / "gone.db").unlink()

    stream.sink.report = lose_the_store
    with dialect.lock_store(url) as hold:
        stream.sink.place = replace(stream.sink.place, hold=hold)
        with pytest.raises(StoreError, match=r"gone\.db was deleted under the running monitor"):
            run(stream, batches)
        assert stream.sink.written.spent
        assert all(Path(path).exists() for path in stream.sink.written.spent)
        with pytest.raises(StoreError, match=r"gone\.db was deleted under the running monitor"):
            stream.run([])
    assert not (tmp_path / "gone.db").exists()


def test_spent_segments_are_deleted_though_the_store_fails_behind_the_commit(make: Make, batches: Batches) -> None:
    """A server that restarts, or another monitor that takes the store then, leaves no segment behind for ever."""
    stream = make("disturbed")
    spent: list[Path] = []

    def renew() -> None:
        if spent:
            raise StoreTakenError("S")

    def see_the_spent(_: object) -> None:
        spent.extend(map(Path, stream.sink.written.spent))

    hold = cast("dialect.StoreLock", SimpleNamespace(renew=renew, check_place=lambda: None))
    stream.sink.place = replace(stream.sink.place, hold=hold)
    stream.sink.report = see_the_spent
    with pytest.raises(StoreTakenError, match=r"^another monitor writes to the store S: stop it first"):
        run(stream, batches)
    assert spent
    assert not [path for path in spent if path.exists()]


def test_a_store_that_another_monitor_took_meanwhile_is_not_written(make: Make, batches: Batches) -> None:
    """The hold is renewed before every transaction; a ghost of our own session may need a while to go."""
    stream, renewals = make("disturbed"), []

    def renew() -> None:
        renewals.append(1)
        raise StoreTakenError("S")

    stream.sink.place = JobContext(
        SpoolSource(stream.folder),
        stream.engine,
        STREAM_CONFIGS,
        stream.folder,
        cast("dialect.StoreLock", SimpleNamespace(renew=renew)),
    )
    before = dump_tables(stream.engine)
    with pytest.raises(StoreTakenError, match=r"^another monitor writes to the store S: stop it first"):
        stream.run(next(batches()))
    assert len(renewals) == ATTEMPTS
    assert dump_tables(stream.engine) == before


def test_a_run_that_has_lost_the_store_to_another_writes_and_deletes_nothing(make: Make, batches: Batches) -> None:
    """Though its lock holds, as all do on a disk that knows none: told at once, and not tried again."""
    stream = make("disturbed")
    all_batches = batches()
    stream.run(next(all_batches))
    with stream.engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, {"run": "another"})
    before = dump_tables(stream.engine)
    with pytest.raises(StoreError, match=r"^another monitor has taken the store "):
        stream.run(next(all_batches))
    assert dump_tables(stream.engine) == before
    assert not stream.sink.written.spent


class _Long(SpoolSource):
    """A spool whose log at Spark has a size that a test sets, and that notes what is to be forgotten."""

    def __init__(self, folder: Path, sizes: list[int], asked: list[tuple[set[str], str]]) -> None:
        super().__init__(folder)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "asked", asked)

    def log_bytes(self, checkpoint: Path) -> int:  # noqa: ARG002 - as every source
        """Return the size that was set."""
        return int(self.sizes[-1])  # type: ignore[attr-defined]  # a frozen class has it all the same

    def forget(self, kept: Collection[str], checkpoint: Path, spark: object, query_id: str) -> None:  # noqa: ARG002 - as every source
        """Note it; half of what is in the log is gone."""
        self.asked.append((set(kept), query_id))  # type: ignore[attr-defined]
        self.sizes.append(self.sizes[-1] // 2)  # type: ignore[attr-defined]


@pytest.fixture
def long(make: Make) -> tuple[Stream, list[int], list[tuple[set[str], str]]]:
    """Return a stream over a spool with a long log, its sizes, and what was to be forgotten."""
    stream = make("long")
    sizes: list[int] = [0]
    asked: list[tuple[set[str], str]] = []
    stream.sink.place = replace(stream.sink.place, source=_Long(stream.folder, sizes, asked))
    return stream, sizes, asked


def test_what_is_gone_is_forgotten_whenever_sparks_log_has_doubled(
    long: tuple[Stream, list[int], list[tuple[set[str], str]]], batches: Batches
) -> None:
    """And has 4 MiB more: where all is still there, no batch after the first would be quick."""
    stream, sizes, asked = long
    turns = iter([*batches()])
    for size, count in ((LOG_BYTES, 0), (LOG_BYTES + 2, 1), (2 * LOG_BYTES, 1), (2 * LOG_BYTES + 3, 2)):
        sizes.append(size)
        stream.run(next(turns))
        assert len(asked) == count, size
    with stream.engine.begin() as connection:
        assert asked[-1] == (reader.read_segments(connection), QUERY)


def test_a_store_that_fails_when_sparks_log_is_long_is_asked_again_after_the_next_batch(
    long: tuple[Stream, list[int], list[tuple[set[str], str]]], batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is written, and its stream goes on."""
    stream, sizes, asked = long
    turns = iter([*batches()])
    sizes.append(2 * LOG_BYTES)

    def fail(_: object) -> set[str]:
        raise OperationalError("SELECT", {}, RuntimeError("gone"))

    with monkeypatch.context() as failing:
        failing.setattr(reader, "read_segments", fail)
        stream.run(next(turns))
    assert asked == []
    stream.run(next(turns))
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("digests_for", "max_age", "expected"),
    [("59m", "59m", {"dropped"}), ("61m", "1m", {"kept"}), ("1m", "61m", {"kept"})],
)
def test_old_hours_lose_their_digests(
    make: Make, batches: Batches, digests_for: str, max_age: str, expected: set[str]
) -> None:
    """By the watermark, an hour behind the end of theirs; no hour does in which a late message can begin a window."""
    stream = run(make("old"), batches)
    hour_us = START_US - START_US % HOUR_US
    with stream.engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(tables.windows).values(is_live=False))
        for name, at_us in rollups.read_stale_hours(connection):
            rollups.roll_up_hour(connection, name, at_us)
        writer.set_values(connection, {"watermark_us": str(hour_us + 2 * HOUR_US)})
    terms = replace(STREAM_CONFIGS["orders"].terms, max_age_us=parse_duration_us(max_age))
    rules = {"orders": replace(STREAM_CONFIGS["orders"], terms=terms)}
    stream.sink.place = replace(stream.sink.place, digests_for_us=parse_duration_us(digests_for), rules=rules)
    stream.run([])
    lags = tables.node_windows.c.lag_out_us_digest
    with stream.engine.connect() as connection:
        sizes = connection.execute(
            select(func.length(lags)).where(tables.node_windows.c.window_start_us < hour_us + HOUR_US)
        )
        assert {"kept" if size else "dropped" for size in sizes.scalars()} == expected
