"""A running monitor whose PostgreSQL fails: restarted, its connections ended, its disk full; 0 cells differ."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.store import dialect
from servers.postgres import OWNER, Postgres
from tests.support.job import PATIENCE_S, Job, running
from tests.support.spool_traffic import Segment, rest

SHARES: Final = (2, 4)
"""In how many shares the segments come, each but the first with trouble: as a rule, and with --soak."""
SMALL: Final = "small"
DISK_BYTES: Final = 64 * 1024 * 1024
TRIED_AGAIN: Final = "hopwatch: the store fails, the batch is tried again whole: "


@pytest.fixture
def server() -> Iterator[Postgres]:
    """Yield a server of the test's own, to be stopped and started."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="module")
def shares(times: Callable[[int, int], int]) -> int:
    """Return in how many shares the segments come."""
    return times(*SHARES)


def disturbed(job: Job, segments: list[Segment], shares: int, disturb: Callable[[], None]) -> dict[str, Any]:
    """Run the job over the segments share by share, each but the first with trouble; return its report."""
    share = -(-len(segments) // shares)
    for number in range(shares):
        for segment in segments[number * share : (number + 1) * share]:
            segment.write(job.spool)
        if number:
            disturb()
        else:
            job.start()
            job.await_batch(0)
    job.await_(job.is_final, "the last final window")
    assert job.stop() == 0
    return job.report()


def fails(job: Job, told: int) -> None:
    """Wait until a batch has failed since so many failures were told."""
    job.await_(lambda: job.words.count(TRIED_AGAIN) > told, "the failure of a batch")


def test_a_server_that_is_restarted_costs_nothing(
    server: Postgres, segments: list[Segment], undisturbed_report: dict[str, Any], shares: int, tmp_path: Path
) -> None:
    """Once or more, as a power cut would, each time when a batch is to be written."""
    with running(tmp_path, server.database()) as job:

        def restart() -> None:
            told = job.words.count(TRIED_AGAIN)
            server.stop()
            fails(job, told)
            server.start()

        got = disturbed(job, segments, shares, restart)
    assert got == undisturbed_report


@pytest.mark.soak  # a restarted server ends them by default
def test_connections_that_an_administrator_ends_cost_nothing(
    postgres: Postgres, segments: list[Segment], undisturbed_report: dict[str, Any], shares: int, tmp_path: Path
) -> None:
    """All of them, the one that holds the store too, again and again while batches are written."""
    url = postgres.database()
    ended = 0
    with running(tmp_path, url) as job:

        def end() -> None:
            nonlocal ended
            for _ in rest(5):
                ended += postgres.end_connections(url.rpartition("/")[2])

        got = disturbed(job, segments, shares, end)
    assert got == undisturbed_report
    assert ended > shares


@pytest.mark.soak  # a restarted server is waited for by default
def test_a_full_disk_is_waited_for(
    postgres: Postgres, segments: list[Segment], undisturbed_report: dict[str, Any], shares: int, tmp_path: Path
) -> None:
    """Nothing of a batch is written until there is room for all of it."""
    with _small_disk(postgres) as disk, running(tmp_path, postgres.database(f"TABLESPACE {SMALL}")) as job:

        def fill() -> None:
            told = job.words.count(TRIED_AGAIN)
            _fill(disk / "filler")
            fails(job, told)
            (disk / "filler").unlink()

        got = disturbed(job, segments, shares, fill)
    assert got == undisturbed_report
    assert "No space left on device" in job.words


@contextmanager
def _small_disk(postgres: Postgres) -> Iterator[Path]:
    """Mount a disk in memory, and let the server keep databases there."""
    if os.geteuid() != 0:
        pytest.fail("a small disk can be mounted by root alone: run this test as root, in a container for example")
    disk = Path(tempfile.mkdtemp(prefix="hopwatch-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], check=True)  # noqa: S607 - root's own
    try:
        (disk / "space").mkdir()
        shutil.chown(disk, OWNER, OWNER)
        shutil.chown(disk / "space", OWNER, OWNER)
        postgres.ask(f"CREATE TABLESPACE {SMALL} LOCATION '{disk / 'space'}'")
        yield disk
    finally:
        postgres.drop_all()
        postgres.ask(f"DROP TABLESPACE IF EXISTS {SMALL}")
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607 - root's own
        disk.rmdir()


def _fill(file: Path) -> None:
    """Write until there is no room for a page."""
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while filler.write(bytes(4_096)):
            pass


def test_a_store_that_stays_away_ends_the_monitor(server: Postgres, segments: list[Segment], tmp_path: Path) -> None:
    """Exit 3 after the time that it may be away, with its name and what to do."""
    url = server.database()
    with running(tmp_path, url, "3s") as job:
        segments[0].write(job.spool)
        job.start()
        job.await_batch(0)
        server.stop()
        segments[1].write(job.spool)
        assert job.process is not None
        assert job.process.wait(PATIENCE_S) == 3
        last = job.words.splitlines()[-1]
    assert last.startswith(f"hopwatch: the store {dialect.redact_url(url)} failed: ")
    assert last.endswith("; check that the server is up, and host and port in [store] url, then start again")
