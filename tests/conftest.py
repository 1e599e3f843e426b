"""What all tests share: how hypothesis goes about its cases, one Spark session, and a folder for all users."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings

from hopwatch.monitor.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.real.servers.postgres"]

# How long a case takes says more about the machine and its other guests than about the code.
# Every run tries the same cases, so that what fails is what was changed; ``--hypothesis-profile=search`` tries others.
settings.register_profile("search", deadline=None)
settings.register_profile("hopwatch", deadline=None, derandomize=True)
settings.load_profile("hopwatch")


LONGEST: Final = (
    "test_kafka_job.py",
    "test_kafka_faults.py",
    "test_postgres_faults.py",
    "test_paging.py",
    "test_cluster.py",
    "test_validate.py",
    "test_demo_kafka.py",
    "test_killed.py",
    "test_demo.py",
    "test_compose_alerts.py",
    "test_gate_faults.py",
    "test_dashboard_demo.py",
)
"""Files that take minutes each: they begin first, in this order, so that none of them is left alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin first, the others in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield the session that the monitor itself would start, started when the first test asks for it."""
    started = session.start_session(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user may enter and read; pytest's own are for the user who runs the tests alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
