"""Serves the app with granian, in this process, until the tap is to stop."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from probes.taps.errors import TapSourceError
from probes.taps.http.app import app
from probes.taps.http.intake import Intake
from probes.taps.surroundings import Surroundings

HEADERS_S: Final = 10.0
"""How long a client has for its headers; its body has a deadline of its own."""


def check_port(host: str, port: int) -> None:
    """Look whether a port is free.

    Raises:
        TapSourceError: somebody listens there already, or nobody may.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probing:
            # As the server itself does, so that a port that was just left is free.
            probing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probing.bind(address)
    except OSError as error:
        raise TapSourceError(f"{host} port {port} cannot be listened on: {error.strerror}: choose another") from None


def serve(intake: Intake, host: str, port: int, around: Surroundings) -> None:
    """Serve until the tap is to stop."""
    asyncio.run(_serve(intake, host, port, around))


async def _serve(intake: Intake, host: str, port: int, around: Surroundings) -> None:
    server = Server(
        app(intake),
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(HEADERS_S * 1_000)),
        websockets=False,
        log_enabled=False,
    )
    running = asyncio.create_task(server.serve())
    around.tell(f"listening on http://{host}:{port}, which asks nobody who they are")
    stopping = asyncio.create_task(asyncio.to_thread(around.stop.wait))
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        server.stop()  # type: ignore[no-untyped-call]  # granian's own
    await running
    around.stop.set()
    await stopping
