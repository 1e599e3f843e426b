"""Fixtures that all testers of a run share: what one of them has started or made, the others use."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.clock import SystemClock
from hopwatch.probes.contract.limits import WINDOW_US
from servers.kafka import Kafka
from tests.support.job import undisturbed
from tests.support.spool_traffic import Segment, rest, traffic

SEED: Final = 7
"""Of the eight minutes of two streams that lose messages, which several tests disturb in their own ways."""


@pytest.fixture
def early_in_a_minute() -> None:
    """Wait, where the minute is nearly over: what a test does now is of one window."""
    for _ in rest(30):
        if SystemClock().now_us() % WINDOW_US < 45_000_000:
            return


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all testers of this run have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session")
def kafka(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster of one broker, for tests that make topics of their own and leave the broker alone.

    Who comes first starts it, and ends it when nobody uses it any more.
    """
    cluster, ports = Kafka(tmp_path_factory.mktemp("kafka")), run_folder / "kafka.ports"
    with (run_folder / "kafka.used").open("a") as used:
        with _alone(run_folder / "kafka.starting"):
            fcntl.flock(used, fcntl.LOCK_SH)
            is_ours = not ports.exists()
            if is_ours:
                cluster.start()
                ports.write_text(json.dumps(cluster.ports))
            else:
                cluster.ports = json.loads(ports.read_text())
        try:
            yield cluster
        finally:
            if is_ours:
                fcntl.flock(used, fcntl.LOCK_EX)
                ports.unlink()
                cluster.stop()


@pytest.fixture(scope="session")
def segments() -> list[Segment]:
    """Return eight minutes of two streams that lose messages."""
    return traffic(SEED)


@pytest.fixture(scope="session")
def undisturbed_job(segments: list[Segment], run_folder: Path) -> Path:
    """Return the folder of a job over ``segments`` that nothing has happened to, to read and to copy."""
    folder, report = run_folder / "undisturbed", run_folder / "undisturbed.json"
    with _alone(run_folder / "undisturbed.made"):
        if not report.exists():
            report.write_text(json.dumps(undisturbed(folder, segments)))
    return folder


@pytest.fixture(scope="session")
def undisturbed_report(undisturbed_job: Path) -> dict[str, Any]:
    """Return its report."""
    return dict(json.loads(undisturbed_job.with_suffix(".json").read_text()))


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let no other tester in meanwhile."""
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
