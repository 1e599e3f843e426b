"""The connections of a server, looked after from outside: so many of one address, and a deadline for reading answers.

The server itself bounds how many there are of all. A client that sends and does not read, or opens all of them, would
keep everybody out: requests have deadlines of their own, answers and what is open between them have not.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hopwatch.probes.contract.addresses import identify_owner

MAX_PER_ADDRESS: Final = 1_024
"""So many connections one address has at once; of IPv6, a network of 64 bits."""
UNREAD_S: Final = 10.0
"""So long a client may leave unread what was sent to it, when its buffers are full."""
CHECK_EVERY_S: Final = 1.0
"""How often they are looked after."""
_DESCRIPTORS: Final = Path("/dev/fd")
_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)
"""The kernel's own deadline for what is sent (tcp(7), RFC 5482), where it has one."""


class ConnectionLimiter:
    """Those of this process at some of its ports."""

    def __init__(self, ports: Collection[int], most: int = MAX_PER_ADDRESS, unread_s: float = UNREAD_S) -> None:
        """Name the ports, and the bounds."""
        self._ports, self._max_per_address, self._unread_ms = frozenset(ports), most, int(unread_s * 1_000)
        self._open_since: dict[int, None] = {}
        self._stop = threading.Event()

    def enforce_limits(self) -> None:
        """Give each connection its deadline, and end the latest ones of an address that has too many."""
        open_ = {one: (address, descriptor) for one, address, descriptor in self._iter_open()}
        # In the order in which they came.
        self._open_since = {one: None for one in (*self._open_since, *open_) if one in open_}
        counts: Counter[str] = Counter()
        for one in self._open_since:
            address, descriptor = open_[one]
            counts[address] += 1
            if counts[address] > self._max_per_address:
                _shut_down(one, descriptor)

    def end_all(self) -> None:
        """End all that are open."""
        for one, _, descriptor in self._iter_open():
            _shut_down(one, descriptor)

    def _iter_open(self) -> Iterator[tuple[int, str, int]]:
        """Yield those that are open, with the deadline set: a number that is its own, whose it is, its descriptor."""
        try:
            descriptors = [int(one.name) for one in _DESCRIPTORS.iterdir()]
        except OSError:  # there is no descriptor left to look with: the next time, perhaps
            return
        for descriptor in descriptors:
            with suppress(OSError), _open_socket(descriptor) as connection:
                if connection.type == socket.SOCK_STREAM and connection.getsockname()[1] in self._ports:
                    address = identify_owner(str(connection.getpeername()[0]))
                    if _TIMEOUT is not None:
                        connection.setsockopt(socket.IPPROTO_TCP, _TIMEOUT, self._unread_ms)
                    yield os.fstat(connection.fileno()).st_ino, address, descriptor

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Look after them, again and again, for as long as the block lasts."""
        looking = threading.Thread(target=self._run, name="hopwatch-connections", daemon=True)
        looking.start()
        try:
            yield
        finally:
            self._stop.set()
            looking.join()

    def _run(self) -> None:
        while not self._stop.wait(CHECK_EVERY_S):
            self.enforce_limits()


@contextmanager
def _open_socket(descriptor: int) -> Iterator[socket.socket]:
    """Yield a socket by a descriptor of another one's; one at a time, as there may be few left.

    Raises:
        OSError: it is gone, or none of a socket of these families.
    """
    held = os.dup(descriptor)
    try:
        connection = socket.socket(fileno=held)
    except OSError:
        os.close(held)
        raise
    with connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        yield connection


def _shut_down(number: int, descriptor: int) -> None:
    """End a connection, if its descriptor is still its own."""
    with suppress(OSError), _open_socket(descriptor) as connection:
        if os.fstat(connection.fileno()).st_ino == number:
            connection.shutdown(socket.SHUT_RDWR)
