"""Address checks of receivers: a name is resolved once, and only a checked address is connected to.

Which addresses are refused, and why, is a matter of :mod:`probes.http.address_rules`.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

from hopwatch.probes.http.address_rules import refusal_reason

SocketAddress = tuple[Any, ...]


class AddressError(OSError):
    """The address is refused or cannot be resolved; the text holds no secret."""


def connect(host: str, port: int, left_s: Callable[[], float]) -> socket.socket:
    """Connect to a host; ``left_s`` returns how many seconds are left for all of it.

    Raises:
        AddressError: it has no address, or none that may be sent to.
        OSError: none of its addresses answers.
        TimeoutError: the time is over.
    """
    resolved = resolve_host(host, port, left_s())
    allowed = [(family, where) for family, where, why in resolved if not why]
    if not allowed:
        address, why = next((str(where[0]), why) for _, where, why in resolved)
        raise AddressError(f"{host} is {address}, {why}: nothing is sent there")
    failure: OSError | None = None
    for place, (family, where) in enumerate(allowed):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            # An address that does not answer must leave time for the others.
            sock.settimeout(remaining_s(left_s) / (len(allowed) - place))
            sock.connect(where)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure or AddressError(f"{host} has no address")


def remaining_s(left_s: Callable[[], float]) -> float:
    """Return the seconds that are left.

    Raises:
        TimeoutError: none.
    """
    seconds = left_s()
    if seconds <= 0:
        raise TimeoutError("the time is over")
    return seconds


def resolve_host(host: str, port: int, patience_s: float) -> list[tuple[int, SocketAddress, str]]:
    """Resolve a host; return family, address and reason for refusal of each of its addresses.

    The resolver of the machine has no deadline: it runs in a thread, which is abandoned if it is slow.

    Raises:
        AddressError: it has none, or the time is over.
    """
    answer: queue.SimpleQueue[list[tuple[int, SocketAddress]] | OSError] = queue.SimpleQueue()

    def query() -> None:
        try:
            answer.put(list(_query_resolver(host, port)))
        except (OSError, UnicodeError) as error:
            answer.put(error if isinstance(error, OSError) else OSError(str(error)))

    threading.Thread(target=query, name="hopwatch-resolve", daemon=True).start()
    try:
        resolved = answer.get(timeout=max(patience_s, 0.0))
    except queue.Empty:
        raise AddressError(f"the name {host} is not resolved in time") from None
    if isinstance(resolved, OSError):
        raise AddressError(f"the name {host} cannot be resolved: {resolved.strerror or resolved}")
    return [(family, where, refusal_reason(ip_address(str(where[0]).partition("%")[0]))) for family, where in resolved]


def _query_resolver(host: str, port: int) -> Iterator[tuple[int, SocketAddress]]:
    for family, _, _, _, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield family, where
