"""NATS with JetStream: a server of its own in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from servers.process import Process, answers, free_ports, installed, until

PACKAGE: Final = "nats-server"
"""Debian's."""


class Nats:
    """A server on a free port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        """Choose the port; the server does not run before :meth:`start`."""
        (self.port,) = free_ports(1)
        self.folder = folder

    def start(self) -> None:
        """Start it; returns when it answers."""
        command = [installed("nats-server", PACKAGE), "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream"]
        self.process = Process([*command, "--store_dir", str(self.folder)], self.folder / "nats.log")
        until(self._is_ready, "NATS does not answer")

    def stop(self) -> None:
        """Stop it."""
        self.process.stop()

    def _is_ready(self) -> bool:
        self.process.check("NATS")
        return answers(self.port)
