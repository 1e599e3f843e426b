"""Limits on a server's connections: a maximum per client address, and a deadline for unread responses.

The server itself limits only the total. A client that does not read its responses, or opens all connections, would keep
all others out: requests have deadlines of their own, responses and idle connections have not.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hopwatch.probes.contract.addresses import identify_owner

MAX_PER_ADDRESS: Final = 1_024
"""Connections of one address at once; of IPv6, those of a /64 network."""
UNREAD_S: Final = 10.0
"""Time for which a client may leave a response unread while its buffers are full."""
CHECK_EVERY_S: Final = 1.0
"""Interval of the checks."""
_DESCRIPTORS: Final = Path("/dev/fd")
_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)
"""Socket option for the kernel's deadline of unacknowledged data (tcp(7), RFC 5482), where it exists."""


class ConnectionLimiter:
    """Limiter of this process's connections at some of its ports."""

    def __init__(self, ports: Collection[int], most: int = MAX_PER_ADDRESS, unread_s: float = UNREAD_S) -> None:
        """Set the ports and the limits."""
        self._ports, self._max_per_address, self._unread_ms = frozenset(ports), most, int(unread_s * 1_000)
        self._open_since: dict[int, None] = {}
        self._stop = threading.Event()

    def enforce_limits(self) -> None:
        """Set each connection's deadline, and end the latest ones of an address that has too many."""
        open_ = {one: (owner, descriptor) for one, owner, descriptor in self._iter_open()}
        # In the order in which they came.
        self._open_since = {one: None for one in (*self._open_since, *open_) if one in open_}
        counts: Counter[tuple[int, str]] = Counter()
        for one in self._open_since:
            owner, descriptor = open_[one]
            counts[owner] += 1
            if counts[owner] > self._max_per_address:
                _shut_down(one, descriptor)

    def end_all(self) -> None:
        """End all open connections."""
        for one, _, descriptor in self._iter_open():
            _shut_down(one, descriptor)

    def _iter_open(self) -> Iterator[tuple[int, tuple[int, str], int]]:
        """Set the deadline of each open connection, and yield its inode number, port and owner, and its descriptor."""
        try:
            descriptors = [int(one.name) for one in _DESCRIPTORS.iterdir()]
        except OSError:  # there is no descriptor left to look with: the next time, perhaps
            return
        for descriptor in descriptors:
            with suppress(OSError), _open_socket(descriptor) as connection:
                port = connection.getsockname()[1]
                if connection.type == socket.SOCK_STREAM and port in self._ports:
                    address = identify_owner(str(connection.getpeername()[0]))
                    if _TIMEOUT is not None:
                        connection.setsockopt(socket.IPPROTO_TCP, _TIMEOUT, self._unread_ms)
                    yield os.fstat(connection.fileno()).st_ino, (port, address), descriptor

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Enforce the limits periodically while the block runs."""
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
    """Yield a socket object for a duplicate of a descriptor; use one at a time, as descriptors may be scarce.

    That of a file is never duplicated: closing any of its descriptors releases all POSIX locks that the process has on
    the file, such as those by which SQLite knows that a store is in use.

    Raises:
        OSError: the descriptor is closed, or is no IPv4 or IPv6 socket.
    """
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    # Were it a file since a moment ago, the copy would stay open, for the same reason.
    connection = socket.socket(fileno=os.dup(descriptor))
    with connection:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        yield connection


def _shut_down(number: int, descriptor: int) -> None:
    """End a connection, if its descriptor still belongs to it."""
    with suppress(OSError), _open_socket(descriptor) as connection:
        if os.fstat(connection.fileno()).st_ino == number:
            connection.shutdown(socket.SHUT_RDWR)
