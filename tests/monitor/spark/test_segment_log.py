"""Tests of Spark's log of segments: those that are gone are forgotten, and no other is read twice or missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from pyspark.sql import DataFrame, SparkSession
from structlog.testing import capture_logs

from hopwatch.monitor.spark.sources import segment_log, spool
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import fencing
from tests.support.examples import soak_after
from tests.support.file_permissions import without_root
from tests.support.spool import write_segment

MAGIC_BYTES: Final = len(b"HWSP1\n")
ODD: Final = "sp [a]{b}*? %25#ü"


def _entry(path: object, batch: object = 0) -> str:
    return json.dumps({"path": f"file://{path}", "timestamp": 1, "batchId": batch})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Return a checkpoint that can go back to behind batch 8 of the log, whose segments are all gone."""
    folder = tmp_path / "checkpoint"
    for name in ("offsets", "sources/0"):
        (folder / name).mkdir(parents=True)
    for number in (11, 9, 10):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs":1}}\n{{"logOffset":{number - 1}}}')
    _write(folder, 9, *(_entry(f"/gone/{number}.seg", number) for number in range(10)))
    return folder


def _write(checkpoint: Path, number: int, *lines: str, version: str = "v1") -> Path:
    """Write a compacted file of the log as Spark does, with a checksum beside it."""
    path = checkpoint / "sources" / "0" / f"{number}.compact"
    path.write_text("\n".join((version, *lines)))
    path.with_name(f".{path.name}.crc").touch()
    return path


def _newest(checkpoint: Path) -> Path:
    return max((checkpoint / "sources" / "0").glob("*.compact"), key=lambda path: int(path.stem))


def _told(checkpoint: Path) -> list[str]:
    """Return the paths in the newest compacted file."""
    version, *lines = _newest(checkpoint).read_text().split("\n")
    assert version == "v1"
    return [json.loads(line)["path"] for line in lines]


# The log


def test_segments_that_are_gone_are_forgotten_but_for_batches_that_may_be_read_again(checkpoint: Path) -> None:
    """The oldest offset of the checkpoint is 8: no batch before the ninth comes back."""
    segment_log.forget_gone(checkpoint, ())
    assert _told(checkpoint) == ["file:///gone/9.seg"]
    assert not _newest(checkpoint).with_name(".9.compact.crc").exists()


def test_what_stays_is_left_as_it_was(checkpoint: Path, tmp_path: Path) -> None:
    """Only the newest compacted file is touched: Spark reads no older one, and takes all younger into the next."""
    there = write_segment(tmp_path / "spool" / "0.seg")
    line = f'{{"path":"file://{there}",  "timestamp":1,"batchId":0,"more":[]}}'
    log = _write(checkpoint, 19, _entry("/gone/0.seg"), line)
    (log.parent / "20").write_text(f"v1\n{_entry('/gone/20.seg', 20)}")
    segment_log.forget_gone(checkpoint, ())
    assert log.read_text() == f"v1\n{line}"
    assert (log.parent / "20").read_text() == f"v1\n{_entry('/gone/20.seg', 20)}"
    assert len((log.parent / "9.compact").read_text().split("\n")) == 11


def test_a_log_in_which_nothing_is_gone_is_not_touched(checkpoint: Path, tmp_path: Path) -> None:
    """Its checksum stays beside it."""
    log = _write(checkpoint, 19, _entry(write_segment(tmp_path / "spool" / "0.seg")))
    before = log.stat()
    segment_log.forget_gone(checkpoint, ())
    assert log.stat() == before
    assert sorted(path.name for path in log.parent.iterdir()) == [
        ".19.compact.crc",
        ".9.compact.crc",
        "19.compact",
        "9.compact",
    ]


def test_until_the_first_batch_can_not_come_back_nothing_is_forgotten(checkpoint: Path) -> None:
    """Before it there is no offset, so all that is in the log may be read again."""
    (checkpoint / "offsets" / "0").write_text('v1\n{}\n{"logOffset":9}')
    segment_log.forget_gone(checkpoint, ())
    assert len(_told(checkpoint)) == 10


def test_without_offsets_nothing_is_forgotten(checkpoint: Path) -> None:
    """Spark has noted which segments it will read, and was ended before it read any."""
    for one in (checkpoint / "offsets").iterdir():
        one.unlink()
    segment_log.forget_gone(checkpoint, ())
    assert len(_told(checkpoint)) == 10


@pytest.mark.parametrize("made", ["", "sources/0"])
def test_where_there_is_no_log_yet_there_is_nothing_to_do(made: str, tmp_path: Path) -> None:
    """Before the first start, and before the tenth batch."""
    (tmp_path / made).mkdir(parents=True, exist_ok=True)
    with capture_logs() as logs:
        segment_log.forget_gone(tmp_path, ())
    assert (logs, segment_log.log_size_bytes(tmp_path)) == ([], 0)


def test_the_size_of_the_log_is_that_of_its_newest_compacted_file(checkpoint: Path) -> None:
    """By its number, not by its name."""
    _write(checkpoint, 109)
    assert segment_log.log_size_bytes(checkpoint) == len("v1")


