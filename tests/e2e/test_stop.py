"""An operator stops the job: it ends by itself, in peace, with nothing on the terminal but its own words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.traffic import config

PATIENCE_S = 60
STOPS: dict[str, tuple[signal.Signals, Callable[[int, int], None]]] = {
    "Ctrl-C": (signal.SIGINT, os.killpg),
    "kill": (signal.SIGTERM, os.kill),
    "kill of all its processes at once": (signal.SIGTERM, os.killpg),
}


@pytest.mark.parametrize(("number", "kill"), STOPS.values(), ids=STOPS)
def test_a_job_that_is_stopped_says_so_and_ends_well(
    number: signal.Signals, kill: Callable[[int, int], None], tmp_path: Path
) -> None:
    """Exit code 0 and three lines on stderr, no traceback, whichever way it is stopped."""
    spool = tmp_path / "spool"
    spool.mkdir()
    (tmp_path / "hopwatch.toml").write_text(config(spool, tmp_path))
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--config", str(tmp_path / "hopwatch.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        assert job.stderr is not None
        said = [job.stderr.readline(), job.stderr.readline()]
        kill(job.pid, number)
        said += job.stderr.readlines()
        assert job.wait(PATIENCE_S) == 0
    starting, watching, *rest = said
    assert starting.startswith("hopwatch: starting Spark")
    assert watching.startswith("hopwatch: watching")
    assert rest == ["hopwatch: stopping\n"]


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_job_that_is_stopped_while_it_starts_ends_well_too(kill: Callable[[int, int], None], tmp_path: Path) -> None:
    """Whatever Spark is at then: no fault is told, and nothing but that it stops."""
    spool = tmp_path / "spool"
    spool.mkdir()
    (tmp_path / "hopwatch.toml").write_text(config(spool, tmp_path))
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--config", str(tmp_path / "hopwatch.toml")]
    for after_s in (0.0, 1.5, 3.0):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
            assert job.stderr is not None
            starting = job.stderr.readline()
            time.sleep(after_s)
            kill(job.pid, signal.SIGTERM)
            rest = [line for line in job.stderr.readlines() if "watching" not in line]
            assert job.wait(PATIENCE_S) == 0
        assert starting.startswith("hopwatch: starting Spark")
        assert rest == ["hopwatch: stopping\n"]
