"""``kill -9`` of the job at random, and between the store's commit and Spark's: nothing is lost, nothing is double."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.traffic import Segment, config, rest, traffic

KILLS: Final = 10
PATIENCE_S: Final = 180
RUN: Final = (sys.executable, "-m", "monitor.cli.main")


class Job:
    """``hopwatch run`` on a configuration, started, killed and started again."""

    def __init__(self, folder: Path) -> None:
        """Lay out spool and configuration below a folder."""
        self.spool, self.folder = folder / "spool", folder
        self.spool.mkdir(parents=True)
        self.config = folder / "hopwatch.toml"
        self.config.write_text(config(self.spool, folder))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, program: str = "monitor.cli.main") -> None:
        """Start the job in a session of its own, so that all of it can be killed at once."""
        with (self.folder / "job.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", program, "run", "--config", str(self.config)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill driver, Java and workers without a word."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def await_death(self) -> None:
        """Wait until the job has killed itself, as tests.e2e.dying does."""
        assert self.process is not None
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL

    def stop(self) -> int:
        """Ask the job to end, as an operator would."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def batch(self) -> int:
        """Return the number of the batch that the store has last."""
        try:
            with sqlite3.connect(f"file:{self.folder / 'hopwatch.db'}?mode=ro", uri=True) as store:
                row = store.execute("select value from meta where name = 'batch_id'").fetchone()
        except sqlite3.OperationalError:
            return -1
        return int(row[0]) if row else -1

    def report(self) -> dict[str, Any]:
        """Return what ``report --json`` says."""
        told = subprocess.run([*RUN, "report", "--config", str(self.config), "--json"], capture_output=True, check=True)
        return dict(json.loads(told.stdout))

    def await_(self, holds: Callable[[], bool], what: str) -> None:
        """Look until something holds."""
        for _ in rest(PATIENCE_S):
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "job.log").read_text()[-2_000:]
            if holds():
                return
        pytest.fail(f"{what} did not come within {PATIENCE_S} s: {(self.folder / 'job.log').read_text()[-2_000:]}")

    def is_final(self) -> bool:
        """Whether all windows of all streams are judged."""
        if self.batch() < 0:
            return False
        streams = self.report()["streams"]
        return bool(streams) and all(
            w["status"] == "FINAL" and not w["in_flight"] for s in streams for w in s["windows"][:8]
        )


@contextmanager
def _running(folder: Path) -> Iterator[Job]:
    job = Job(folder)
    try:
        yield job
    finally:
        if job.process is not None and job.process.poll() is None:
            job.kill()


def _undisturbed(folder: Path, segments: list[Segment]) -> dict[str, Any]:
    with _running(folder) as job:
        for segment in segments:
            segment.write(job.spool)
        job.start()
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        return job.report()


def test_a_job_killed_ten_times_reports_what_an_undisturbed_one_does(tmp_path: Path) -> None:
    """Ten kills, every third of them between the store's commit and Spark's: 0 cells of the report differ."""
    segments, chance = traffic(seed=7), random.Random(11)
    expected = _undisturbed(tmp_path / "undisturbed", segments)
    with _running(tmp_path / "killed") as job:
        share = -(-len(segments) // KILLS)
        for kill in range(KILLS):
            is_between_commits = kill % 3 == 2
            job.start("tests.e2e.dying" if is_between_commits else "monitor.cli.main")
            for segment in segments[kill * share : (kill + 1) * share]:
                segment.write(job.spool)
            if is_between_commits:
                job.await_death()
            else:
                for _ in rest(chance.uniform(2, 12)):
                    pass
                job.kill()
        job.start()
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        got = job.report()
    assert got == expected