def test_a_segment_that_cannot_be_looked_at_is_not_gone(open_folder: Path) -> None:
    """Nor is a link into nowhere, one of whose name Java could not read a character, or one on no disk."""
    hidden = write_segment(open_folder / "a" / "0.seg")
    (open_folder / "1.seg").symlink_to("nowhere")
    # The folder may be listed, but not entered.
    (open_folder / "a").chmod(0o644)
    names = (hidden, open_folder / "1.seg", open_folder / "%EF%BF%BD.seg", open_folder / "%FF.seg")
    with without_root():
        gone = [segment_log._is_gone(f"file://{name}") for name in names]
    (open_folder / "a").chmod(0o755)
    assert (gone, segment_log._is_gone("hdfs://host/2.seg")) == ([False] * 4, False)
    assert segment_log._is_gone(f"file://{hidden}/0.seg")
    assert segment_log._is_gone(f"file://{open_folder}/2.seg")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (("v2", _entry("/gone/0.seg")), "its first line is v1, got 'v2'"),
        (
            ("v1", '{"path":"file:///gone/0.seg"}'),
            'a line of it has path and batchId, got \'{"path":"file:///gone/0.seg"}\'',
        ),
        (("v1", _entry("/gone/0.seg", "9")), None),
        (("v1", _entry("/gone/0.seg"), '{"path":"fi'), 'a line of it has path and batchId, got \'{"path":"fi\''),
        (("v1", "[]"), "a line of it has path and batchId, got '[]'"),
    ],
)
def test_a_log_of_another_form_is_left_alone_and_named(
    lines: tuple[str, ...], why: str | None, checkpoint: Path
) -> None:
    """Nothing is changed, one line says so, and Spark itself judges what it reads."""
    log = _write(checkpoint, 19, *lines[1:], version=lines[0])
    before = log.read_text()
    with capture_logs() as logs:
        segment_log.forget_gone(checkpoint, ())
    why = why or f"a line of it has path and batchId, got {lines[1]!r:.80}"
    said = "segments that are gone stay in Spark's log, which grows: nothing is lost"
    assert logs == [{"event": said, "log": str(log), "why": why, "log_level": "warning"}]
    assert log.read_text() == before
    assert not log.with_name(segment_log.DRAFT).exists()


@pytest.mark.parametrize("text", ["v1\n{}", "v2\n{}\n{}", 'v1\n{}\n{"logOffset":"-"}', "v1\n{}\n-", ""])
def test_offsets_of_another_form_are_named(text: str, checkpoint: Path) -> None:
    """Without them nobody knows which batches may be read again."""
    (checkpoint / "offsets" / "9").write_text(text)
    with capture_logs() as logs:
        segment_log.forget_gone(checkpoint, ())
    assert [one["why"] for one in logs] == [f"{checkpoint}/offsets/9 tells no logOffset in its third line"]
    assert len(_told(checkpoint)) == 10


def test_a_checkpoint_without_its_offsets_is_named(checkpoint: Path) -> None:
    """Spark will say what it makes of that."""
    for one in (checkpoint / "offsets").iterdir():
        one.unlink()
    (checkpoint / "offsets").rmdir()
    with capture_logs() as logs:
        segment_log.forget_gone(checkpoint, ())
    assert [one["why"] for one in logs] == [f"[Errno 2] No such file or directory: '{checkpoint}/offsets'"]


def test_of_an_empty_spool_nothing_is_forgotten(checkpoint: Path, tmp_path: Path) -> None:
    """No window needs a segment of it; its disk may not be mounted all the same."""
    source = SpoolSource(tmp_path / "empty")
    source.folder.mkdir()
    source.tidy((), checkpoint)
    assert len(_told(checkpoint)) == 10
    (source.folder / "orders.a.host").mkdir()
    source.tidy((), checkpoint)
    assert len(_told(checkpoint)) < 10


def test_while_a_segment_that_windows_need_is_missing_nothing_is_forgotten(checkpoint: Path, tmp_path: Path) -> None:
    """The disk of the spool may not be mounted: all its segments would be read again once it is."""
    there = write_segment(tmp_path / "spool" / "0.seg")
    with capture_logs() as logs:
        segment_log.forget_gone(checkpoint, (str(there), "/gone/1.seg"))
    why = "the segment /gone/1.seg is needed and not there: look whether all of the spool is"
    assert [one["why"] for one in logs] == [why]
    assert len(_told(checkpoint)) == 10
    segment_log.forget_gone(checkpoint, (str(there),))
    assert len(_told(checkpoint)) == 1


