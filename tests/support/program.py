"""Programs of ``hopwatch`` as processes that tests start: forks of one that has imported it (ADR 0169).

To start Python and to import ``hopwatch`` takes a second of processor, a fork some ms. Everything else is as it is for
a user: a process of its own with its arguments, environment, files, signals and exit code. What is to find other
packages than this process, by PYTHONPATH, is no fork.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from servers.process import Process
from tests.repository import ROOT

_SERVER: Final = "tests.support.fork_server"


class _ForkServer:
    """The server of this process, started when the first program is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: socket.socket | None = None

    def ask(self, request: Sequence[object], files: Sequence[int]) -> None:
        """Ask for a program with open files: where its id and status are told, its stdout and its stderr."""
        with self._lock:
            self._asking = self._asking or self._start()
            socket.send_fds(self._asking, [json.dumps(request).encode()], files)

    def _start(self) -> socket.socket:
        asking, asked_at = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024 * 1024)
        with asked_at:
            process = subprocess.Popen(
                [sys.executable, "-m", _SERVER, str(asked_at.fileno())],
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=(asked_at.fileno(),),
            )
        atexit.register(self._end, asking, process)
        return asking

    @staticmethod
    def _end(asking: socket.socket, process: subprocess.Popen[bytes]) -> None:
        asking.close()
        process.wait()


_server: Final = _ForkServer()


class Program:
    """A program that runs, with the methods of :class:`subprocess.Popen` that tests need.

    ``command`` is as ``python -m`` takes it: a module and its arguments. ``out`` and ``err`` are open files; without
    ``out`` what it prints is to be read with :meth:`communicate`, and ``err`` goes to ``out`` unless it is given.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        out: IO[bytes] | None = None,
        err: IO[bytes] | None = None,
        has_new_session: bool = False,
    ) -> None:
        """Start it."""
        self.returncode: int | None = None
        self.stdout: IO[bytes] | None = None
        told, telling = os.pipe()
        self._told = os.fdopen(told, "rb", buffering=0)
        readable = writable = None
        if out is None:
            readable, writable = os.pipe()
            self.stdout = os.fdopen(readable, "rb")
        out_file = writable if out is None else out.fileno()
        assert out_file is not None
        where = (str(folder or Path.cwd()), dict(environ or os.environ))
        request = (command[0], list(command[1:]), *where, has_new_session)
        _server.ask(request, (telling, out_file, out_file if err is None else err.fileno()))
        for ours in (telling, writable):
            if ours is not None:
                os.close(ours)
        self.pid = self._read_number()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until it has ended."""
        self.wait()

    def poll(self) -> int | None:
        """Return its exit code, negative for the signal that ended it; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after so many seconds.
        """
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = self._read_number()
            self._told.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, None]:
        """Return all that it prints until it ends.

        Raises:
            subprocess.TimeoutExpired: it still runs after so many seconds.
        """
        end_s = None if timeout is None else time.monotonic() + timeout
        parts: list[bytes] = []
        assert self.stdout is not None
        while True:
            left_s = None if end_s is None else max(end_s - time.monotonic(), 0)
            if not select.select([self.stdout], [], [], left_s)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            part = os.read(self.stdout.fileno(), 65_536)
            if not part:
                break
            parts.append(part)
        self.wait(timeout)
        return b"".join(parts), None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it without a word."""
        self.send_signal(signal.SIGKILL)

    def _read_number(self) -> int:
        line = bytearray()
        while not line.endswith(b"\n"):
            part = self._told.read(1)
            if not part:
                raise RuntimeError(f"the fork server ended: {_SERVER} says why on stderr")
            line += part
        return int(line)


class ProgramProcess(Process):
    """A program that goes on in a group of its own, as a server does; it ends with us, however we end."""

    def __init__(
        self, command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        """Start it, in a folder."""
        self.log = log
        with log.open("ab") as out:
            program = Program(command, folder=folder, environ=environ, out=out, has_new_session=True)
        self._popen = program  # type: ignore[assignment]  # it has the methods that are called
        atexit.register(self.kill)


def run_program(
    command: Sequence[str], *, folder: Path | None = None, environ: Mapping[str, str] | None = None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and return what it ends with and says.

    Raises:
        subprocess.TimeoutExpired: it still ran after so many seconds, and was killed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        program = Program(command, folder=folder, environ=environ, out=out, err=err)
        try:
            code = program.wait(timeout)
        finally:
            program.kill()
        texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
        return subprocess.CompletedProcess(list(command), code, *texts)
