"""RabbitMQ: a server of its own in a folder of its own, with a port mapper of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from servers.process import Process, ServerError, answers, free_ports, installed, until

PACKAGE: Final = "rabbitmq-server"
"""Debian's."""
_PROGRAM: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The one that runs as whoever calls it; that of the path becomes the user of a service."""


class RabbitMq:
    """A server on a free port of 127.0.0.1, for the user "guest" with the password "guest"."""

    def __init__(self, folder: Path) -> None:
        """Choose the ports; the server does not run before :meth:`start`."""
        self.port, self._cluster_port, self._mapper_port = free_ports(3)
        self.folder = folder

    def start(self) -> None:
        """Start it; returns when it answers."""
        if not _PROGRAM.exists():
            raise ServerError(f"{PACKAGE} is not installed: apt-get install {PACKAGE}")
        settings = {
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "none"),
            "RABBITMQ_DIST_PORT": str(self._cluster_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_LOG_BASE": str(self.folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODENAME": f"n{self.port}@localhost",
        }
        # The server starts one where none answers, which would outlive it.
        mapper = [installed("epmd", PACKAGE), "-address", "127.0.0.1", "-port", str(self._mapper_port)]
        self._mapper = Process(mapper, self.folder / "epmd.log")
        until(lambda: answers(self._mapper_port), "the port mapper does not answer")
        self.process = Process([str(_PROGRAM)], self.folder / "rabbitmq.log", {**os.environ, **settings})
        until(self._is_ready, "RabbitMQ does not answer")

    def stop(self) -> None:
        """Stop it and its port mapper."""
        self.process.stop()
        self._mapper.stop()

    def _is_ready(self) -> bool:
        self.process.check("RabbitMQ")
        return answers(self.port)
