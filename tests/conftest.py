"""What all tests share: how hypothesis goes about its cases, one Spark session, and a folder for all users."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings

from hopwatch.monitor.spark import session
from tests import engines
from tests.examples import EVERY_RUN, SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.real.servers.postgres"]

# How long a case takes says more about the machine and its other guests than about the code.
# Every run tries the same cases, so that what fails is what was changed; ``--hypothesis-profile=search`` tries others.
settings.register_profile("hopwatch", deadline=None, derandomize=True, max_examples=EVERY_RUN)
settings.register_profile("soak", deadline=None, derandomize=True, max_examples=SOAK)
settings.register_profile("search", deadline=None, max_examples=SOAK)


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


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many cases laws try, before they are collected; the profile that the command line names goes above."""
    settings.load_profile("soak" if config.getoption("soak", default=False) else "hopwatch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin first, the others in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Close what a test left open in any store, after its fixtures have ended."""
    yield
    engines.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield the session that the monitor itself would start, started when the first test asks for it."""
    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user may enter and read; pytest's own are for the user who runs the tests alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
