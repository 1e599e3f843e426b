"""Server that has imported ``hopwatch`` and forks a process for each program that a test asks it for.

A program by itself: the number of the socket at which it is asked. It ends when the other end is closed.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, Final, NamedTuple

PACKAGES: Final = ("cli", "deliver", "gate", "probes.taps", "probes.sinks", "monitor", "alerts", "rate", "scale")
"""Packages of ``hopwatch`` whose modules are imported for all programs."""
MIGRATION: Final = "hopwatch.monitor.store.migrations."
"""These modules are run by Alembic alone."""
MAX_REQUEST_BYTES: Final = 1024 * 1024


class ProgramRequest(NamedTuple):
    """Program that a test asks for: a module and its arguments, where it runs, and with what environment."""

    module: str
    arguments: list[str]
    folder: str
    environ: dict[str, str]
    has_new_session: bool

    def become(self, told: int, out: int, err: int) -> None:
        """Take the session, the handlers and the streams of the program in this process, and tell its id then."""
        if self.has_new_session:
            os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for source, target in ((out, 1), (err, 2)):
            os.dup2(source, target)
            os.close(source)
        os.write(told, b"%d\n" % os.getpid())
        os.close(told)

    def run(self) -> None:
        """Run it as ``python -m`` does, in this process.

        Raises:
            SystemExit: the program ends with a code.
        """
        os.environ.clear()
        os.environ.update(self.environ)
        time.tzset()
        if self.environ.get("PYTHONFAULTHANDLER"):
            faulthandler.enable()
        os.chdir(self.folder)
        sys.path[0] = self.folder
        sys.argv = ["", *self.arguments]
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


def serve(asked_at: socket.socket) -> ProgramRequest | None:
    """Fork a process for each request; return in that process with the request, and at the end with nothing."""
    while True:
        content, files, _, _ = socket.recv_fds(asked_at, MAX_REQUEST_BYTES, 3)
        if not content:
            return None
        _collect_ended()
        if not os.fork():
            asked_at.close()
            found: Any = json.loads(content)
            request, (told, out, err) = ProgramRequest(*found), files
            program = os.fork()
            if not program:
                request.become(told, out, err)
                return request
            _await_end(program, told, (out, err))
            os._exit(0)
        for file in files:
            os.close(file)


def _await_end(program: int, told: int, streams: tuple[int, int]) -> None:
    """Tell the exit code of a program when it has ended, and keep none of its streams open meanwhile."""
    for stream in streams:
        os.close(stream)
    for stream in (1, 2):
        os.dup2(0, stream)
    _, status = os.waitpid(program, 0)
    # Nobody may want to know any more.
    with suppress(BrokenPipeError):
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))


def _collect_ended() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _import_packages() -> None:
    for name in PACKAGES:
        package = importlib.import_module(f"hopwatch.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(MIGRATION):
                importlib.import_module(found.name)


def main(number: int) -> None:
    """Serve until the other end of the socket is closed; in a program's process, run the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_packages()
    gc.freeze()
    request = serve(socket.socket(fileno=number))
    if request is not None:
        request.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
