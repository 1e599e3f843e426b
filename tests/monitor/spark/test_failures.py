"""Tests of what is said of a stream that died."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from hopwatch.monitor.errors import CheckpointError, DependencyError, HopwatchError, StoreError, TransportError
from hopwatch.monitor.spark import claim_reader, connector, failures, job
from hopwatch.monitor.spark.rows import Batches
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect
from tests.support.spool import STREAM_CONFIGS, observation_batch, write_segment

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "monitor/spark/decoder.py", line 74, in _read
    with Path(path).open("rb") as file:
{0}
"""
SINK = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "sqlalchemy/engine/default.py", line 1192, in do_execute
    cursor.execute(statement, parameters)
{0}

The above exception was the direct cause of the following exception:
[SQL: INSERT INTO windows (stream, window_start_us) VALUES (?, ?)]

=== Streaming Query ===
Identifier: [id = 8ae81b41, runId = 605186ed]
"""
DIED = {
    "disk full, JVM": (
        "java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.writeBytes",
        DependencyError,
        "the disk is full: free some space and start again, nothing is lost",
    ),
    "disk full, store": (
        SINK.format(
            "sqlite3.OperationalError: database or disk is full: No space left on device\n"
            "hopwatch.monitor.errors.StoreError: the store S failed: database or disk is full; free some disk space"
        ),
        StoreError,
        "the store S failed: database or disk is full; free some disk space",
    ),
    "store, taken": (
        SINK.format("hopwatch.monitor.errors.StoreTakenError: another monitor writes to the store S: stop it"),
        StoreError,
        "another monitor writes to the store S: stop it",
    ),
    "store, named": (
        SINK.format("hopwatch.monitor.errors.StoreError: the store is of another version: use {another} one"),
        StoreError,
        "the store is of another version: use {another} one",
    ),
    "segment gone": (
        WORKER.format("FileNotFoundError: [Errno 2] No such file or directory: '/spool/a b/1.seg'"),
        TransportError,
        (
            "the segment /spool/a b/1.seg is gone before its windows were judged: "
            "do not delete from the spool, the monitor does"
        ),
    ),
    "segment unreadable": (
        WORKER.format("PermissionError: [Errno 13] Permission denied: '/spool/a/1.seg'"),
        TransportError,
        "/spool/a/1.seg cannot be read by this user: grant read on it",
    ),
    "checkpoint without id": (
        SINK.format("hopwatch.monitor.errors.CheckpointError: the checkpoint W/checkpoint is damaged"),
        CheckpointError,
        "the checkpoint W/checkpoint is damaged",
    ),
    "state damaged": (
        "Job aborted.\nCaused by: Error reading delta file W/state/0/1/2.delta of HDFSStateStoreProvider\n\tat org",
        CheckpointError,
        (
            "the checkpoint CHECKPOINT is damaged (Error reading delta file W/state/0/1/2.delta of "
            "HDFSStateStoreProvider): put it and the store aside to begin anew"
        ),
    ),
    "state unloadable": (
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state. SQLSTATE: 58030\n\tat org",
        CheckpointError,
        (
            "the checkpoint CHECKPOINT is damaged (CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during "
            "loading state. SQLSTATE: 58030): put it and the store aside to begin anew"
        ),
    ),
    "log damaged": (
        "java.lang.IllegalStateException: Incomplete log file W/checkpoint/offsets/7",
        CheckpointError,
        (
            "the checkpoint CHECKPOINT is damaged (Incomplete log file W/checkpoint/offsets/7): "
            "put it and the store aside to begin anew"
        ),
    ),
    "brokers silent": (
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment.\n\tat x",
        TransportError,
        (
            "the brokers of SOURCE do not answer: Timed out waiting for a node assignment.; "
            "nothing is lost: look whether they run, and start again"
        ),
    ),
    "no cause": (
        "Python worker failed to connect back.\n=== Streaming Query ===\nIdentifier: [id = 8ae81b41]",
        DependencyError,
        (
            "the stream died: Python worker failed to connect back.; "
            "the whole report is in Spark's log, nothing is lost: start again"
        ),
    ),
    "unknown": (
        "Traceback\nValueError: odd\njava.lang.RuntimeException: the last one\n\tat org.apache.spark",
        DependencyError,
        (
            "the stream died: java.lang.RuntimeException: the last one; "
            "the whole report is in Spark's log, nothing is lost: start again"
        ),
    ),
    "frames": (
        "java.io.IOException: the cause: SomeException\n\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally",
        DependencyError,
        (
            "the stream died: java.io.IOException: the cause: SomeException; "
            "the whole report is in Spark's log, nothing is lost: start again"
        ),
    ),
    "silent": (
        "",
        DependencyError,
        "the stream died: ; the whole report is in Spark's log, nothing is lost: start again",
    ),
}


STARTS = {
    "no connector": (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited",
        "x\njava.lang.RuntimeException: [unresolved dependency: org.apache.spark#k;4.2.0: not found]\n\tat org",
        (
            "Spark cannot fetch org.apache.spark#k;4.2.0: let this machine reach Maven's repository, "
            f"or put the jars into {connector.JARS}; its log is spark.log"
        ),
    ),
    "Java ends at once": (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited",
        "Invalid maximum heap size: -Xmx1x\nError: Could not create the Java Virtual Machine.",
        "Spark does not start: Invalid maximum heap size: -Xmx1x; its log is spark.log",
    ),
    "Java said nothing": (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited",
        "",
        "Spark does not start: [JAVA_GATEWAY_EXITED] Java gateway process exited; its log is spark.log",
    ),
    "a setting that cannot be": (
        "java.lang.IllegalArgumentException: no\n\tat x.Error\nCaused by: TheException: 'zz' is no int",
        "",
        "Spark does not start: TheException: 'zz' is no int; its log is spark.log",
    ),
}


@pytest.mark.parametrize(("raised", "printed", "told"), STARTS.values(), ids=STARTS)
def test_what_keeps_spark_from_starting_is_told(raised: str, printed: str, told: str) -> None:
    """In one line, with the log that has the rest."""
    assert str(failures.start_error(raised, printed, Path("spark.log"))) == told


GONE = {
    None: "Java does not answer any more",
    -9: "Java was killed: by the system, for want of memory, or by somebody",
    -15: "Java was ended by signal 15",
    3: "Java ended by itself, with exit code 3",
}


@pytest.mark.parametrize(("status", "what"), GONE.items(), ids=str)
def test_a_java_that_is_gone_is_told_by_what_ended_it(status: int | None, what: str) -> None:
    """In one line, with the log."""
    told = f"{what}; nothing is lost: start again, the log of Spark is w/spark.log"
    assert str(failures.java_error(status, Path("w/spark.log"))) == told


@pytest.fixture
def place(tmp_path: Path) -> job.JobContext:
    """Return a place without a store."""
    return job.JobContext(
        SpoolSource(tmp_path / "spool"),
        dialect.create_engine(f"sqlite:///{tmp_path}/store.db"),
        STREAM_CONFIGS,
        tmp_path,
    )


@pytest.mark.parametrize(("report", "error", "message"), DIED.values(), ids=DIED)
def test_the_cause_is_told_in_one_line(
    report: str, error: type[HopwatchError], message: str, place: job.JobContext
) -> None:
    """Of Spark's long report a person reads what happened and what to do."""
    named = failures.stream_error(RuntimeError(report), place)
    assert type(named) is error
    assert str(named) == message.replace("CHECKPOINT", str(place.checkpoint)).replace("SOURCE", str(place.source))


