"""Socket under a deadline for http.client: all of a request and its answer ends in time, however slowly bytes come."""

from __future__ import annotations

import io
import select
import socket
import ssl
import time
from contextlib import suppress


class DeadlineSocket:
    """Socket whose reads and writes end at one deadline, however slowly they go on."""

    def __init__(self, inner: socket.socket) -> None:
        """Take a socket that is connected; set ``deadline_s``, as the monotonic clock has it, before it is used."""
        self._inner = inner
        self.deadline_s = 0.0
        self._readers, self._is_closing = 0, False

    def sendall(self, data: bytes) -> None:
        """Send all of the data."""
        self._inner.settimeout(self._left_s())
        self._inner.sendall(data)

    def recv_into(self, buffer: memoryview) -> int:
        """Read what has come; return how many bytes."""
        self._inner.settimeout(self._left_s())
        return self._inner.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader, as http.client asks for one."""
        del mode
        self._readers += 1
        return io.BufferedReader(_SocketReader(self))

    def is_readable(self) -> bool:
        """Return whether something has come, be it the end."""
        if isinstance(self._inner, ssl.SSLSocket) and self._inner.pending():
            return True
        asked = select.poll()
        asked.register(self._inner, select.POLLIN)
        return bool(asked.poll(0))

    def shut_down(self) -> None:
        """End what is under way, from any thread."""
        with suppress(OSError):
            self._inner.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket, once its readers are closed."""
        # http.client closes it before it has read an answer that ends with the connection.
        self._is_closing = True
        if not self._readers:
            self._inner.close()

    def release_reader(self) -> None:
        """Note that a reader was closed."""
        self._readers -= 1
        if self._is_closing:
            self.close()

    def _left_s(self) -> float:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class _SocketReader(io.RawIOBase):
    """Reader of a socket with a deadline."""

    def __init__(self, source: DeadlineSocket) -> None:
        self._source = source

    def close(self) -> None:
        if not self.closed:
            self._source.release_reader()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._source.recv_into(buffer)
