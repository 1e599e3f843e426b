"""Ports of this machine for processes that listen only some seconds after they were given one."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

HOST: Final = "127.0.0.1"
FREE_TRIES: Final = 20
"""Free ports that are tried, one after the other."""


def hold_port(wished: int) -> tuple[int, socket.socket]:
    """Return the port that is wished for, or any free one, and what holds it against other demos.

    Raises:
        OSError: not even a free one is to be had.
    """
    # A port that is free for TCP may be another demo's by UDP: then the next one is looked at.
    for port in (wished, *[0] * FREE_TRIES):
        with contextlib.suppress(OSError):
            held = _hold(port)
            return held.getsockname()[1], held
    held = _hold(0)
    return held.getsockname()[1], held


def _hold(port: int) -> socket.socket:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind((HOST, port))
        # Who is to listen there does so only seconds later; by this demos that start together agree on who has which.
        held = socket.socket(type=socket.SOCK_DGRAM)
        try:
            held.bind((HOST, tried.getsockname()[1]))
        except OSError:
            held.close()
            raise
        return held
