"""Our job, spool to store: once over all that is there, and as a stream with a backlog. Every result is checked.

The functions are called in a process of their own, see :mod:`bench.contestant`; spans are in s.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.contestant import CORES, Json
from bench.generate import GeneratedWork
from bench.progress import FinalWindows, rates
from bench.result_check import check_store
from bench.work import Work, rules
from hopwatch.monitor.spark import job, session
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, fencing, schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE: Final = "0 seconds"
"""A trigger as soon as the one before has ended."""


def run_once(folder: Path, work: Json, made: str, runs: int) -> Json:
    """Run ``--once`` so many times in one session: the first is cold, the later ones are warm."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    with start_job(folder) as spark:
        places = [place(of_kind, folder / f"run-{number}") for number in range(runs)]
        query_s = [_timed_once(spark, one) for one in places]
        checked_s = sum(_check(of_kind, one) for one in places)
    return {"query_s": query_s, "checked_s": checked_s}


def backlog(folder: Path, work: Json, made: str) -> Json:
    """Read a backlog as a stream, from the query's start until every window is final in the store."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    with start_job(folder) as spark:
        return _backlog(spark, of_kind, folder / "run")


def both(folder: Path, work: Json, made: str) -> Json:
    """Run ``--once`` twice and then the stream in one session; ``once_s`` is that of the second run."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    with start_job(folder) as spark:
        places = [place(of_kind, folder / f"run-{number}") for number in range(2)]
        once_s = [_timed_once(spark, one) for one in places]
        for one in places:
            _check(of_kind, one)
        return {"once_s": once_s[-1]} | _backlog(spark, of_kind, folder / "run")


@contextmanager
def start_job(folder: Path) -> Iterator[SparkSession]:
    """Yield a session as the monitor starts it."""
    spark = session.start_session(folder / "session", cores=CORES)
    try:
        yield spark
    finally:
        spark.stop()


def place(made: GeneratedWork, folder: Path) -> job.JobContext:
    """Return a place for a job over that work, with an empty store."""
    folder.mkdir()
    engine = dialect.create_engine(f"sqlite:///{folder / 'store.db'}")
    schema.prepare_store(engine)
    return job.JobContext(SpoolSource(made.spool), engine, rules(made.work), folder)


def _timed_once(spark: SparkSession, where: job.JobContext) -> float:
    began_s = time.perf_counter()
    job.run_once(spark, where, lambda _: None)
    return time.perf_counter() - began_s


def _check(made: GeneratedWork, where: job.JobContext) -> float:
    began_s = time.perf_counter()
    check_store(where.engine, made.work, made.truth())
    return time.perf_counter() - began_s


def _backlog(spark: SparkSession, made: GeneratedWork, folder: Path) -> Json:
    spool = folder / "spool"
    where = replace(place(made, folder), source=SpoolSource(spool))
    # A stream deletes what it has done with; these are other names of the same files.
    shutil.copytree(made.spool, spool, copy_function=os.link)
    finals = FinalWindows(made.work.windows, made.work.end_us)
    fencing.claim_store(where.engine, where.checkpoint, where.rules)
    began_s = time.time()
    query = job.start_stream(spark, where, AT_ONCE, finals.note)
    found = finals.wait(query)
    query.stop()
    _check(made, where)
    return {
        "backlog_s": found[-1].end_s - began_s,
        "rates": rates(found, made.segments(), began_s)._asdict(),
    }
