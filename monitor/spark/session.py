"""Spark session of the job, with the reason for each setting."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.spark import archive, cluster, failures, simd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READS_PER_CORE: Final = 4
"""Into how many tasks a core ``--once`` deals out the segments, so that progress is seen."""
ATTEMPTS: Final = 4
"""Attempts of a task, as on a cluster; by itself Spark ends a local query at a task's first failure.

Its Kafka connector can fail for a moment: after records aged out it gives a consumer back that it goes on to use.
"""
POLL_S: Final = 0.25
JAVA_EXIT_WAIT_S: Final = 0.2
"""For so long a Java that answers no more may take to be gone."""
PRIVATE_FOLDER: Final = 0o700
"""Mode of folders with ids and names: for this user alone, unless workers of a cluster run as other users."""

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The work is done in Python and in native code: Java's optimising compiler and its parallel collector only compete."""
_PROVIDER: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def log_file(workdir: Path) -> Path:
    """Return the file that takes all that Spark and its workers print."""
    return workdir / "spark.log"


def start_session(
    workdir: Path, *, master: str = cluster.LOCAL, cores: int | None = None, more: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, with log and scratch files below ``workdir``; ``more`` settings win.

    ``master`` has passed :func:`cluster.check_master`. ``cores`` is into how many tasks a trigger is dealt out: by
    default one a core of this machine, or of the cluster.

    Raises:
        DependencyError: the folder cannot be written, or Spark does not start.
    """
    scratch = workdir / "scratch"
    try:
        if cluster.is_local(master) and not workdir.exists():
            workdir.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
        log = log_file(workdir).open("ab")
    except OSError as error:
        msg = f"the working folder {workdir} cannot be written: {error.strerror}; name another with --workdir"
        raise DependencyError(msg) from None
    # Spark would otherwise run the machine's own python3, which has none of our packages.
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if cluster.is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    # Elsewhere Python may be in another place, which PYSPARK_PYTHON tells.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers inherit the environment of the process that starts Spark.
    os.environ.setdefault(simd.VARIABLE, simd.detect_disabled_features())
    with log, _name_start_errors(log_file(workdir)), _standard_streams_to(log.fileno()):
        if cluster.is_local(master):
            cores = cores or _parse_cores(master)
            return _build_session(
                f"local[{cores},{ATTEMPTS}]",
                cores,
                {**_common_settings(cores), **_local_settings(scratch, cores), **(more or {})},
            )
        return _start_on_cluster(master, cores, scratch, more or {})


@contextmanager
def _name_start_errors(log: Path) -> Iterator[None]:
    """Name what keeps Spark from starting, which is in its log, where Java has told of it, or in what it raises."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - they come with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    before_bytes = log.stat().st_size
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        status = java_status(JAVA_EXIT_WAIT_S)
        if status is not None and status < 0:
            raise failures.java_error(status, log) from None
        told = log.read_bytes()[before_bytes:].decode("utf-8", "replace")
        raise failures.start_error(str(error), told, log) from None


def _parse_cores(master: str) -> int:
    told = master.removeprefix(cluster.LOCAL).strip("[]*")
    return int(told or os.cpu_count() or 1)


def _start_on_cluster(master: str, cores: int | None, scratch: Path, more: Mapping[str, str]) -> SparkSession:
    """Start Spark on a cluster; how many cores it has is known when its workers are there."""
    started = _build_session(master, 1, {**_common_settings(cores or 1), **cluster.cluster_settings(), **more})
    started.sparkContext.addPyFile(str(cluster.write_archive(scratch)))
    if cores is None:
        _call_workers(started, 1)
        started.conf.set("spark.sql.shuffle.partitions", str(started.sparkContext.defaultParallelism))
    return started


def _build_session(master: str, cores: int, settings: Mapping[str, str]) -> SparkSession:
    # What is imported with the module is imported by --help too.
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # We use no accumulators; all that this could print is a traceback when Java is stopped together with us.
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _do_nothing  # type: ignore[assignment, method-assign]

    builder = SparkSession.builder.master(master).appName("hopwatch")
    for name, value in settings.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    # Until one of them is asked for, Spark looks at none of its SQL settings.
    started.conf.get("spark.sql.shuffle.partitions")
    if cluster.is_local(master):
        threading.Thread(target=_call_workers, args=(started, cores), name="hopwatch-workers", daemon=True).start()
    return started


def _call_workers(spark: SparkSession, cores: int) -> None:
    """Let the Python workers start while the first query is being planned: Spark itself would begin after that."""
    # A session that ends soon after its start has no use for workers.
    with suppress(Exception):
        spark.sparkContext.parallelize(range(cores), cores).foreachPartition(_do_nothing)


def _do_nothing(*_: object) -> None:
    """Take what is of no interest."""


def _local_settings(scratch: Path, cores: int) -> dict[str, str]:
    """Return what makes a Spark in this process keep to itself."""
    return {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.default.parallelism": str(cores * READS_PER_CORE),
    }


def _common_settings(cores: int) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        archive.OPTIONS: JAVA_OPTIONS + archive.java_options(),
        "spark.python.daemon.module": "hopwatch.monitor.spark.daemon",
        # By way of the network each task waits some 40 ms for the acknowledgement of its first rows.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # One a core: each costs a trigger some 100 ms of state and workers. The keys are few and known: to let Spark
        # guess anew costs a stage.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        # Rows are few, and to compile Java for them costs a cold query more than it ever saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # A worker is shared by jobs with one environment only, and this is a part of it; _call_workers has the default.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # More than 32 files a trigger would start a job just to list them.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # A task costs a trigger some 20 ms; a backlog has many all the same, of at most so many bytes.
        "spark.sql.files.minPartitionNum": str(cores),
        "spark.sql.files.openCostInBytes": str(64 * 1024),
        "spark.sql.files.maxPartitionBytes": str(128 * 1024 * 1024),
        "spark.sql.streaming.stateStore.providerClass": _PROVIDER,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # Copies of a spool's log that the last ten batches do not need go at once: by itself Spark keeps those of ten
        # minutes, for file systems where others would not see the newest one yet.
        "spark.sql.streaming.fileSource.log.cleanupDelay": "0s",
    }


