"""What all tests share: how hypothesis goes about its cases, and one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import pytest
from hypothesis import settings
from sqlalchemy import Connection, Engine, event

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
    "test_brokers_die.py",
    "test_postgres_faults.py",
    "test_paging.py",
    "test_cluster.py",
    "test_validate.py",
    "test_validate_away.py",
    "test_demo_kills.py",
    "test_demo_kafka.py",
    "test_killed.py",
    "test_demo.py",
    "test_compose_alerts.py",
    "test_gate_faults.py",
    "test_dashboard_demo.py",
)
"""Files that take minutes each: they begin first, in this order, so that none of them is left alone at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take ``--soak``."""
    told = "repeat what kills, breaks and chances there are as often as a release deserves; takes hours"
    parser.addoption("--soak", action="store_true", help=told)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is marked ``soak`` to ``--soak``; let the longest files begin first, the others in their order."""
    if not config.getoption("--soak"):
        left = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="session")
def times(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """Return what says how often a test does its worst: so often as a rule, and so often with ``--soak``."""
    is_soak = bool(request.config.getoption("--soak"))
    return lambda as_a_rule, soak: soak if is_soak else as_a_rule


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests, and all that they start, a home folder of their own: nobody's passwords, settings and caches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def _stores_are_let_go() -> Iterator[None]:
    """Close what a test leaves open of its stores: each has three files, and a process of tests may open 1,024."""
    opened = WeakSet[Engine]()

    def note(connection: Connection) -> None:
        opened.add(connection.engine)

    event.listen(Engine, "engine_connect", note)
    yield
    event.remove(Engine, "engine_connect", note)
    for engine in opened:
        engine.dispose()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield the session that the monitor itself would start, started when the first test asks for it."""
    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()
