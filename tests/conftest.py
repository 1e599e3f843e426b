"""Fixtures of all tests: settings of hypothesis, one Spark session, and a folder for all users."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # as it comes

from hopwatch.monitor.spark import session
from tests.support import engines
from tests.support.examples import EVERY_RUN, SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.postgres", "tests.support.shared"]

# How long a case takes says more about the machine and its other guests than about the code.
# Every run tries the same cases, so that what fails is what was changed; ``--hypothesis-profile=search`` tries others.
settings.register_profile("hopwatch", deadline=None, derandomize=True, max_examples=EVERY_RUN)
settings.register_profile("soak", deadline=None, derandomize=True, max_examples=SOAK)
settings.register_profile("search", deadline=None, max_examples=SOAK)


LONGEST: Final = (
    "test_documented.py",
    "test_deliver.py",
    "test_sink.py",
    "test_taps.py",
    "test_segment_log.py",
    "test_kafka_faults.py",
    "test_validate.py",
    "test_results_topic.py",
    "test_liars.py",
    "test_brokers_die.py",
    "test_dashboard.py",
    "test_demo_service.py",
    "test_batch_hook.py",
    "test_killed.py",
    "test_postgres_faults.py",
    "test_rate.py",
    "test_false_loss.py",
    "test_topics.py",
    "test_scale.py",
    "test_cluster.py",
    "test_dashboard_files.py",
    "test_client.py",
    "test_dashboard_zone.py",
    "test_metrics.py",
    "test_gate_strangers.py",
    "test_stop.py",
    "test_checkpoint.py",
    "test_window_pages.py",
    "test_kafka_sink.py",
    "test_once.py",
    "test_demo_kills.py",
    "test_gate_faults.py",
)
"""Files that take half a minute or more: they begin first, in this order, so that none is left alone at the end."""

OF_SPARK: Final = frozenset(
    {
        "test_segment_log.py",
        "test_failures.py",
        "test_session.py",
        "test_spool.py",
        "test_archive.py",
        "test_once.py",
        "test_spark_probe.py",
    }
)
"""Files with tests in the Spark session of a tester: one tester runs them all, so that one session is started."""


class SparkScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Scheduling by file, with one scope for all files of the Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if Path(file).name in OF_SPARK else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkScheduling:  # noqa: ANN401 - as xdist's own
    """Return the scheduling of the tests over testers."""
    return SparkScheduling(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--soak``."""
    summary = "run every kill, fault and seed, and laws with more cases, as before a release; takes hours"
    parser.addoption("--soak", action="store_true", help=summary)


# While tests are collected there is no garbage; looking for it takes a quarter of the time.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Leave the tests themselves out of garbage collection, which would look at all of them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many cases laws try, before they are collected; the profile that the command line names goes above."""
    settings.load_profile("soak" if config.getoption("--soak") else "hopwatch")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is marked ``soak`` to ``--soak``; let the longest files begin first, the others in their order."""
    if not config.getoption("--soak"):
        left = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    unnamed = {item.path.name for item in items if "spark" in getattr(item, "fixturenames", ())} - OF_SPARK
    if unnamed:
        raise pytest.UsageError(f"{', '.join(sorted(unnamed))} uses the Spark session: name it in OF_SPARK")
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Close what a test left open in any store, after its fixtures have ended."""
    yield
    engines.close()


@pytest.fixture(scope="session")
def times(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """Return a function that picks a count of repetitions: the first by default, the second with ``--soak``."""
    is_soak = bool(request.config.getoption("--soak"))
    return lambda as_a_rule, soak: soak if is_soak else as_a_rule


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests, and all that they start, a home folder of their own: nobody's passwords, settings and caches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


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
