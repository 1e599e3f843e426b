"""A mail server for tests: enough of SMTP, real sockets, as good or as bad as a test wants it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, Final

BEAT_S: Final = 0.02
GOOD: Final = {
    "HELLO": "220 box",
    "EHLO": "250-box\r\n250 AUTH PLAIN",
    "AUTH": "235 in",
    "MAIL": "250 ok",
    "RCPT": "250 ok",
    "DATA": "354 go",
    ".": "250 taken",
    "QUIT": "221 bye",
    "RSET": "250 ok",
    "STARTTLS": "220 go",
}
SILENCE: Final = ""
TRICKLE: Final = "trickle"


@dataclass
class Postbox:
    """Mail server of a test; ``mail`` are the texts that it took, ``commands`` all lines that it was sent."""

    port: int
    mail: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def taking_mail(
    says: Mapping[str, str] | None = None, context: ssl.SSLContext | None = None, *, implicit: bool = False
) -> Iterator[Postbox]:
    """Yield a server that says what a good one does, but to some commands, or whole lines, what a test wants."""
    replies = {**GOOD, **({"EHLO": "250-box\r\n250 STARTTLS"} if context and not implicit else {}), **(says or {})}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        box = Postbox(listening.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    sock, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_serve, args=(box, sock, replies, context, implicit), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield box
        finally:
            box.over.set()
            listening.shutdown(socket.SHUT_RDWR)


def _serve(
    box: Postbox,
    sock: socket.socket,
    replies: Mapping[str, str],
    context: ssl.SSLContext | None,
    implicit: bool,  # noqa: FBT001 - given by the thread, by position
) -> None:
    with suppress(OSError, ssl.SSLError):
        if context and implicit:
            sock = context.wrap_socket(sock, server_side=True)
        _say(box, sock, replies["HELLO"])
        file = sock.makefile("rb")
        while line := file.readline().decode().strip():
            box.commands.append(line)
            command = line.split(" ")[0].upper()
            _say(box, sock, replies.get(line, replies.get(command, "502 no")))
            if command == "STARTTLS" and context:
                sock = context.wrap_socket(sock, server_side=True)
                file = sock.makefile("rb")
                replies = {**replies, "EHLO": GOOD["EHLO"]}
            if command == "DATA" and replies["DATA"].startswith("3"):
                box.mail.append(_mail(file))
                _say(box, sock, replies["."])
            if command == "QUIT":
                return


def _mail(file: IO[Any]) -> str:
    lines = []
    while (line := file.readline()) != b".\r\n":
        lines.append(line.removeprefix(b"."))
    return b"".join(lines).decode()


def _say(box: Postbox, sock: socket.socket, reply: str) -> None:
    if reply == SILENCE:
        box.over.wait()
    elif reply == TRICKLE:
        for _ in range(400):
            if box.over.wait(BEAT_S):
                return
            sock.sendall(b"250-x\r\n")
        sock.sendall(b"250 x\r\n")
    else:
        sock.sendall(reply.encode() + b"\r\n")
