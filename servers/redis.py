"""Redis: a server of its own in a folder of its own, which keeps nothing on disk."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from servers.process import Process, free_ports, installed, until

PACKAGE: Final = "redis-server"
"""Debian's."""
_ANSWER_S: Final = 5.0


class Redis:
    """A server on a free port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        """Choose the port; the server does not run before :meth:`start`."""
        (self.port,) = free_ports(1)
        self.folder = folder

    def start(self) -> None:
        """Start it; returns when it answers."""
        command = [installed("redis-server", PACKAGE), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.process = Process([*command, "--dir", str(self.folder)], self.folder / "redis.log")
        until(self._is_ready, "Redis does not answer")

    def stop(self) -> None:
        """Stop it."""
        self.process.stop()

    def _is_ready(self) -> bool:
        self.process.check("Redis")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), _ANSWER_S) as asking:
            asking.sendall(b"PING\r\n")
            return asking.recv(7) == b"+PONG\r\n"
        return False
