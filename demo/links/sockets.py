"""A link through sockets: one loopback TCP connection, frames one way, acknowledgements the other.

A frame is a uint32 LE length and the payload. The receiver acknowledges frames as soon as it holds them in memory
(uint32 LE: how many more), *before* it works on them, and the sender never sends a frame twice. So a frame arrives at
most once, and a killed receiver loses exactly: the frames that were sent and not yet read, and those that it had read
and not yet handed on. A killed sender loses what it had not handed to the kernel yet, or what the kernel discards.

The sender waits while ``MAX_UNACKNOWLEDGED`` frames are on their way: so a slow or absent node slows those before it.
"""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from typing import Final

from hopwatch.demo.link import LinkError

MAX_UNACKNOWLEDGED: Final = 256
MAX_FRAME_BYTES: Final = 1024 * 1024
READ_BYTES: Final = 64 * 1024

_LENGTH: Final = struct.Struct("<I")


class SocketOutlet:
    """The sending end: connects by itself, and again after the other end was killed."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Take the ``(host, port)`` to send to; nothing is connected before the first frame."""
        self._address = address
        self._socket: socket.socket | None = None
        self._half_acknowledgement = b""
        self._unacknowledged = 0
        self.abandoned = 0
        """Frames that were on their way when the other end went down; they are not sent again."""

    def send(self, payload: bytes, then: Callable[[], None]) -> None:
        """Hand one frame to the kernel, and with that it has left; waits when too many acknowledgements are owed.

        Raises:
            OSError: nothing listens at the address.
        """
        frame = _LENGTH.pack(len(payload)) + payload
        while True:
            self._collect(wait=False)
            while self._unacknowledged >= MAX_UNACKNOWLEDGED:
                self._collect(wait=True)
            connection = self._connect()
            try:
                connection.sendall(frame)
            except OSError:
                # The kernel has not taken the whole frame, so that the other end cannot have it: it may go again.
                self._hang_up()
            else:
                self._unacknowledged += 1
                then()
                return

    def settle(self) -> None:
        """Do nothing: what was sent has left."""

    def close(self) -> None:
        """Wait until every frame is acknowledged, or its receiver gone, and hang up."""
        while self._unacknowledged:
            self._collect(wait=True)
        self._hang_up()

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._address)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _collect(self, *, wait: bool) -> None:
        """Read the acknowledgements that are there; with ``wait`` at least some bytes of them."""
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_BYTES, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return
        data = self._half_acknowledgement + data
        whole = len(data) - len(data) % _LENGTH.size
        self._unacknowledged -= sum(count for (count,) in _LENGTH.iter_unpack(data[:whole]))
        self._half_acknowledgement = data[whole:]

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.abandoned += self._unacknowledged
        self._unacknowledged = 0
        self._half_acknowledgement = b""


class SocketInlet:
    """The receiving end: serves one sender after the other from a listening socket that somebody else keeps."""

    def __init__(self, listener: socket.socket) -> None:
        """Take a socket that listens already, so that senders find the address while this node is being restarted."""
        self._listener = listener
        self._connection: socket.socket | None = None
        self._buffer = b""

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return the payloads that came, acknowledged; none when ``timeout_s`` passed or a sender came or went."""
        source = self._connection or self._listener
        if not select.select([source], [], [], max(0.0, timeout_s))[0]:
            return []
        if self._connection is None:
            self._connection, _ = self._listener.accept()
            return []
        return self._read(self._connection)

    def done(self, count: int) -> None:
        """Do nothing: no message comes again."""

    def has_ended(self) -> bool:
        """Return whether no sender is on the line."""
        return self._connection is None

    def close(self) -> None:
        """Hang up on the sender; what is half read is gone."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._buffer = b""

    def _read(self, connection: socket.socket) -> list[bytes]:
        try:
            data = connection.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        try:
            payloads, self._buffer = split_frames(self._buffer + data)
        except LinkError:
            # No node of the demo, but a client of a server that had this port before: the next one is served.
            self.close()
            return []
        if payloads:
            try:
                connection.sendall(_LENGTH.pack(len(payloads)))
            except OSError:
                self.close()
        return payloads


def split_frames(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the payloads of the whole frames in ``data``, and the bytes of the unfinished one behind them.

    Raises:
        LinkError: a frame claims to be longer than ``MAX_FRAME_BYTES``.
    """
    payloads: list[bytes] = []
    position = 0
    while len(data) - position >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, position)
        if length > MAX_FRAME_BYTES:
            raise LinkError(
                f"a frame has at most {MAX_FRAME_BYTES} bytes, got a length of {length}: these are no link frames"
            )
        end = position + _LENGTH.size + length
        if end > len(data):
            break
        payloads.append(data[position + _LENGTH.size : end])
        position = end
    return payloads, data[position:]
