"""``kill -9`` of the job at random, and between the store's commit and Spark's: nothing is lost, nothing is double."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.support.job import running
from tests.support.spool_traffic import Segment, rest

KILLS: Final = (2, 10)
"""How often the job is killed, as a rule and with --soak, each a start of Spark."""


def test_a_job_that_is_killed_reports_what_an_undisturbed_one_does(
    segments: list[Segment], undisturbed_report: dict[str, Any], tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """Every second time between the store's commit and Spark's: 0 cells of the report differ."""
    chance = random.Random(11)
    with running(tmp_path / "killed") as job:
        kills = times(*KILLS)
        share = -(-len(segments) // kills)
        for kill in range(kills):
            is_between_commits = bool(kill % 2)
            job.start("tests.e2e.dying_monitor" if is_between_commits else "hopwatch")
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
    assert got == undisturbed_report
