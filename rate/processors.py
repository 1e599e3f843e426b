"""Processor time of processes and of the machine during a step, by ``/proc`` of Linux; elsewhere none is known."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from hopwatch.rate.processor_use import ProcessorShares, ProcessorUse

PROC: Final = Path("/proc")
_NS_PER_S: Final = 1e9
_IDLE: Final = slice(3, 5)
"""Fields of the first line of ``/proc/stat``: idle, and waiting for a disk."""
_ALL: Final = slice(0, 8)


class ProcessorMeter:
    """Meter of the processes that a function returns by name."""

    def __init__(self, find_processes: Callable[[], Mapping[str, Iterable[int]]], proc: Path = PROC) -> None:
        """Take the function; nothing is measured before :meth:`begin`."""
        self._find_processes, self._proc = find_processes, proc
        self._begun_s = 0.0
        self._before: dict[str, dict[int, tuple[int, int]]] = {}
        self._machine: tuple[int, int] | None = None

    def begin(self) -> None:
        """Begin a step."""
        self._before = self._read_processes()
        self._machine = self._read_machine()
        self._begun_s = time.monotonic()

    def end(self) -> ProcessorShares:
        """Return the shares since the beginning, of the processes that were there all the time."""
        passed_ns = (time.monotonic() - self._begun_s) * _NS_PER_S
        now, machine = self._read_processes(), self._read_machine()
        shares = {
            name: max(
                ProcessorUse((now[name][pid][0] - used) / passed_ns, (now[name][pid][1] - waited) / passed_ns)
                for pid, (used, waited) in before.items()
                if pid in now.get(name, {})
            )
            for name, before in self._before.items()
            if passed_ns and before.keys() & now.get(name, {}).keys()
        }
        used = None
        if machine and self._machine and machine[1] > self._machine[1]:
            used = (machine[0] - self._machine[0]) / (machine[1] - self._machine[1])
        return ProcessorShares(shares, used)

    def _read_processes(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Return the ns that each process has run, and has been ready to run, summed over its threads."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for name, pids in self._find_processes().items():
            for pid in pids:
                used = waited = 0
                for file in (self._proc / str(pid) / "task").glob("*/schedstat"):
                    # A thread may have ended.
                    with suppress(OSError, ValueError, IndexError):
                        fields = file.read_text("utf-8").split()
                        used, waited = used + int(fields[0]), waited + int(fields[1])
                if used:
                    found.setdefault(name, {})[pid] = used, waited
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
