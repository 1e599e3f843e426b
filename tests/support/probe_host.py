"""Hosts of probes in processes of their own, and what they left in the spool."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.segment import read_frames
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import Observation

ROOT = Path(__file__).parents[2]
HOST = """
import os, sys, threading, time
from hopwatch import Probe
NOW_US = time.time_ns() // 1_000
probe = Probe("orders", "router", "spool:" + sys.argv[1])
"""
LAST_S = 60


def run(spool: Path, script: str, *, host: str = HOST) -> subprocess.CompletedProcess[str]:
    """Run a host to its end, which is a good one."""
    command = [sys.executable, "-c", host + script, str(spool)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=LAST_S)
    assert done.returncode == 0, done.stderr
    return done


@contextmanager
def started(spool: Path, script: str, *, host: str = HOST) -> Iterator[subprocess.Popen[str]]:
    """Start a host and let it go on; it is killed at the end, if it has not been."""
    command = [sys.executable, "-c", host + script, str(spool)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def spooled(spool: Path) -> dict[str, list[Batch]]:
    """Return what each instance said, by the name of its folder; no segment has a fault."""
    found: dict[str, list[Batch]] = {}
    for path in sorted(spool.rglob("*.seg")):
        data = path.read_bytes()
        for frame in read_frames(data):
            assert not frame.fault, frame
            found.setdefault(path.parent.name, []).append(decode(data[frame.start : frame.end]))
    return found


def rows(batches: list[Batch]) -> list[Observation]:
    """Return the observations of some batches."""
    return [row for batch in batches for row in batch_observations(batch)]


def numbers(batches: list[Batch]) -> list[int]:
    """Return the ids of the observations of some batches."""
    return [int.from_bytes(row.message_id) for row in rows(batches)]
