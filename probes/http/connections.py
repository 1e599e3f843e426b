"""Bounds on connections themselves: how long an answer waits to be read, and how many one address has open.

The server accepts connections and writes answers on threads of its own, which ask nobody. So its sockets are looked
through once a second, where the system lists them, which is on Linux.
"""

from __future__ import annotations

import os
import socket
import stat
from collections import Counter
from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Final

WRITE_S: Final = 10.0
"""How long a client may leave an answer unread before its connection is ended."""
MOST_PER_ADDRESS: Final = 1_024
"""So many connections one address has open at once; of IPv6, all of a network of 64 bits, which one host may have."""
LOOK_EVERY_S: Final = 1.0

_DESCRIPTORS: Final = Path("/proc/self/fd")
_NETWORK_BITS: Final = 64
_NOT_OURS: Final = ""


class Connections:
    """The connections of this process to a port that it listens on."""

    def __init__(self, port: int, *, most_per_address: int = MOST_PER_ADDRESS, write_s: float = WRITE_S) -> None:
        """Take the bounds; nothing is looked at yet."""
        self._port, self._most, self._write_ms = port, most_per_address, int(write_s * 1_000)
        # By descriptor and number of the socket, because a descriptor is given again; the oldest first.
        self._known: dict[tuple[int, int], str] = {}

    def look(self) -> int:
        """Bound those that are new, end the newest of an address that has too many, and return how many were ended."""
        self._find()
        ended, open_of = 0, Counter[str]()
        for key, address in self._known.items():
            open_of[address] += 1
            if address != _NOT_OURS and open_of[address] > self._most:
                ended += _end(key)
        return ended

    def end_all(self) -> None:
        """End all that are open."""
        self._find()
        for key, address in self._known.items():
            if address != _NOT_OURS:
                _end(key)

    def _find(self) -> None:
        if not _DESCRIPTORS.is_dir():
            return
        found = [key for key in (_key(int(path.name)) for path in _DESCRIPTORS.iterdir()) if key is not None]
        there = set(found)
        known = {key: address for key, address in self._known.items() if key in there}
        self._known = known | {key: self._begun(key[0]) for key in found if key not in known}

    def _begun(self, descriptor: int) -> str:
        """Bound a connection, and return whose it is; nobody's where it is none of the port."""
        try:
            with socket.socket(fileno=os.dup(descriptor)) as held:
                is_ours = held.family in (socket.AF_INET, socket.AF_INET6) and held.getsockname()[1] == self._port
                if not is_ours:
                    return _NOT_OURS
                address = held.getpeername()[0]
                held.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._write_ms)
                return network(address)
        except OSError:
            # It listens, or is gone already.
            return _NOT_OURS


def network(address: str) -> str:
    """Return what counts as one client: an address of IPv4, or a network of IPv6."""
    found = ip_address(address.partition("%")[0])
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((found, _NETWORK_BITS), strict=False))


def _key(descriptor: int) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.fstat(descriptor)
        if stat.S_ISSOCK(status.st_mode):
            return descriptor, status.st_ino
    return None


def _end(key: tuple[int, int]) -> bool:
    """End a connection, if its descriptor is still its own; the server is told by it and closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(key[0])) as held:
        if os.fstat(held.fileno()).st_ino == key[1]:
            held.shutdown(socket.SHUT_RDWR)
            return True
    return False
