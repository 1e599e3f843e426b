"""Supervisor of processes of one command: starts, restarts and ends them, and waits until each has ended.

Each process leads a session of its own, so that Ctrl-C at a terminal reaches the supervisor alone. It is ended as
Kubernetes ends a pod: SIGTERM to the process, and after a time SIGKILL to it and its children. Used by one thread.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from hopwatch.scale.restart import count_early_ends, restart_wait_s

PATIENCE_S: Final = 30.0
"""Time from SIGTERM to SIGKILL; ``terminationGracePeriodSeconds`` of Kubernetes, by default."""


@dataclass(slots=True)
class _Slot:
    """Place of one process, which is started again when it ends."""

    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    early_ends: int = 0
    start_at_s: float = 0.0


@dataclass(slots=True)
class _Leaver:
    """Process that was asked to end."""

    process: subprocess.Popen[bytes]
    kill_at_s: float
    is_killed: bool = False


class Supervisor:
    """Keeps so many processes of a command running."""

    def __init__(
        self,
        command: Sequence[str],
        clock_s: Callable[[], float],
        report: Callable[[str], None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Take the command; nothing starts before :meth:`resize`. ``clock_s`` never goes back."""
        self._command, self._clock_s, self._report, self._patience_s = list(command), clock_s, report, patience_s
        self._slots: list[_Slot] = []
        self._leavers: list[_Leaver] = []
        self.restarts = 0
        """Processes that ended by themselves, and were or will be started again."""
        self.kills = 0
        """Processes that did not end in time after SIGTERM."""

    @property
    def running(self) -> tuple[int, ...]:
        """The ids of the processes that run and were not asked to end, the oldest place first."""
        return tuple(slot.process.pid for slot in self._slots if slot.process is not None)

    @property
    def ending(self) -> int:
        """The number of processes that were asked to end and have not yet."""
        return len(self._leavers)

    def resize(self, count: int) -> None:
        """Keep so many processes from now on: start the missing ones, ask the newest to end."""
        while len(self._slots) > count:
            slot = self._slots.pop()
            if slot.process is not None:
                self._ask_to_end(slot.process)
        while len(self._slots) < count:
            slot = _Slot()
            self._start(slot)
            self._slots.append(slot)

    def look_after(self) -> None:
        """Start again what has ended by itself, once its wait is over, and kill what does not end in time."""
        now_s = self._clock_s()
        for slot in self._slots:
            if slot.process is not None and slot.process.poll() is not None:
                self._note_end(slot, slot.process, now_s)
            if slot.process is None and slot.start_at_s <= now_s:
                self._start(slot)
        for leaver in tuple(self._leavers):
            if leaver.process.poll() is not None:
                _kill_group(leaver.process.pid)
                self._leavers.remove(leaver)
            elif not leaver.is_killed and leaver.kill_at_s <= now_s:
                leaver.is_killed = True
                self.kills += 1
                self._report(f"process {leaver.process.pid} did not end in {self._patience_s:g} s: killed")
                _kill_group(leaver.process.pid)

    def close(self, wait: Callable[[float], object], step_s: float = 0.05) -> None:
        """End all processes, and return when the last one has ended; ``wait`` sleeps for some seconds."""
        self.resize(0)
        while self._leavers:
            self.look_after()
            if self._leavers:
                wait(step_s)

    def _start(self, slot: _Slot) -> None:
        now_s = self._clock_s()
        try:
            slot.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - the command is the user's own
        except OSError as error:
            self._report(
                f"{self._command[0]!r:.200} cannot be started: {error.strerror}: {self._plan_start(slot, 0.0)}"
            )
        slot.started_s = now_s

    def _note_end(self, slot: _Slot, process: subprocess.Popen[bytes], now_s: float) -> None:
        """Plan the restart of a process that has ended by itself."""
        _kill_group(process.pid)
        slot.process, code, ran_s = None, process.returncode, now_s - slot.started_s
        self.restarts += 1
        ended = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        self._report(f"process {process.pid} ended {ended} after {ran_s:.1f} s: {self._plan_start(slot, ran_s)}")

    def _plan_start(self, slot: _Slot, ran_s: float) -> str:
        """Plan the next start in a place whose process ran for so long, and return the words for it."""
        slot.early_ends = count_early_ends(slot.early_ends, ran_s)
        wait_s = restart_wait_s(slot.early_ends)
        slot.start_at_s = self._clock_s() + wait_s
        return f"starting it again in {wait_s:g} s" if wait_s else "starting it again now"

    def _ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        self._leavers.append(_Leaver(process, self._clock_s() + self._patience_s))


def _kill_group(pid: int) -> None:
    """Kill what is left of the session of a process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
