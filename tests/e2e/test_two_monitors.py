"""Two monitors on one store, on a disk whose locks keep nobody out: one of them ends, and the numbers are right."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.job import PATIENCE_S, Job, running
from tests.support.spool_traffic import Segment, config, rest

LOCKLESS: Final = "tests.e2e.lockless_monitor"


def counted(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without how many records came: a monitor that ends says bye in one, and another reads that."""
    apart = ("records", "batches")
    return report | {"accounts": {name: got for name, got in report["accounts"].items() if name not in apart}}


def is_over(job: Job) -> bool:
    """Return whether a job has ended."""
    assert job.process is not None
    return job.process.poll() is not None


def left_of(jobs: list[Job]) -> Job:
    """Wait until one of two has ended, with 3; return the one that is left."""
    for _ in rest(PATIENCE_S):
        if any(map(is_over, jobs)):
            break
    (left,) = (job for job in jobs if not is_over(job))
    for job in jobs:
        assert job is left or (job.process is not None and job.process.returncode == 3), job.words
    return left


@pytest.mark.soak  # tests/monitor/spark/test_sink.py has a run that loses the store to another by default
def test_two_that_begin_at_once_count_nothing_twice(
    segments: list[Segment], undisturbed_report: dict[str, Any], tmp_path: Path
) -> None:
    """Each with a workdir of its own, over the same spool and an empty store: one ends with 3, 0 cells differ."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(running(tmp_path / name)) for name in ("first", "second"))
        second.store_url = first.store_url
        second.config.write_text(config(first.spool, second.folder, store_url=first.store_url, retry_for="10m"))
        # All of them now: the one that ends says bye in our days, which makes all minutes of the traffic final.
        for segment in segments:
            segment.write(first.spool)
        for job in (first, second):
            job.start(LOCKLESS)
        left = left_of([first, second])
        left.await_(left.is_final, "the last final window")
        assert left.stop() == 0
        assert counted(left.report()) == counted(undisturbed_report)


@pytest.mark.soak  # as above
def test_one_that_is_started_beside_another_takes_over(
    segments: list[Segment], undisturbed_report: dict[str, Any], tmp_path: Path
) -> None:
    """In the same workdir, as a supervisor might that lost sight of the first: that one ends with 3, 0 cells differ."""
    with running(tmp_path) as first:
        for segment in segments[: len(segments) // 2]:
            segment.write(first.spool)
        first.start(LOCKLESS)
        first.await_batch(0)
        token = first.value("run")
        second = copy.copy(first)
        second.start(LOCKLESS)
        try:
            # The first looks at the token in its micro-batches alone, and those need something to read.
            second.await_(lambda: second.value("run") != token, "the token of the second")
            for segment in segments[len(segments) // 2 :]:
                segment.write(first.spool)
            left = left_of([first, second])
            assert left is second, first.words
            assert "hopwatch: another monitor has taken the store " in first.words
            left.await_(left.is_final, "the last final window")
            assert left.stop() == 0
        finally:
            if not is_over(second):
                second.kill()
        assert counted(left.report()) == counted(undisturbed_report)
