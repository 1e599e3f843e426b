"""Serves an app with granian, in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from threading import Event
from typing import Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from probes.http.limits import App

HEADERS_S: Final = 10.0
"""How long a client has for its headers; its body has a deadline of its own."""


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


def serve(app: App, host: str, port: int, stop: Event, ready: Callable[[], None]) -> None:
    """Serve until ``stop`` is set, or the server ends by itself, which sets it; ``ready`` is called at the start."""
    asyncio.run(_serve(app, host, port, stop, ready))


async def _serve(app: App, host: str, port: int, stop: Event, ready: Callable[[], None]) -> None:
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(HEADERS_S * 1_000)),
        websockets=False,
        log_enabled=False,
    )
    running = asyncio.create_task(server.serve())
    ready()
    stopping = asyncio.create_task(asyncio.to_thread(stop.wait))
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        server.stop()  # type: ignore[no-untyped-call]  # granian's own
    await running
    stop.set()
    await stopping
