"""The page of metrics by HTTP: ``GET /metrics``, from threads of its own, which no client can use up.

The server is Python's own and the answers are prometheus_client's; bounds are ours: so many connections at once, so
many of them of one address, each with a moment at which it is cut, however slowly its client sends or reads. It speaks
no TLS and asks for no password: it belongs on an address that only scrapers reach.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from hopwatch.probes.contract.addresses import identify_owner

PATH: Final = "/metrics"
MAX_CONNECTIONS: Final = 8
"""Most connections that are served at once; others wait in the kernel's queue until one of these ends or is cut."""
MAX_PER_ADDRESS: Final = 4
"""Most connections of one address; others are cut at once, so that a client that does not read blocks no other."""
CUT_AFTER_S: Final = 10.0
"""As long as Prometheus waits by default."""
POLL_S: Final = 0.25
ROOT_PAGE: Final = f'<!doctype html><title>Hopwatch</title><a href="{PATH}">{PATH}</a>\n'.encode()
"""Page at the root, with a link to the metrics for people who open the port in a browser."""


class MetricsAddressError(OSError):
    """Address at which metrics cannot be served."""


class _Handler(MetricsHandler):
    """One request: the page, its headers alone, or that there is no such thing."""

    server_version = "hopwatch"
    sys_version = ""

    def do_GET(self) -> None:  # noqa: N802 - the name is the library's
        """Answer with the page, in the format that is asked for, or with a way to it."""
        if self._is_root():
            self._send_way(has_body=True)
        elif self._is_there():
            super().do_GET()

    def do_HEAD(self) -> None:  # noqa: N802 - the name is the library's
        """Say that the page is there, without making it."""
        if self._is_root():
            self._send_way(has_body=False)
        elif self._is_there():
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.end_headers()

    def _is_root(self) -> bool:
        return urlsplit(self.path).path == "/"

    def _send_way(self, *, has_body: bool) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(ROOT_PAGE)))
        self.end_headers()
        if has_body:
            self.wfile.write(ROOT_PAGE)

    def _is_there(self) -> bool:
        if urlsplit(self.path).path == PATH:
            return True
        self.send_error(HTTPStatus.NOT_FOUND, explain=f"metrics are at {PATH}")
        return False


class MetricsServer(ThreadingHTTPServer):
    """The server, on its port from the beginning; it answers from :meth:`start` on."""

    daemon_threads = True

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        report: Callable[[str], None],
        cut_after_s: float = CUT_AFTER_S,
    ) -> None:
        """Take the port; 0 is one that is free. ``report`` takes errors of Hopwatch's own while the page is made.

        Raises:
            MetricsAddressError: it cannot be had.
        """
        self._report = report
        self._free, self._cut_after_s = threading.BoundedSemaphore(MAX_CONNECTIONS), cut_after_s
        self._is_closing = threading.Event()
        self._of_owner: Counter[str] = Counter()
        self._counting = threading.Lock()
        handler = type("Handler", (_Handler,), {"registry": registry})
        try:
            self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            super().__init__((host, port), handler)
        except OSError as error:
            raise MetricsAddressError(f"metrics cannot be served at {host}:{port}: {error.strerror}") from None

    @property
    def port(self) -> int:
        """The port."""
        return int(self.server_address[1])

    def server_bind(self) -> None:
        """Take the port, and ask no name server for our name."""
        TCPServer.server_bind(self)

    def start(self) -> None:
        """Answer from now on, in a thread of its own."""
        threading.Thread(target=self.serve_forever, args=(POLL_S,), name="metrics", daemon=True).start()

    def close(self) -> None:
        """Let go of the port; connections that are open end with the process."""
        self._is_closing.set()
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Wait for a free slot before accepting the next connection; cut one beyond the limit of its address."""
        if self._of_owner[identify_owner(client_address[0])] >= MAX_PER_ADDRESS:
            self.shutdown_request(request)
            return
        while not self._free.acquire(timeout=POLL_S):
            if self._is_closing.is_set():
                self.shutdown_request(request)
                return
        self._count(client_address, 1)
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # No thread can start: its slot is free again, and the library reports the error and cuts the connection.
            self._release(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's
        """Answer, within the time that a connection has."""
        cut = threading.Timer(self._cut_after_s, _cut_connection, (request,))
        cut.daemon = True
        try:
            cut.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:
            # No thread can start for the timer, and without it a connection has no end.
            self.handle_error(request, client_address)
            self.shutdown_request(request)
        finally:
            cut.cancel()
            self._release(client_address)

    def _release(self, client_address: tuple[str, int]) -> None:
        self._count(client_address, -1)
        self._free.release()

    def _count(self, client_address: tuple[str, int], change: int) -> None:
        with self._counting:
            self._of_owner += Counter({identify_owner(client_address[0]): change})

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the library's
        """Log nothing of a client that has gone or was cut; report an error of our own."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self._report(repr(error))


def _cut_connection(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
