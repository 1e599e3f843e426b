"""Tests of the query that a monitor runs: failures it has, and the one after which it is begun again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from hopwatch.cli.running_query import MAX_LATE_WORKERS, RunningQuery
from hopwatch.monitor.errors import DependencyError, StoreError, TransportError
from hopwatch.monitor.spark import job, session
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect
from tests.support.spool import STREAM_CONFIGS

LATE = RuntimeError("Python worker failed to connect back.\n=== Streaming Query ===")


@pytest.fixture
def place(tmp_path: Path) -> job.JobContext:
    """Return where a job reads and writes."""
    return job.JobContext(SpoolSource(tmp_path), dialect.create_engine("sqlite://"), STREAM_CONFIGS, tmp_path / "work")


def query(**answers: Any) -> Any:  # noqa: ANN401 - a query of Spark's, as far as it is asked
    """Return a query that gives these answers."""
    return SimpleNamespace(**({"exception": lambda: None, "isActive": True, "stop": lambda: None} | answers))


def begun(place: job.JobContext, **answers: Any) -> RunningQuery:  # noqa: ANN401 - as above
    """Return a running query that gives these answers."""
    return RunningQuery(lambda _: query(**answers), place)


def test_a_stream_that_runs_raises_nothing(place: job.JobContext) -> None:
    """A running stream raises no error, and is not begun again."""
    begun(place).require_alive()


def test_a_stream_whose_python_worker_was_late_is_begun_again(
    place: job.JobContext, capsys: pytest.CaptureFixture[str]
) -> None:
    """At most five times one after another, each with a line on the console and a gate of its own; then it has failed.

    A query that takes the place of another one, as with a new configuration, has five again.
    """
    places: list[job.JobContext] = []

    def start(where: job.JobContext) -> Any:  # noqa: ANN401 - as above
        places.append(where)
        return query(exception=lambda: LATE, isActive=False)

    running = RunningQuery(start, place)
    for _ in range(2):
        for _ in range(MAX_LATE_WORKERS):
            running.require_alive()
        assert capsys.readouterr().err.splitlines() == [
            "hopwatch: Spark's Python worker was not up within 10 s, as on a machine that is busy: "
            f"the stream is started again, {start} of 5 times"
            for start in range(1, 6)
        ]
        with pytest.raises(DependencyError, match=r"^the stream died: Python worker failed to connect back\.; "):
            running.require_alive()
        running.end()
        running.begin(place)
    for ended in places[:-1]:
        with pytest.raises(StoreError, match="another query of this monitor has taken its place"), ended.gate.enter():
            pass
    with places[-1].gate.enter():
        pass


def test_a_stream_that_died_is_told_by_its_cause(place: job.JobContext) -> None:
    """As a dependency that is down."""
    gone = RuntimeError("FileNotFoundError: [Errno 2] No such file or directory: '/spool/1.seg'")
    with pytest.raises(TransportError, match=r"the segment /spool/1\.seg is gone before its windows were judged"):
        begun(place, exception=lambda: gone, isActive=False).require_alive()


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("empty")], ids=str
)
def test_a_java_that_is_gone_is_told(error: Exception, place: job.JobContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, with what ended it: exit code 3."""
    monkeypatch.setattr(session, "java_status", lambda: -9)

    def refuse() -> None:
        raise error

    with pytest.raises(DependencyError) as caught:
        begun(place, exception=refuse).require_alive()
    assert str(caught.value) == (
        "Java was killed: by the system, for want of memory, or by somebody; nothing is lost: start again, "
        f"the log of Spark is {place.workdir}/spark.log"
    )


def test_a_stream_that_stopped_by_itself_is_told(place: job.JobContext) -> None:
    """Even when Spark does not say why."""
    with pytest.raises(DependencyError) as caught:
        begun(place, isActive=False).require_alive()
    assert str(caught.value) == (
        "the stream has stopped by itself without saying why: look into its log, then start the monitor again"
    )
