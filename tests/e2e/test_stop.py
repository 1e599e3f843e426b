"""An operator stops the job: it ends by itself, in peace, with nothing on the terminal but its own words."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, instances, schema
from tests.support.examples import soak_after
from tests.support.running_monitor import await_line, running

MOMENTS_S: Final = (0.0, 1.5, 3.0)
"""Moments since a job has said that it starts Spark."""
STOPS: dict[str, tuple[signal.Signals, Callable[[int, int], None]]] = {
    "Ctrl-C": (signal.SIGINT, os.killpg),
    "kill": (signal.SIGTERM, os.kill),
    "kill of all its processes at once": (signal.SIGTERM, os.killpg),
}


# Of the others the next test shows SIGTERM to all by default, and test_metrics.py that to the job alone.
@pytest.mark.parametrize(("number", "kill"), soak_after(1, STOPS.values()), ids=STOPS)
def test_a_job_that_is_stopped_says_so_and_ends_well(
    number: signal.Signals, kill: Callable[[int, int], None], tmp_path: Path
) -> None:
    """Exit code 0, no line on stderr but that it stops, whichever way it is stopped; and the store says so."""
    with running(tmp_path) as (job, stderr):
        await_line(stderr, "hopwatch: starting Spark")
        await_line(stderr, "hopwatch: watching")
        kill(job.pid, number)
        said = stderr.readlines()
        assert job.wait() == 0, said
    assert said == ["hopwatch: stopping\n"]
    url = load(tmp_path / "hopwatch.toml", flags={}, environ={}).store.url
    with schema.open_snapshot(dialect.create_engine(url)) as connection:
        assert instances.read_progress(connection).stopped_us is not None


@pytest.mark.parametrize("kill", soak_after(1, [os.killpg, os.kill]))
def test_a_job_that_is_stopped_while_it_starts_ends_well_too(
    kill: Callable[[int, int], None], tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """A job stopped before Spark's start or within it, in a soak later too, ends without an error."""
    for after_s in MOMENTS_S[: times(2, len(MOMENTS_S))]:
        with running(tmp_path) as (job, stderr):
            await_line(stderr, "hopwatch: starting Spark")
            time.sleep(after_s)
            kill(job.pid, signal.SIGTERM)
            rest = [line for line in stderr.readlines() if "watching" not in line]
            assert job.wait() == 0, rest
        assert rest == ["hopwatch: stopping\n"]


SPAN = ("--once", "--from", "2026-01-01", "--to", "2026-01-02")


@pytest.mark.parametrize("flags", soak_after(1, [SPAN, SPAN[:1]]))
def test_a_run_that_reads_once_and_is_interrupted_says_so_in_one_line(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Exit code 130, and nothing of the gateway to Java that it waited for."""
    with running(tmp_path, "tests.e2e.slow_monitor", *flags) as (job, stderr):
        await_line(stderr, "reading")
        os.killpg(job.pid, signal.SIGINT)
        said = stderr.readlines()
        assert job.wait() == 130, said
    assert said == ["hopwatch: interrupted; --once writes all of its windows or none\n"]
