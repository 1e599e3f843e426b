"""HTTP POST for channels: one request, one response, one deadline for all of it.

No redirect is followed, no proxy or other setting is taken from the environment, certificates are verified, and nothing
is sent to an address that :mod:`alerts.channels.addresses` refuses. Each post has its own connection: posts are few,
and an idle connection is often dead after a minute without a sign of it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote, unquote_plus, urlsplit

import certifi
import httpcore

from hopwatch import __version__
from hopwatch.alerts.channels import addresses
from hopwatch.alerts.channels.channel import Failure, Outcome
from hopwatch.alerts.channels.http_responses import parse_response
from hopwatch.alerts.channels.texts import shorten, to_one_line
from hopwatch.monitor.clock import Clock, SystemClock

MAX_READ_BYTES: Final = 4_096
"""Bytes of an answer that are read: enough for its reason."""
MAX_REASON: Final = 200
_MIN_SECRET: Final = 4
"""Shorter ones are no secrets, and are found in any text."""
_MIN_PART: Final = 8
"""Shorter parts of a path are words, such as "hook"."""
_SLICE: Final = 65_536
_T = TypeVar("_T")


class DeadlineStream(httpcore.NetworkStream):
    """Connection with one deadline for the whole request."""

    def __init__(self, sock: socket.socket, left_s: Callable[[], float]) -> None:
        """Take a connected socket; ``left_s`` returns how many seconds are left."""
        self._sock, self._left_s = sock, left_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - there is one deadline for all
        """Read what is there."""
        return self._run_in_time(lambda: self._sock.recv(max_bytes), httpcore.ReadTimeout, httpcore.ReadError)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Write all of it."""
        rest = memoryview(buffer)
        while rest:
            sent = self._run_in_time(lambda: self._sock.send(rest[:_SLICE]), httpcore.WriteTimeout, httpcore.WriteError)  # noqa: B023 - called at once
            rest = rest[sent:]

    def close(self) -> None:
        """Close it."""
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Return the same, encrypted."""

        def wrapped() -> ssl.SSLSocket:
            return ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)

        try:
            return DeadlineStream(
                self._run_in_time(wrapped, httpcore.ConnectTimeout, httpcore.ConnectError), self._left_s
            )
        except httpcore.NetworkError:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - the library's signature
        """Return nothing: a connection is used once."""
        del info

    def _run_in_time(self, do: Callable[[], _T], late: type[Exception], broken: type[Exception]) -> _T:
        try:
            self._sock.settimeout(addresses.remaining_s(self._left_s))
            return do()
        except TimeoutError as error:
            raise late(str(error)) from error
        except OSError as error:
            raise broken(str(error)) from error


@dataclass(frozen=True, slots=True)
class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections to checked addresses, within the deadline."""

    left_s: Callable[[], float]

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - there is one deadline for all
        local_address: str | None = None,  # noqa: ARG002 - the library's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Connect."""
        try:
            return DeadlineStream(addresses.connect(host, port, self.left_s), self.left_s)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error


class Poster:
    """HTTP client of one channel; it keeps secrets out of its error texts."""

    def __init__(
        self, timeout_s: float, ca_file: str = "", secrets: Iterable[str] = (), clock: Clock | None = None
    ) -> None:
        """Take the timeout of a post, the file of certificate authorities, if any, and the secrets to hide."""
        self._timeout_s, self._clock = timeout_s, clock or SystemClock()
        self._context = create_tls_context(ca_file)
        self._secrets = sorted({form for secret in secrets for form in _secret_forms(secret)}, key=len, reverse=True)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], now_us: int) -> Outcome:
        """Post once, and return the outcome."""
        who = redact_url(url)
        ends_s = self._clock.monotonic_s() + self._timeout_s
        sent = {"User-Agent": f"hopwatch/{__version__}", "Accept-Encoding": "identity", "Connection": "close"}
        try:
            with (
                httpcore.ConnectionPool(
                    ssl_context=self._context,
                    network_backend=DeadlineBackend(lambda: ends_s - self._clock.monotonic_s()),
                ) as pool,
                pool.stream("POST", url, headers=list({**sent, **headers}.items()), content=body) as answer,
            ):
                reason = self._read_reason(answer)
                named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
                return parse_response(who, answer.status, reason, named.get("retry-after", ""), now_us)
        except httpcore.TimeoutException:
            return Failure(f"{who} did not answer within {self._timeout_s:g} s")
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            return Failure(f"{who} cannot be reached: {self.redact(str(error) or type(error).__name__)}")

    def redact(self, text: str) -> str:
        """Return a foreign text as one short line without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return shorten(to_one_line(text), MAX_REASON)

    def _read_reason(self, answer: httpcore.Response) -> str:
        """Read the beginning of a response body, as the reason of a failure."""
        read = b""
        try:
            for part in answer.iter_stream():
                read += part
                if len(read) > MAX_READ_BYTES:
                    break
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            # The status is known already, and decides.
            pass
        if len(read) > MAX_READ_BYTES:
            # What was cut may end in the first half of a secret.
            read = read[: MAX_READ_BYTES - max(map(len, self._secrets), default=0)]
        return self.redact(read.decode("utf-8", "replace"))


def create_tls_context(ca_file: str) -> ssl.SSLContext:
    """Create a TLS context that trusts the authorities of a file, or those of this machine and of Mozilla."""
    context = ssl.create_default_context(cafile=ca_file or None)
    if not ca_file:
        # A slim container has no authorities of its own.
        context.load_verify_locations(certifi.where())
    return context


def _secret_forms(secret: str) -> list[str]:
    """Return the forms in which a receiver may repeat a secret; for a URL its path and query too, whole or in parts."""
    parts = urlsplit(secret)
    forms = [secret, unquote(secret)]
    if parts.scheme in {"http", "https"}:
        keys = [pair.partition("=")[2] for pair in parts.query.split("&")]
        keys += [part for part in parts.path.split("/") if len(part) >= _MIN_PART]
        forms += [
            form for part in (parts.path, parts.query, *keys) for form in (part, unquote(part), unquote_plus(part))
        ]
    # JSON may write a slash with another one before it.
    forms += [form.replace("/", "\\/") for form in forms]
    return [form for form in forms if len(form) >= _MIN_SECRET]


def redact_url(url: str) -> str:
    """Return scheme and host of a URL, as the rest may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
