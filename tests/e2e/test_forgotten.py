"""A monitor in which Spark forgets segments that are gone, while it runs and when it is killed: no figure changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.job import Job, running
from tests.support.spool_traffic import traffic

_SHARES: Final = (16, 22)
"""In how many shares the segments come, as a rule and with --soak: at the end of two thirds of them it is killed."""


def _known(job: Job) -> list[str]:
    """Return the segments in the files of Spark's log that it reads when it starts."""
    files = (job.folder / "work" / "checkpoint" / "sources" / "0").iterdir()
    numbered: list[tuple[int, Path]] = [(int(file.stem), file) for file in files if not file.name.startswith(".")]
    newest = max(number for number, file in numbered if file.suffix)
    lines = [line for number, file in numbered if number >= newest for line in file.read_text().split("\n")[1:]]
    return [json.loads(line)["path"] for line in lines]


@contextmanager
def _hasty(folder: Path) -> Iterator[Job]:
    """Yield a job that deletes segments after two minutes of their time, and compacts its log at each third batch."""
    with running(folder) as job:
        settings = job.config.read_text().replace("settle =", 'amend_for = "30s"\nsettle =')
        compacting = '[monitor.spark]\n"spark.sql.streaming.fileSource.log.compactInterval" = "3"\n'
        job.config.write_text(f"{settings}{compacting}")
        yield job


@pytest.mark.soak  # test_segment_log.py forgets by default
def test_a_monitor_that_forgets_reports_what_one_does_that_knows_all(
    tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """0 cells of the report differ, nothing is read twice, and little of what is gone is still known."""
    segments = traffic(seed=7)
    with _hasty(tmp_path / "undisturbed") as job:
        for segment in segments:
            segment.write(job.spool)
        job.start()
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        expected = job.report()
    with _hasty(tmp_path / "forgetting") as job:
        job.start("tests.e2e.forgetful_monitor")
        shares = times(*_SHARES)
        share = -(-len(segments) // shares)
        for number in range(shares):
            batch = job.batch() + 1
            for segment in segments[number * share : (number + 1) * share]:
                segment.write(job.spool)
            job.await_batch(batch)
            if number == shares * 2 // 3:
                job.kill()
                job.start("tests.e2e.forgetful_monitor")
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        got, known = job.report(), _known(job)
        there = len(list(job.spool.rglob("*.seg")))
    assert got == expected
    assert len(set(known)) == len(known)
    assert there < len(segments) / 2
    assert there <= len(known) < len(segments)
    assert "segments that are gone" not in job.words
