"""Tests of the Spark session that the monitor starts."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.garbage_collection import ALLOCATIONS
from hopwatch.monitor.spark import session
from hopwatch.monitor.spark.simd import VARIABLE
from tests.support.file_permissions import without_root


def test_workers_run_the_python_that_runs_the_monitor(spark: SparkSession) -> None:
    """Both kinds of them: Spark would otherwise run the machine's own python3."""
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    (executable,) = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert executable == sys.executable


def test_workers_collect_garbage_rarely(spark: SparkSession) -> None:
    """A trigger's objects hold no cycles; what the workers were forked with is left out."""
    ((allocations, frozen),) = (
        spark.sparkContext.parallelize([0], 1).map(lambda _: (gc.get_threshold()[0], gc.get_freeze_count())).collect()
    )
    assert allocations == ALLOCATIONS
    assert frozen > 10_000


def test_workers_inherit_the_choice_of_vector_code(spark: SparkSession) -> None:
    """Workers have the environment variable of numpy's vector code, which was set before Spark started."""
    (value,) = spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ[VARIABLE]).collect()
    assert value == os.environ[VARIABLE]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.ui.enabled", "false"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.streaming.fileSource.log.cleanupDelay", "0s"),
        ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
        (
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        ),
    ],
)
def test_what_the_job_relies_on_is_set(setting: str, value: str, spark: SparkSession) -> None:
    """No port is open to others, state lives in RocksDB with changelogs, old logs go at once, time is UTC."""
    assert spark.conf.get(setting) == value


def test_scratch_and_log_stay_in_the_working_folder(spark: SparkSession) -> None:
    """Nothing is left behind elsewhere."""
    scratch = Path(str(spark.conf.get("spark.local.dir")))
    assert Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) == scratch / "warehouse"
    assert session.log_file(scratch.parent).exists()


def test_a_task_that_fails_for_a_moment_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    """In this process too, where Spark by itself would give up at once."""
    tried = tmp_path / "tried"

    def fail_at_first(number: int) -> int:
        with tried.open("a") as file:
            file.write("x")
        if len(tried.read_text()) < session.ATTEMPTS:
            raise OSError("not yet")
        return number

    assert spark.sparkContext.parallelize([7], 1).map(fail_at_first).collect() == [7]
    assert len(tried.read_text()) == session.ATTEMPTS


def test_progress_is_said_while_spark_works(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks done of all tasks of the stage; nothing is said any more once the block is left."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    said: list[str] = []
    spoken = threading.Event()

    def say(words: str) -> None:
        said.append(words)
        spoken.set()

    waiting = spark.sparkContext.parallelize([0], 1).map(lambda _: gate.read_text())
    work = threading.Thread(target=waiting.collect)
    with session.report_progress(spark, say):
        work.start()
        assert spoken.wait(30)
    told = len(said)
    gate.write_text("go")
    work.join()
    assert (said[0], len(said)) == ("0 of 1 tasks", told)


def test_what_is_started_meanwhile_prints_into_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Java and the workers write on both streams, which are the program's own before and behind."""
    log = tmp_path / "log"
    with log.open("ab") as file, session._standard_streams_to(file.fileno()):
        subprocess.run(["/bin/sh", "-c", "echo out; echo err >&2"], check=True)
    print("data")  # noqa: T201 - what the program prints itself
    subprocess.run(["/bin/sh", "-c", "echo words >&2"], check=True)
    assert log.read_text() == "out\nerr\n"
    assert capfd.readouterr() == ("data\n", "words\n")


def test_the_streams_come_back_after_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A person has to read why Spark did not start."""
    log = tmp_path / "log"
    with log.open("ab") as file, pytest.raises(OSError, match="odd"), session._standard_streams_to(file.fileno()):
        raise OSError("odd")
    subprocess.run(["/bin/sh", "-c", "echo words >&2"], check=True)
    assert (log.read_text(), capfd.readouterr().err) == ("", "words\n")


def test_a_working_folder_that_cannot_be_written_is_refused(open_folder: Path) -> None:
    """Before anything is started."""
    with without_root(), pytest.raises(DependencyError) as caught:
        session.start_session(open_folder / "work")
    assert str(caught.value) == (
        f"the working folder {open_folder}/work cannot be written: Permission denied; name another with --workdir"
    )


def test_a_working_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The message names what stands in the way."""
    (tmp_path / "work").write_text("")
    with pytest.raises(DependencyError, match=r"work cannot be written: Not a directory; name another with --workdir"):
        session.start_session(tmp_path / "work")


def test_a_java_that_is_killed_while_it_starts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers, and what ended it is known."""

    def refuse(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(session, "_build_session", refuse)
    monkeypatch.setattr(session, "java_status", lambda _: -9)
    with pytest.raises(DependencyError, match=r"^Java was killed: by the system, for want of memory, or by somebody;"):
        session.start_session(tmp_path / "work")


def test_a_java_that_lives_has_no_status(spark: SparkSession) -> None:
    """A living Java has no exit status."""
    assert spark.range(1).count() == 1
    assert session.java_status(0.01) is None


def test_a_stop_of_a_spark_that_is_gone_is_quiet(
    recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is shown of what its gateway logs, of what Spark warns of, and of the error."""

    def stop() -> None:
        logging.getLogger(__name__).error("Exception while sending command.")
        warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, stacklevel=1)
        raise Py4JNetworkError("Answer from Java side is empty")

    session.stop_quietly(stop)
    assert (list(recwarn), caplog.records) == ([], [])
