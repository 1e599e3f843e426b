"""Tests of what a running monitor holds open: the same after many micro-batches as after a few."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.e2e.job import running
from tests.e2e.traffic import traffic

_PROC: Final = Path("/proc")
_BATCHES: Final = 12
_CAME_AND_GO: Final = 8
"""Connections that are open for a moment: of a micro-batch that runs, and of a worker that is made or let go."""


def _sockets(session: int) -> int:
    """Return how many sockets the processes of a session hold open."""
    found = 0
    for process in _PROC.glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == session:
                found += sum(os.readlink(one).startswith("socket:") for one in (process / "fd").iterdir())
        except OSError:  # it has ended meanwhile, or one of its descriptors has
            continue
    return found


def test_micro_batches_leave_no_socket_open(tmp_path: Path) -> None:
    """Spark 4.2.0 left one open for each task with state (SPARK-58932), until the JVM had no descriptor left."""
    with running(tmp_path) as job:
        for segment in traffic(seed=7):
            segment.write(job.spool)
        job.start()
        job.await_(lambda: job.batch() >= _BATCHES // 2, "the first batches")
        assert job.process is not None
        began, before = job.batch(), _sockets(job.process.pid)
        job.await_(lambda: job.batch() >= began + _BATCHES, "more batches")
        assert _sockets(job.process.pid) <= before + _CAME_AND_GO
        assert job.stop() == 0
