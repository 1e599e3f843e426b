"""Processes of a run: start, watch, kill and restart them as requested, and stop them one after the other."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import hopwatch
from hopwatch.demo.faults import Kill
from hopwatch.monitor.errors import DependencyError, HopwatchError

RESTART_AFTER_S: Final = 3.0
PACKAGES: Final = Path(hopwatch.__file__).parents[1]
"""Working directory of the process, from which it imports this package."""


class NodeDiedError(HopwatchError):
    """A node's process ended without a stop request; where a link failed, its exit code becomes the demo's."""

    def __init__(self, message: str, code: int) -> None:
        """Take the exit code of the process."""
        super().__init__(message)
        own = HopwatchError.exit_code
        self.exit_code = code if code == DependencyError.exit_code else own  # type: ignore[misc]


class Program(NamedTuple):
    """Program of a process: a Python module with its arguments.

    It ends when its standard input is closed, or, with ``ends_by_signal``, at SIGTERM; ``descriptors`` are inherited.
    With ``is_drainer`` it runs while the processes drain alone: those behind it go on until it has ended by itself.
    """

    arguments: Sequence[str]
    ends_by_signal: bool = False
    descriptors: tuple[int, ...] = ()
    is_drainer: bool = False


class Processes:
    """Processes in the order in which messages pass them. A context manager: none of them outlives it."""

    def __init__(
        self,
        line: Sequence[str],
        find_log: Callable[[str], Path],
        kills: Sequence[Kill] = (),
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the names of the processes, their logs, and which are to be killed when."""
        self._line = tuple(line)
        self._find_log = find_log
        self._now_s = now_s
        self._told: set[str] = set()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._kills = list(kills)
        self._restarts_s: dict[str, float] = {}
        self._started_s = 0.0

    def describe_program(self, name: str) -> Program:
        """Return the program of a process."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Start the processes, the last one first."""
        self._started_s = self._now_s()
        for name in reversed(self._line):
            if not self.describe_program(name).is_drainer:
                self._start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever still runs."""
        for process in self._processes.values():
            process.kill()
            _close_input(process)
            process.wait()

    def watch(self) -> list[str]:
        """Do the kills and restarts that are due, and say in a line each what was done.

        Raises:
            NodeDiedError: a node ended by itself.
        """
        done = self._restart_due()
        done += self._check_alive()
        while (name := self._next_kill()) is not None:
            self._kill(name)
            done.append(f"{name} is killed (SIGKILL)")
        return done

    @property
    def has_finished(self) -> bool:
        """Return whether there will be no more messages, although no stop was requested."""
        return False

    def drain(self) -> str | None:
        """Let the first node that still runs drain and end; return its name, or ``None`` once all have ended.

        Raises:
            NodeDiedError: a node failed on its way out.
        """
        self._kills.clear()
        for node in list(self._restarts_s):
            self._start(node)  # what waits in its link has to be drained too
        for node in self._line:
            if node not in self._processes:
                self._start(node)
            if self._processes[node].poll() is None:
                self._tell_to_end(node)
                return node
            if self._is_interrupted(node):
                self._told.discard(node)
                self._start(node)
                return node
            self._check_exit(node)
        return None

    def _next_kill(self) -> str | None:
        """Return what is to be killed now, once; one that is dead already waits until it is back."""
        if not self._kills or self._now_s() - self._started_s < self._kills[0].at_s:
            return None
        return None if self._kills[0].node in self._restarts_s else self._kills.pop(0).node

    def _is_interrupted(self, name: str) -> bool:  # noqa: ARG002 - of those here none is
        """Return whether a process that has ended by itself is to be started again."""
        return False

    def _restart_due(self) -> list[str]:
        due = [name for name, due_s in self._restarts_s.items() if self._now_s() >= due_s]
        for name in due:
            self._start(name)
        return [f"{name} is started again" for name in due]

    def _start(self, name: str) -> None:
        program = self.describe_program(name)
        with self._find_log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                [sys.executable, "-m", *program.arguments],
                stdin=subprocess.PIPE,  # the node drains and ends when we close it, or die
                stdout=log,
                stderr=log,
                cwd=PACKAGES,
                pass_fds=program.descriptors,
                start_new_session=True,  # Ctrl-C is for the demo alone
            )
        self._restarts_s.pop(name, None)

    def _tell_to_end(self, name: str) -> None:
        program = self.describe_program(name)
        if name in self._told or program.is_drainer:
            return
        if program.ends_by_signal:
            self._processes[name].terminate()
        else:
            _close_input(self._processes[name])
        self._told.add(name)

    def _kill(self, name: str) -> None:
        process = self._processes[name]
        process.kill()
        _close_input(process)
        process.wait()
        self._restarts_s[name] = self._now_s() + RESTART_AFTER_S

    def _check_alive(self) -> list[str]:
        """Check that all run; return in a line each which have ended and are to be started again."""
        said = []
        for name, process in self._processes.items():
            if name in self._restarts_s or process.poll() is None:
                continue
            if self._is_interrupted(name):
                self._restarts_s[name] = self._now_s() + RESTART_AFTER_S
                said.append(f"{name} has ended, to be started again; {read_last_line(self._find_log(name))}")
            elif not self._may_end(name):
                raise self._died_error(name)
        return said

    def _may_end(self, name: str) -> bool:  # noqa: ARG002 - of those here none may
        """Return whether a process that has ended by itself was right to."""
        return False

    def _check_exit(self, name: str) -> None:
        code = self._processes[name].returncode
        # One that was started a moment ago has no handler of SIGTERM yet, and nothing in hand.
        is_early = code == -signal.SIGTERM and self.describe_program(name).ends_by_signal
        if code and not is_early:
            raise self._died_error(name)

    def _died_error(self, name: str) -> NodeDiedError:
        code, log = self._processes[name].returncode, self._find_log(name)
        return NodeDiedError(f"{name} ended by itself with exit code {code}; {read_last_line(log)} ({log})", code)


def read_last_line(log: Path) -> str:
    """Return the last line of a log in words: what a process said before it ended."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    said = [line.strip() for line in lines if line.strip()]
    return f"its last words: {said[-1]}" if said else "it said nothing"


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
