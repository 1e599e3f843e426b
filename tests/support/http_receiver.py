"""A receiver by HTTP, as good or as bad as a test wants it: real sockets, one thread a connection."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

BEAT_S: Final = 0.02
MOST_BEATS: Final = 400
"""After so many a receiver that trickles has said all: whoever has no deadline takes it for an answer."""


class Request(NamedTuple):
    """Posted request; names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


Behaviour = Callable[[socket.socket, threading.Event], None]


@dataclass
class Receiver:
    """HTTP server of a test; ``requests`` are those that came whole, ``connections`` counts all."""

    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/") -> str:
        """Return a URL of it."""
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"


def answers(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Answer so."""

    def behave(sock: socket.socket, _: threading.Event) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return behave


def hangs(sock: socket.socket, over: threading.Event) -> None:
    """Say nothing until the test is over."""
    del sock
    over.wait()


def floods(sock: socket.socket, over: threading.Event) -> None:
    """Answer well, and never end."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not over.is_set():
        sock.sendall(bytes(2**20))


def closes(sock: socket.socket, _: threading.Event) -> None:
    """Close the connection without a word."""
    sock.close()


def trickles(sock: socket.socket, over: threading.Event) -> None:
    """Say a good answer, a byte at a time: each wait is short, all of them together are long."""
    for one in b"HTTP/1.1 200 OK\r\nX: " + b"x" * MOST_BEATS + b"\r\nContent-Length: 0\r\n\r\n":
        if over.wait(BEAT_S):
            return
        sock.sendall(bytes([one]))


@contextmanager
def receiving(*behaviours: Behaviour, context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Yield a receiver that behaves so at one connection after the other, in the last way at all that follow."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(listening.getsockname()[1], "https" if context else "http")

        def serve() -> None:
            while True:
                try:
                    sock, _ = listening.accept()
                except OSError:
                    return
                behave = behaviours[min(receiver.connections, len(behaviours) - 1)]
                receiver.connections += 1
                threading.Thread(target=_serve, args=(receiver, sock, behave, context, over), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield receiver
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)


def _serve(
    receiver: Receiver, sock: socket.socket, behave: Behaviour, context: ssl.SSLContext | None, over: threading.Event
) -> None:
    with suppress(OSError, ssl.SSLError, ValueError):
        sock.settimeout(20)
        whole = context.wrap_socket(sock, server_side=True) if context else sock
        with whole:
            receiver.requests.append(_read(whole))
            behave(whole, over)


def _read(sock: socket.socket) -> Request:
    with sock.makefile("rb") as file:
        _, path, _ = file.readline().decode().split(" ")
        headers: dict[str, str] = {}
        while line := file.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Request(path, headers, file.read(int(headers.get("content-length", "0"))))


def certificate(folder: Path, name: str = "127.0.0.1") -> Path:
    """Make a certificate that signs itself, and its key, in one PEM file."""
    file, key = folder / "certificate.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", str(key), "-out", str(file), "-days", "2", "-subj", "/CN=receiver"]
    made += ["-addext", f"subjectAltName=IP:{name}"]
    subprocess.run(made, check=True, capture_output=True)
    file.write_text(key.read_text() + file.read_text())
    return file


def server_tls(file: Path) -> ssl.SSLContext:
    """Return what a server encrypts with, by a file of :func:`certificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
