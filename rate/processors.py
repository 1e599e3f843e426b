"""Processor time of processes and of the machine during a step, by ``/proc`` of Linux; elsewhere none is known."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
_TIMES: Final = slice(11, 13)
"""Fields of ``/proc/PID/stat`` behind the name: time in user and kernel mode."""
_IDLE: Final = slice(3, 5)
"""Fields of the first line of ``/proc/stat``: idle, and waiting for a disk."""
_ALL: Final = slice(0, 8)


class ProcessorShares(NamedTuple):
    """Shares of processors during a step.

    ``by_name`` has the busiest process of each name, 1.0 for one processor; ``machine`` the part of all processors of
    the machine that was used; None if it is not known.
    """

    by_name: Mapping[str, float]
    machine: float | None


class ProcessorMeter:
    """Meter of the processes that a function returns by name."""

    def __init__(self, find_processes: Callable[[], Mapping[str, Iterable[int]]], proc: Path = PROC) -> None:
        """Take the function; nothing is measured before :meth:`begin`."""
        self._find_processes, self._proc = find_processes, proc
        self._begun_s = 0.0
        self._before: dict[str, dict[int, int]] = {}
        self._machine: tuple[int, int] | None = None

    def begin(self) -> None:
        """Begin a step."""
        self._before = self._read_processes()
        self._machine = self._read_machine()
        self._begun_s = time.monotonic()

    def end(self) -> ProcessorShares:
        """Return the shares since the beginning, of the processes that were there all the time."""
        passed_ticks = (time.monotonic() - self._begun_s) * os.sysconf("SC_CLK_TCK")
        now, machine = self._read_processes(), self._read_machine()
        shares = {
            name: max(
                (now[name][pid] - ticks) / passed_ticks for pid, ticks in before.items() if pid in now.get(name, {})
            )
            for name, before in self._before.items()
            if passed_ticks and before.keys() & now.get(name, {}).keys()
        }
        used = None
        if machine and self._machine and machine[1] > self._machine[1]:
            used = (machine[0] - self._machine[0]) / (machine[1] - self._machine[1])
        return ProcessorShares(shares, used)

    def _read_processes(self) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        for name, pids in self._find_processes().items():
            for pid in pids:
                # A process may have ended.
                with suppress(OSError, ValueError):
                    fields = (self._proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                    found.setdefault(name, {})[pid] = sum(map(int, fields[_TIMES]))
        return found

    def _read_machine(self) -> tuple[int, int] | None:
        """Return the busy and all ticks of all processors."""
        with suppress(OSError, ValueError):
            fields = list(map(int, (self._proc / "stat").read_text("utf-8").partition("\n")[0].split()[1:]))
            return sum(fields[_ALL]) - sum(fields[_IDLE]), sum(fields[_ALL])
        return None


def find_probe_processes(probes: Mapping[str, Iterable[str]], host: str) -> dict[str, set[int]]:
    """Find the processes of nodes by the names of their probes, which are by default host name and process id."""
    form = re.compile(re.escape(host) + r"-([0-9]{1,10})")
    found: dict[str, set[int]] = {}
    for node, names in probes.items():
        pids = {int(match[1]) for name in names if (match := form.fullmatch(name))}
        if pids:
            found[node] = pids
    return found