def test_an_unknown_report_is_cut(place: job.JobContext) -> None:
    """The text of an unknown failure has a bounded length."""
    assert len(str(failures.stream_error(RuntimeError("SomeError: " + "x" * 10_000), place))) < 500


def test_what_a_worker_dies_of_is_known(spark: SparkSession, place: job.JobContext) -> None:
    """Spark reports a worker's error in the words that are looked for."""

    def redeem_claims(batches: Batches) -> Batches:
        yield from batches
        claim_reader._SegmentCache()[f"{folder}/gone.seg"]

    folder = str(place.source)
    paths = spark.createDataFrame([("a claim",)], "path string")
    with pytest.raises(PythonException) as caught:
        paths.mapInArrow(redeem_claims, "path string").collect()
    named = failures.stream_error(caught.value, place)
    assert str(named).startswith(f"the segment {place.source}/gone.seg is gone before its windows were judged")


def test_what_the_sink_dies_of_is_known(spark: SparkSession, place: job.JobContext) -> None:
    """Spark reports the store's error in the words that are looked for; this store was never prepared."""
    write_segment(place.workdir / "spool" / "0" / "0000000000.seg", observation_batch([1]))
    query = job.start_stream(spark, place, "0 seconds", lambda _: None)
    with pytest.raises(Exception, match="no such table"):
        query.awaitTermination(60)
    failure = query.exception()
    assert failure is not None
    named = failures.stream_error(failure, place)
    assert (type(named), str(named)) == (
        StoreError,
        f"the store {place.engine.url} failed: no such table: meta; run the monitor once, it makes the tables",
    )
