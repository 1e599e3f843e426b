"""Tests of the job on a Spark cluster: a master and its workers, each an own process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hopwatch.monitor.spark import cluster
from hopwatch.monitor.spark.session import JAVA_OPTIONS
from servers.kafka import Kafka
from servers.process import free_ports
from servers.spark import Spark
from tests.real.monitor_process import Monitor, differences, minute_of, windows_of
from tests.real.program_folder import Workplace
from tests.real.traffic import STREAMS, Traffic
from tests.support.report import known_in

LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
QUICK = f'''[monitor.spark]
"spark.executor.extraJavaOptions" = "{JAVA_OPTIONS}"'''
"""Executors that live for seconds need no optimising compiler."""


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory, times: Callable[[int, int], int]) -> Iterator[Spark]:
    """Yield a cluster of one worker; in a soak of two, one of whose executors is killed."""
    started = Spark(tmp_path_factory.mktemp("cluster") / "spark", times(1, 2))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.mark.soak  # test_kafka_job.py kills a driver by default
def test_an_executor_that_is_killed_changes_nothing(kafka: Kafka, spark_cluster: Spark, tmp_path: Path) -> None:
    """The report of a cluster that lost one under load equals that of a monitor in one process, cell by cell."""
    kafka.create_topic("cluster", 4)
    traffic = Traffic(kafka.url("cluster")).start()
    work = Workplace(tmp_path / "cluster", kafka.url("cluster"), more=QUICK, streams=STREAMS, environ=LOOPBACK)
    monitor = Monitor(work).start("--master", spark_cluster.url)
    monitor.until(lambda: len(spark_cluster.executors()) == 2 and known_in(work.store_url) > 0, "two executors at work")
    killed = spark_cluster.executors()[0]
    os.kill(killed, signal.SIGKILL)
    monitor.until(lambda: len(set(spark_cluster.executors()) - {killed}) == 2, "another executor in its place")
    time.sleep(5)
    traffic.end()
    last = minute_of(time.time())
    got = monitor.until_judged(last)
    monitor.stop()
    alone = Monitor(Workplace(tmp_path / "alone", kafka.url("cluster"), streams=STREAMS)).start()
    expected = alone.until_judged(last)
    alone.stop()
    assert differences(windows_of(got), windows_of(expected)) == []
    assert sum(window["known"] for window in windows_of(got)) == traffic.sent


def test_the_package_reaches_the_executors(spark_cluster: Spark, tmp_path: Path) -> None:
    """Executors import the package from the archive, whatever else is installed there."""
    code = (
        "from pathlib import Path; from hopwatch.monitor.spark import session; import sys\n"
        f"spark = session.start_session(Path({str(tmp_path / 'work')!r}), master={spark_cluster.url!r})\n"
        "seen = lambda _: __import__('hopwatch.monitor').monitor.__file__\n"
        "told = spark.sparkContext.parallelize([0]).map(seen).collect()\n"
        f"Path({str(tmp_path / 'told')!r}).write_text(told[0]); spark.stop()\n"
    )
    work = Workplace(tmp_path / "place", "spool:./spool", environ=LOOPBACK)
    done = work.python(code)
    assert done.returncode == 0, done.stderr
    assert f"{cluster.ARCHIVE}/hopwatch/monitor/__init__.py" in (tmp_path / "told").read_text()


def test_a_master_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """Exit 3, at once, with what to do."""
    (port,) = free_ports(1)
    (tmp_path / "spool").mkdir()
    done = Workplace(tmp_path, "spool:./spool").run("run", "--master", f"spark://127.0.0.1:{port}")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        3,
        (
            f"hopwatch: no Spark master answers at spark://127.0.0.1:{port}: "
            "start it, or correct --master or [monitor] master; then try again"
        ),
    )


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('"spark.sql.shuffle.partitions" = "many"', "The value 'many' in the config"),
        ('"spark.driver.memory" = "1x"', "Invalid maximum heap size: -Xmx1x"),
    ],
)
def test_a_setting_that_spark_refuses_is_named(setting: str, told: str, tmp_path: Path) -> None:
    """Exit 3, and one line with Spark's own words and its log."""
    (tmp_path / "spool").mkdir()
    done = Workplace(tmp_path, "spool:./spool", more=f"[monitor.spark]\n{setting}").run("run", "--once")
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr
    assert done.stderr.startswith("hopwatch: Spark does not start: ")
    assert told in done.stderr
    assert done.stderr.endswith(f"; its log is {tmp_path / 'work' / 'spark.log'}\n")


def test_a_master_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """Exit 2, with the forms that there are."""
    (tmp_path / "spool").mkdir()
    done = Workplace(tmp_path, "spool:./spool").run("run", "--master", "sparc://h:1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        (
            "hopwatch: a Spark master is local, local[CORES], spark://HOST:PORT, yarn or k8s://URL; "
            "got 'sparc://h:1' in --master or [monitor] master"
        ),
    )
