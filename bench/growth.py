"""Growth of the cost with more observations, with more streams, and with smaller batches."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.contestant import run
from bench.generate import bytes_needed, generate_work, require_disk
from bench.speed import Progress
from bench.work import Work

SMALL_BATCH: Final = 256


@dataclass(frozen=True, slots=True)
class Growth:
    """One work and what it took: s and observations a second, ``--once`` warm and as a stream, and the most memory."""

    observations: int
    streams: int
    batch: int
    once_s: float
    stream_s: float
    once_rate: float
    stream_rate: float
    steady_rate: float | None
    memory_bytes: int


def works(observations: int) -> list[Work]:
    """Return the works: a quarter, all and three times the observations; 10 and 100 streams; small batches.

    Raises:
        WorkError: one of them cannot be measured.
    """
    sizes = [Work(observations // 4), Work(observations), Work(observations * 3)]
    return [*sizes, *(Work(observations, streams) for streams in (10, 100)), Work(observations, batch=SMALL_BATCH)]


def measure(observations: int, scratch: Path, tell: Progress) -> list[Growth]:
    """Return a line a work; each result was checked, and each work is removed when it has been measured.

    Raises:
        WorkError: so many observations cannot be measured.
        DiskError: the scratch folder's disk is too small.
        ContestantError: the monitor failed, or found what is not there.
    """
    all_works = works(observations)
    require_disk(scratch, max(bytes_needed(work, with_parquet=False) for work in all_works))
    return [_measure(work, scratch, tell) for work in all_works]


def _measure(work: Work, scratch: Path, tell: Progress) -> Growth:
    tell(f"{work.observations:,} observations, {work.streams} streams, batches of {work.batch:,}")
    made_work = generate_work(work, scratch)
    ran = run("bench.ours:both", scratch, work=work.as_json(), made=str(made_work.folder))
    shutil.rmtree(made_work.folder)
    once_s, rates = ran.result["once_s"], ran.result["rates"]
    return Growth(
        work.observations,
        work.streams,
        work.batch,
        once_s,
        ran.result["backlog_s"],
        work.observations / once_s,
        rates["whole"],
        rates["steady"],
        ran.peak.memory_bytes,
    )
