"""A server that is not what its clients take it for: it answers nonsense, hangs up at once, or never answers."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LIES: Final[dict[str, bytes | None]] = {
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "random bytes": random.Random(11).randbytes(4_096),
    "a length of 2 GB": struct.pack(">i", 2**31 - 1) + bytes(64),
    "closes at once": b"",
    "never answers": None,
}
"""What is answered to whatever a client says; nothing at all, or not even the end of the connection, may be it."""


class Liar:
    """Listens on a port of 127.0.0.1, and answers each connection's first bytes with the same lie."""

    def __init__(self, lie: str, port: int = 0) -> None:
        """Listen."""
        self._answer, self._held = LIES[lie], list[socket.socket]()
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listening.getsockname()[1])
        self.calls = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Take no more connections, and end those that are open."""
        self._listening.close()
        for one in self._held:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                self.calls += 1
                self._held.append(one)
                if self._answer is not None:
                    threading.Thread(target=self._lie, args=(one, self._answer), daemon=True).start()

    @staticmethod
    def _lie(one: socket.socket, answer: bytes) -> None:
        with contextlib.suppress(OSError), one:
            if answer:
                one.recv(65_536)
                one.sendall(answer)


@contextmanager
def lying(lie: str) -> Iterator[Liar]:
    """Yield a server that lies, as long as the block lasts."""
    liar = Liar(lie)
    try:
        yield liar
    finally:
        liar.close()
