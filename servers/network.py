"""A network between client and server that a test can make bad: slow, narrow, with connections that are reset."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Final

CHUNK_BYTES: Final = 65_536
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing sends RST."""


class Network:
    """Forwards connections to a port of this machine; each chunk waits for what the network is like at its moment."""

    def __init__(self, port: int, to_port: int) -> None:
        """Take the port to listen at and the one to forward to."""
        self.latency_s, self.bytes_per_s = 0.0, float("inf")
        self._to_port, self._open = to_port, set[socket.socket]()
        self._turn, self._listening = threading.Lock(), socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> int:
        """Reset all connections; return how many ends of them there were."""
        with self._turn:
            ends, self._open = self._open, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RD)
                end.close()
        return len(ends)

    def close(self) -> None:
        """Take no more connections, and reset those that are open."""
        self._listening.close()
        self.reset()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to_port))
                with self._turn:
                    self._open |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                for part in self._parts(data):
                    target.sendall(part)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Yield what the network lets through at once, at its time."""
        time.sleep(self.latency_s)
        while data:
            if self.bytes_per_s >= CHUNK_BYTES:
                yield data
                return
            time.sleep(1 / self.bytes_per_s)
            yield data[:1]
            data = data[1:]
