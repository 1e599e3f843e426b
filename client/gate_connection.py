"""Connection to the gate: one that is kept, each request with one deadline for all of it. ADR 0173 says why so.

What comes on it before a request is sent is no answer to it: a proxy says 408 before it closes an idle connection.
"""

from __future__ import annotations

import re
import ssl
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, Protocol
from urllib.parse import urlsplit

from hopwatch import __version__
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.probes.deadline_socket import DeadlineSocket

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Bytes of an answer that are read: 1,000 events, each with all the errors that the gate reports, have less."""
MAX_IDLE_S: Final = 4.0
"""Time for which an idle connection is kept: shorter than the 5 s after which usual servers close theirs."""
_STREAM: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TOKEN: Final = re.compile(r"[!-~]{0,4096}")
_PATH: Final = re.compile(r"[!-~]*")


class Transport(Protocol):
    """Way to the gate."""

    def post(self, body: bytes) -> Answer | NoAnswer:
        """Post the body of a batch once; never raise."""

    def abort(self) -> None:
        """Break the request that is under way, from another thread."""

    def close(self) -> None:
        """Close the connection."""


class GateConnection:
    """Connection to the entrance of one stream."""

    def __init__(
        self, url: str, stream: str, token: str, timeout_s: float, context: ssl.SSLContext | None = None
    ) -> None:
        """Take the gate's URL; nothing is connected yet.

        Raises:
            ValueError: the URL, the stream or the token is none.
        """
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and parts.hostname and _PATH.fullmatch(parts.path)
        if not is_url or parts.username is not None or parts.query or parts.fragment:
            shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            raise ValueError(f"the URL of a gate is http://HOST:PORT or https://HOST:PORT, got {shown[:200]!r}")
        if not _STREAM.fullmatch(stream):
            raise ValueError(f"a stream is 1 to 128 of A-Z a-z 0-9 . _ -, got {stream[:200]!r}")
        if not _TOKEN.fullmatch(token):
            raise ValueError("a token is 0 to 4,096 visible ASCII characters, got something else")
        self._timeout_s = timeout_s
        self._path = f"{parts.path.rstrip('/')}/streams/{stream}/events?each=true"
        self._headers = {"Content-Type": "application/json", "User-Agent": f"hopwatch/{__version__}"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        # Without a port http.client would take the last part of an IPv6 address for one.
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._connection: HTTPConnection = (
            HTTPSConnection(host, port, timeout=timeout_s, context=context or ssl.create_default_context())
            if parts.scheme == "https"
            else HTTPConnection(host, port, timeout=timeout_s)
        )
        self._socket: DeadlineSocket | None = None
        self._idle_since_s = 0.0

    def post(self, body: bytes) -> Answer | NoAnswer:
        """Post a batch once; what is not an answer is a reason."""
        deadline_s = time.monotonic() + self._timeout_s
        try:
            self._connect(deadline_s)
            return self._exchange(body)
        except TimeoutError:
            self.close()
            return NoAnswer(AttemptResult.TIMEOUT, f"no answer within {self._timeout_s:g} s")
        except (OSError, HTTPException, ValueError) as error:
            is_connected = self._socket is not None
            self.close()
            if is_connected:
                return NoAnswer(AttemptResult.BROKEN, _build_reason("the connection broke", error))
            return NoAnswer(AttemptResult.UNREACHABLE, _build_reason("no connection", error))

    def abort(self) -> None:
        """Break the request that is under way: its thread goes on at once."""
        if (current := self._socket) is not None:
            current.shut_down()

    def close(self) -> None:
        """Close the connection; the next request makes another one."""
        self._connection.close()
        self._socket = None

    def _connect(self, deadline_s: float) -> None:
        now_s = time.monotonic()
        is_old = now_s - self._idle_since_s > MAX_IDLE_S
        if self._socket is not None and (is_old or self._socket.is_readable()):
            self.close()
        if self._socket is None:
            self._connection.timeout = deadline_s - now_s
            self._connection.connect()
            self._socket = DeadlineSocket(self._connection.sock)
            # http.client sends by the first and reads by the second of its methods, and asks for no other.
            self._connection.sock = self._socket
        self._socket.deadline_s = deadline_s

    def _exchange(self, body: bytes) -> Answer | NoAnswer:
        self._connection.request("POST", self._path, body, self._headers)
        with self._connection.getresponse() as response:
            answer = response.read(MAX_ANSWER_BYTES + 1)
            self._idle_since_s = time.monotonic()
            if len(answer) > MAX_ANSWER_BYTES:
                self.close()
                return NoAnswer(AttemptResult.BROKEN, f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
            if response.will_close:
                self.close()
            return Answer(response.status, answer, response.headers.get("Retry-After", ""))


def _build_reason(told: str, error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "".join(one if one.isprintable() else " " for one in f"{told}: {said}")[:200]
