"""HTTP client of a delivery: requests over connections that are kept, each with one deadline for all of it.

No redirect is followed, no cookie kept, no proxy or other setting taken from the environment. What comes on a
connection before a request is sent is no answer to it. Certificates are verified, and nothing is sent to an address
that :mod:`probes.http.address_rules` refuses, whether it stands in the URL or is that of a name: it is checked where
the socket is made. Of an answer no more than a bound is read. ADR 0171 says why it is aiohttp's.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, Self

import aiohttp
import certifi
from aiohttp import AddrInfoType
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from hopwatch import __version__
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.probes.http.address_rules import refusal_reason

MAX_ANSWER_BYTES: Final = 16 * 1024
"""Bytes of an answer that are read; the connection of a longer one is closed."""
MAX_MULTI_STATUS_BYTES: Final = 1024 * 1024
"""Bytes of an answer with a status for each message that are read; a longer one has none that can be read."""
MAX_REASON_CHARS: Final = 200
KEEP_ALIVE_S: Final = 4.0
"""Time for which an idle connection is kept: shorter than the 5 s after which usual servers close theirs."""


class RefusedAddressError(OSError):
    """The receiver has an address that nothing is sent to."""


class _Connector(aiohttp.TCPConnector):
    """Connector that closes an idle connection on which something came unasked.

    Proxies say 408 before they close an idle connection: it would be read as the answer to the next request.
    """

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        while (connection := await super()._get(key, traces)) is not None:
            protocol = connection.protocol
            if protocol is not None and not protocol.should_close:
                break
            connection.close()
        return connection


class HttpReceiver:
    """Receiver at a URL, as an asynchronous context."""

    def __init__(self, url: str, timeout_s: float, parallel: int, context: ssl.SSLContext | None = None) -> None:
        """Take the URL, the timeout of a request, the number of connections, and how to encrypt."""
        self._url, self._timeout_s, self._parallel, self._context = url, timeout_s, parallel, context
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open it; nothing is connected yet."""
        connector = _Connector(
            limit=self._parallel,
            ssl=self._context or create_tls_context(),
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=_open_socket,
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=self._timeout_s),
            headers={"User-Agent": f"hopwatch/{__version__}", "Accept-Encoding": "identity", "Accept": "*/*"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer | NoAnswer:
        """Post once."""
        if self._session is None:
            raise RuntimeError("the receiver is not open: enter it with 'async with' first")
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                return await _read_answer(response)
        except TimeoutError:
            return NoAnswer(AttemptResult.TIMEOUT, f"no answer within {self._timeout_s:g} s")
        except aiohttp.InvalidURL as error:
            return NoAnswer(AttemptResult.UNREACHABLE, _build_reason("the URL is none", error))
        except aiohttp.ClientConnectorError as error:
            return NoAnswer(AttemptResult.UNREACHABLE, _build_reason("no connection", error.os_error))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return NoAnswer(AttemptResult.BROKEN, _build_reason("the connection broke", error))


def create_tls_context(ca_file: str = "", certificate_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """Create a TLS context that trusts the authorities of a file, or those of this machine and of Mozilla.

    With a certificate of the client, whose key is in its own file or in the same one.

    Raises:
        OSError: a file is missing, or holds no certificate or key.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    if not ca_file:
        # A slim container has no authorities of its own.
        context.load_verify_locations(certifi.where())
    if certificate_file:
        context.load_cert_chain(certificate_file, key_file or None)
    return context


def _open_socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, where = address
    host = str(where[0])
    reason = refusal_reason(ip_address(host.partition("%")[0]))
    if reason:
        raise RefusedAddressError(f"the receiver is {host}, {reason}: nothing is sent there")
    return socket.socket(family, kind, protocol)


async def _read_answer(response: aiohttp.ClientResponse) -> Answer | NoAnswer:
    """Read the beginning of an answer; its status decides even if the rest does not come, but for 207."""
    is_multi_status = response.status == HTTPStatus.MULTI_STATUS
    left, parts = MAX_MULTI_STATUS_BYTES if is_multi_status else MAX_ANSWER_BYTES, list[bytes]()
    try:
        while left > 0 and (part := await response.content.read(left)):
            parts.append(part)
            left -= len(part)
    except (aiohttp.ClientError, OSError):
        if is_multi_status:
            raise
        response.close()
    if left <= 0:
        response.close()
    return Answer(response.status, b"".join(parts), response.headers.get("Retry-After", ""))


def _build_reason(told: str, error: BaseException) -> str:
    said = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        # asyncio's own words hold address and port, and reasons are counted.
        is_from_asyncio = error.strerror.startswith("Connect call failed")
        said = os.strerror(error.errno) if is_from_asyncio and error.errno else error.strerror
    line = "".join(one if one.isprintable() else " " for one in said)
    return f"{told}: {line}"[:MAX_REASON_CHARS]
