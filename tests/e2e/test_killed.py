"""``kill -9`` of the job at any moment, and a worker that is never up: nothing is lost, nothing is double."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.job import running
from tests.support.spool_traffic import Segment, rest

KILLS: Final = (1, 10)
"""How often the job is killed, as a rule and with --soak, each a start of Spark."""


def test_a_job_that_is_killed_reports_what_an_undisturbed_one_does(
    segments: list[Segment], undisturbed_report: dict[str, Any], tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """First, and every second time, between the store's commit and Spark's, else at random: 0 cells differ.

    As a rule once: what a kill at another moment leaves is what one on either side of the commit does.
    """
    chance = random.Random(11)
    with running(tmp_path / "killed") as job:
        kills = times(*KILLS)
        share = -(-len(segments) // (kills + 1))
        for kill in range(kills):
            is_between_commits = not kill % 2
            job.start("tests.e2e.dying_monitor" if is_between_commits else "hopwatch")
            for segment in segments[kill * share : (kill + 1) * share]:
                segment.write(job.spool)
            if is_between_commits:
                job.await_death()
            else:
                for _ in rest(chance.uniform(2, 12)):
                    pass
                job.kill()
        for segment in segments[kills * share :]:
            segment.write(job.spool)
        job.start()
        job.await_(job.is_final, "the last final window")
        assert job.stop() == 0
        got = job.report()
    assert got == undisturbed_report


def test_a_job_whose_python_worker_is_late_goes_on(
    segments: list[Segment], undisturbed_report: dict[str, Any], tmp_path: Path
) -> None:
    """A worker that does not connect within Spark's 10 s, as on a busy machine, costs another start of the stream."""
    with running(tmp_path / "late") as job:
        for segment in segments:
            segment.write(job.spool)
        job.start("tests.e2e.late_worker_monitor")
        job.await_(job.is_final, "the last final window")
        assert "the stream is started again, 1 of 5 times" in job.words
        assert job.stop() == 0
        assert job.report() == undisturbed_report