@contextmanager
def _standard_streams_to(descriptor: int) -> Iterator[None]:
    """Let what is started meanwhile write elsewhere: Java and the workers print on both streams, which are ours."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(stream, os.dup(stream)) for stream in (1, 2)]
    try:
        for stream, _ in kept:
            os.dup2(descriptor, stream)
        yield
    finally:
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)


@contextmanager
def report_progress(spark: SparkSession, say: Callable[[str], None]) -> Iterator[None]:
    """Say how far Spark is while the block runs: tasks done of all tasks of the stage at work."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - it comes with Spark

    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def look() -> None:
        # Of a Java that is gone the block itself tells.
        with suppress(Py4JError, OSError):
            while not done.wait(POLL_S):
                for stage in tracker.getActiveStageIds():
                    info = tracker.getStageInfo(stage)
                    if info:
                        say(f"{info.numCompletedTasks} of {info.numTasks} tasks")

    watcher = threading.Thread(target=look, name="hopwatch-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def java_status(patience_s: float = 2.0) -> int | None:
    """Return the exit code of Spark's Java if it ends within a while; None if it lives or is on another host."""
    from pyspark import SparkContext  # noqa: PLC0415 - what is imported with the module is imported by --help too

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - no other way leads to the process
    try:
        return None if process is None else process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None


def stop_quietly(stop: Callable[[], None]) -> None:
    """Call a stop of Spark's; when Spark is gone already, that is what was wanted."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - it comes with Spark

    # The gateway logs the end of its other side as an error of its own, and Spark warns of it.
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), suppress(Py4JError, OSError):
            warnings.simplefilter("ignore")
            stop()
    finally:
        logging.disable(logging.NOTSET)