@pytest.mark.parametrize("step", ["fsync", "unlink", "replace"])
def test_a_disk_that_fails_leaves_the_log_whole(step: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the new file has its name the old one is there, with its checksum or with none; the next start goes on."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = _newest(checkpoint).read_text()
    with monkeypatch.context() as failing, capture_logs() as logs:
        failing.setattr("os.fsync" if step == "fsync" else f"pathlib.Path.{step}", fail)
        segment_log.forget_gone(checkpoint, ())
    assert [one["why"] for one in logs] == ["[Errno 28] No space left on device"]
    assert _newest(checkpoint).read_text() == before
    segment_log.forget_gone(checkpoint, ())
    assert _told(checkpoint) == ["file:///gone/9.seg"]


# With Spark


class _Stream:
    """A stream over a spool, a segment a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.spool, self.checkpoint = spark, folder / ODD, folder / "checkpoint"
        self.written = 0
        self.after_each: Callable[[int], None] = lambda _: None
        """What is done at the end of each micro-batch, by its number."""

    def write(self, count: int) -> list[Path]:
        """Write so many segments more."""
        numbers = range(self.written, self.written + count)
        self.written += count
        return [write_segment(self.spool / "a b" / f"{n:010d}.seg", arrival_us=(n + 1) * 10**9) for n in numbers]

    def read(self) -> list[Path]:
        """Return what a stream reads now, started on the checkpoint and stopped when it is through."""
        read: list[Path] = []

        def take(batch: DataFrame, number: int) -> None:
            read.extend(Path(spool.local_path(row.path)) for row in batch.collect())
            self.after_each(number)

        stream = spool.read_stream(self.spark, self.spool, bytes_a_trigger=MAGIC_BYTES).writeStream.foreachBatch(take)
        query = stream.option("checkpointLocation", str(self.checkpoint)).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return read

    def uncommit(self) -> None:
        """Let the last batch not have ended, as a crash does."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink()

    def in_memory(self) -> int:
        """Return how many segments the stream that runs has in memory."""
        (running,) = self.spark._jsparkSession.streams().active()
        return int(running.streamingQuery().sources().head().seenFiles().size())


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> _Stream:
    """Return a stream over an empty spool of an odd name."""
    return _Stream(spark, tmp_path)


def test_a_stream_whose_gone_segments_are_forgotten_reads_on_and_nothing_twice(stream: _Stream) -> None:
    """The lines are those of segments that are there and of the last batches; the next compaction goes by them."""
    first = stream.write(45)
    assert stream.read() == first
    for path in first[:38]:
        path.unlink()
    segment_log.forget_gone(stream.checkpoint, ())
    assert len(_told(stream.checkpoint)) < 20
    second = stream.write(27)
    assert stream.read() == second
    assert len(_told(stream.checkpoint)) < 20 + 7 + 27
    assert stream.read() == []


@pytest.mark.parametrize("count", soak_after(1, [30, 34]))
def test_a_batch_that_had_not_ended_is_read_again_from_a_log_that_forgets(count: int, stream: _Stream) -> None:
    """Its segment is there, since nothing deletes it before; the thirtieth is in the compacted file alone."""
    first = stream.write(count)
    assert stream.read() == first
    stream.uncommit()
    for path in first[:-2]:
        path.unlink()
    before = _told(stream.checkpoint)
    segment_log.forget_gone(stream.checkpoint, ())
    assert _told(stream.checkpoint) != before
    assert stream.read() == first[-1:]
    assert stream.read() == []


def test_what_a_crash_leaves_spark_reads(stream: _Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """No checksum, the old file, and a draft of the new one beside it."""
    first = stream.write(12)
    assert stream.read() == first

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    for path in first[:9]:
        path.unlink()
    log = _newest(stream.checkpoint)
    with monkeypatch.context() as dying:
        dying.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            segment_log.forget_gone(stream.checkpoint, ())
    log.with_name(segment_log.DRAFT).write_text("v1\n{")
    second = stream.write(1)
    assert stream.read() == second


def test_a_stream_that_runs_on_forgets_what_is_gone(stream: _Stream) -> None:
    """In its log and its memory, and reads on: no segment is read twice, whether it is there or not."""
    first = stream.write(55)
    before_and_after: list[tuple[int, int]] = []

    def forget(number: int) -> None:
        if number != 40:
            return
        for path in first[:35]:
            path.unlink()
        before = stream.in_memory()
        source = SpoolSource(stream.spool)
        source.forget((), stream.checkpoint, stream.spark, fencing.read_query_id(stream.checkpoint))
        before_and_after.append((before, stream.in_memory()))

    stream.after_each = forget
    assert stream.read() == first
    ((before, after),) = before_and_after
    assert before == 41
    assert 6 <= after <= 20
    assert len(_told(stream.checkpoint)) < 30
    # By itself Spark keeps all those of ten minutes.
    assert len(list((stream.checkpoint / "sources" / "0").glob("*.compact"))) <= 3
    assert stream.read() == []


def test_a_spark_that_keeps_its_memory_closed_is_told(stream: _Stream) -> None:
    """Nothing else happens: the next start has it from the log."""
    first = stream.write(2)
    logs: list[Any] = []

    def forget(_: int) -> None:
        with capture_logs() as told:
            segment_log.forget_in_memory(stream.spark, str(UUID(int=0)), ["file:///gone/0.seg"])
        logs.extend(told)

    stream.after_each = forget
    assert stream.read() == first
    assert [(one["event"], one["log_level"]) for one in logs] == [
        ("segments that are gone stay in Spark's memory until the next start: nothing is lost", "warning")
    ] * 2
