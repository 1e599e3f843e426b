"""Serves an app with granian, in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from probes.http.connections import LOOK_EVERY_S, Connections
from probes.http.limits import App

MOST_CONNECTIONS: Final = 4_096
"""So many are open at once: more than are worked on, because slow clients have one each, and keep nobody out."""
HEADERS_S: Final = 10.0
"""How long a client has for its headers; its body has a deadline of its own."""
STOP_S: Final = 5.0
"""How long requests may take to be answered once it is to stop; then their connections are ended."""


class PortTakenError(OSError):
    """A port cannot be listened on."""


def check_port(host: str, port: int) -> None:
    """Look whether a port is free.

    Raises:
        PortTakenError: somebody listens there already, or nobody may.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probing:
            # As the server itself does, so that a port that was just left is free.
            probing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probing.bind(address)
    except OSError as error:
        raise PortTakenError(f"{host} port {port} cannot be listened on: {error.strerror}: choose another") from None


class TlsError(ValueError):
    """Files for TLS that cannot be."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: who the server is, and, if it is named, the authority that every client has to be known to."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Read them.

        Raises:
            TlsError: one cannot be read, or they do not go together.
        """
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except OSError as error:
            told = f"the files for TLS, {self.certificate}, {self.key} and {self.client_ca or 'no client_ca'}"
            raise TlsError(f"{told}, cannot be used: {error.strerror or error}") from None

    def settings(self) -> dict[str, Any]:
        """Return them as granian takes them."""
        told: dict[str, Any] = {"ssl_cert": self.certificate, "ssl_key": self.key}
        return told if self.client_ca is None else told | {"ssl_ca": self.client_ca, "ssl_client_verify": True}


@dataclass(frozen=True, slots=True)
class Listening:
    """Where an app is served, and how."""

    host: str
    port: int
    tls: Tls | None = None

    @property
    def url(self) -> str:
        """Return the URL of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/"


def serve(app: App, listening: Listening, stop: Event, ready: Callable[[], None]) -> None:
    """Serve until ``stop`` is set, or the server ends by itself, which sets it; ``ready`` is called at the start."""
    # What is there now stays as long as the app: each full collection would go through it, and nobody is served then.
    gc.collect()
    gc.freeze()
    asyncio.run(_serve(app, listening, stop, ready))


async def _serve(app: App, listening: Listening, stop: Event, ready: Callable[[], None]) -> None:
    server = Server(
        app,
        address=listening.host,
        port=listening.port,
        **({} if listening.tls is None else listening.tls.settings()),
        interface=Interfaces.ASGI,
        backlog=MOST_CONNECTIONS,
        backpressure=MOST_CONNECTIONS,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(HEADERS_S * 1_000)),
        websockets=False,
        log_enabled=False,
    )
    connections = Connections(listening.port)
    running = asyncio.create_task(server.serve())
    ready()
    stopping = asyncio.create_task(asyncio.to_thread(stop.wait))
    watching = asyncio.create_task(_watch(connections))
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        server.stop()  # type: ignore[no-untyped-call]  # granian's own
        await asyncio.wait({running}, timeout=STOP_S)
        if not running.done():
            connections.end_all()
    await running
    watching.cancel()
    stop.set()
    await stopping


async def _watch(connections: Connections) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        await asyncio.to_thread(connections.look)
