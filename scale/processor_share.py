"""Share of a processor that processes use, by ``/proc`` of Linux; one that is computing all the time uses 1."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from hopwatch.scale.metric import MetricUnavailableError
from hopwatch.scale.policy import average_shares

PROC: Final = Path("/proc")
_SESSION: Final = 3
_TIMES: Final = slice(11, 15)
"""Fields of ``/proc/PID/stat`` behind the name: time in user and kernel mode, of the process and its ended children."""


class ProcessorShare:
    """Reader of the average share of processes since the last reading, their children included."""

    def __init__(
        self, running: Callable[[], Iterable[int]], target: float, clock_s: Callable[[], float], proc: Path = PROC
    ) -> None:
        """Take the function that returns the processes, each of which leads a session."""
        self._running, self._target, self._clock_s, self._proc = running, target, clock_s, proc
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._read_s = 0.0
        self._before: dict[int, int] = {}

    def read(self) -> float:
        """Return the average share; of a process that has just started it is not known yet.

        Raises:
            MetricUnavailableError: no process was there at the last reading and is still.
        """
        now_s, ticks = self._clock_s(), read_session_ticks(self._proc)
        used = {pid: ticks[pid] for pid in self._running() if pid in ticks}
        passed_s, before = now_s - self._read_s, self._before
        self._read_s, self._before = now_s, used
        shares = [
            (count - before[pid]) / self._ticks_per_s / passed_s if pid in before and passed_s > 0 else None
            for pid, count in used.items()
        ]
        average = average_shares(shares, self._target)
        if average is None:
            raise MetricUnavailableError("the processor share needs two readings of one process, and there is none yet")
        return average


def read_session_ticks(proc: Path) -> Counter[int]:
    """Return the processor time of each session, in ticks of the kernel's clock, by the process that leads it."""
    ticks: Counter[int] = Counter()
    for stat in proc.glob("[0-9]*/stat"):
        # A process may end while it is read.
        with suppress(OSError):
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
            ticks[int(fields[_SESSION])] += sum(map(int, fields[_TIMES]))
    return ticks
