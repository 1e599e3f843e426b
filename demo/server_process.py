"""Processes of servers that other programs need: free ports, a process that ends with its starter, waiting for one."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from hopwatch.monitor.errors import DependencyError

PATIENCE_S: Final = 240.0
LOOK_S: Final = 0.05
"""Pause between two looks at first."""
LATER_LOOK_SHARE: Final = 0.1
"""Pause between two looks later, as a share of the time waited so far: a look may cost a process or a report."""
MAX_LOOK_S: Final = 2.0


class ServerError(DependencyError):
    """A server did not start, or is not installed."""


_reserved: Final[list[socket.socket]] = []
"""A UDP socket for each port that was given: no program that asks here is given it again while this process runs."""


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on, each reserved for this process."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            free = held.enter_context(socket.socket())
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
            reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                reservation.bind(("127.0.0.1", port))
            except OSError:
                reservation.close()
                continue
            _reserved.append(reservation)
            ports.append(port)
    return ports


def until(is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until something is so.

    Raises:
        ServerError: it is not after ``patience_s``.
    """
    begun_s = time.monotonic()
    while not is_so():
        waited_s = time.monotonic() - begun_s
        if waited_s > patience_s:
            raise ServerError(f"{what}: not after {patience_s} s")
        time.sleep(min(max(LOOK_S, waited_s * LATER_LOOK_SHARE), MAX_LOOK_S))


def answers(port: int) -> bool:
    """Return whether somebody listens on a port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Process:
    """A server's process, in a group of its own; it ends with us, however we end."""

    def __init__(
        self, command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        """Start it, in a folder."""
        self.log = log
        with log.open("ab") as out:
            self._popen = subprocess.Popen(  # noqa: S603 - the commands that start servers are our own
                list(command), stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environ, cwd=folder,
                start_new_session=True,
            )  # fmt: skip
        atexit.register(self.kill)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._popen.poll()

    def check(self, what: str) -> None:
        """Check that it still runs.

        Raises:
            ServerError: it has ended; the message is the end of its log.
        """
        if not self.is_alive:
            end = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-20:])
            raise ServerError(f"{what} ended with {self._popen.returncode}:\n{end}")

    def signal(self, number: int) -> None:
        """Send a signal to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._popen.wait()
        atexit.unregister(self.kill)

    def wait(self, patience_s: float) -> int:
        """Wait until it has ended by itself; return its exit code."""
        return self._popen.wait(patience_s)

    def stop(self, patience_s: float = 20.0) -> None:
        """Ask it to end; kill it when it does not."""
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(patience_s)
        self.kill()
