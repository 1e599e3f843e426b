"""``hopwatch run`` as a process that tests start, disturb and stop."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.store import dialect, schema, writer
from tests.support.command_call import called
from tests.support.program import Program
from tests.support.report import reported
from tests.support.spool_traffic import Segment, config, rest

PATIENCE_S: Final = 180


class Job:
    """``hopwatch run`` on a configuration, started, killed and started again."""

    def __init__(self, folder: Path, store_url: str = "", retry_for: str = "10m") -> None:
        """Lay out spool and configuration below a folder; the store is a file there unless another is named."""
        self.spool, self.folder = folder / "spool", folder
        self.spool.mkdir(parents=True)
        self.config = folder / "hopwatch.toml"
        self.store_url = store_url or f"sqlite:///{folder / 'hopwatch.db'}"
        self.config.write_text(config(self.spool, folder, store_url=self.store_url, retry_for=retry_for))
        self.process: Program | None = None

    def start(self, program: str = "hopwatch") -> None:
        """Start the job in a session of its own, so that all of it can be killed at once."""
        with (self.folder / "job.log").open("ab") as log:
            self.process = Program([program, "run", "--config", str(self.config)], out=log, has_new_session=True)

    def kill(self) -> None:
        """Kill driver, Java and workers without a word."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def await_death(self) -> None:
        """Wait until the job has killed itself, as tests.e2e.dying_monitor does."""
        assert self.process is not None
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL

    def stop(self) -> int:
        """Ask the job to end, as an operator would."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def value(self, name: str) -> str:
        """Return one of the values that the store keeps of its run, empty where it has none."""
        if not schema.has_store(self.store_url):
            return ""
        engine = dialect.create_engine(self.store_url)
        with engine.begin() as connection:
            value = writer.read_value(connection, name)
        engine.dispose()
        return value or ""

    def batch(self) -> int:
        """Return the number of the batch that the store has last."""
        return int(self.value("batch_id") or -1)

    @property
    def words(self) -> str:
        """Return the job's log up to now."""
        return (self.folder / "job.log").read_text()

    def report(self) -> dict[str, Any]:
        """Return what ``report --json`` says, but not until when it was read: the pulse goes with the clock."""
        told = called("report", "--config", str(self.config), "--json")
        assert told.returncode == 0, told.stderr
        report = dict(json.loads(told.stdout))
        del report["read_through"]
        return report

    def await_(self, holds: Callable[[], bool], what: str) -> None:
        """Look until something holds."""
        for _ in rest(PATIENCE_S):
            assert self.process is not None
            assert self.process.poll() is None, self.words[-2_000:]
            if holds():
                return
        pytest.fail(f"{what} did not come within {PATIENCE_S} s: {(self.folder / 'job.log').read_text()[-2_000:]}")

    def await_batch(self, number: int) -> None:
        """Look until the store has the batch of this number."""
        self.await_(lambda: self.batch() >= number, f"batch {number}")

    def is_final(self) -> bool:
        """Return whether all windows of all streams are judged."""
        streams = reported(self.store_url)["streams"]
        # A stream is there before its first window is.
        return (
            bool(streams)
            and all(one["windows"] for one in streams)
            and all(w["status"] == "FINAL" and not w["in_flight"] for s in streams for w in s["windows"][:8])
        )


@contextmanager
def running(folder: Path, store_url: str = "", retry_for: str = "10m") -> Iterator[Job]:
    """Yield a job that is not started yet, and leave none running behind."""
    job = Job(folder, store_url, retry_for)
    try:
        yield job
    finally:
        if job.process is not None and job.process.poll() is None:
            job.kill()


def undisturbed(folder: Path, segments: list[Segment]) -> dict[str, Any]:
    """Return the report of a job that nothing happens to."""
    with running(folder) as job:
        for segment in segments:
            segment.write(job.spool)
        job.start()
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        return job.report()
