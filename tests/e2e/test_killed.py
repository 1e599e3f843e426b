"""``kill -9`` of the job between the store's commit and Spark's, and at random: nothing is lost, nothing is double."""

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
