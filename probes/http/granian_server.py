"""Granian server in this process, with TLS, connection limits and a graceful stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import socket
import ssl
import stat
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Any, Final

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from hopwatch.probes.http.connections import ConnectionLimiter
from hopwatch.probes.http.limits import App, Receive, Scope, Send, send_problem
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.once_per_cause import OncePerCause

HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
MAX_HEALTH_CONNECTIONS: Final = 64
MAX_CONNECTIONS: Final = 4_096
"""Open connections at once: more than running requests, so that slow clients do not keep others out."""
DESCRIPTORS: Final = 2 * MAX_CONNECTIONS
HEADERS_S: Final = 10.0
"""Deadline for a client's headers; its body has a separate one."""
EXPIRY_WARNING_S: Final = 14 * 86_400
"""Remaining life of a certificate below which a warning is due."""
STOP_S: Final = 5.0
"""Time for running requests at a stop; then their connections are closed."""
_log = logging.getLogger("hopwatch.http")


class PortTakenError(OSError):
    """Port that cannot be listened on."""


def check_port(host: str, port: int) -> None:
    """Check that a port is free.

    Raises:
        PortTakenError: the port is in use, or not permitted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probing:
            # As the server itself does, so that a port that was just left is free.
            probing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probing.bind(address)
    except OSError as error:
        raise PortTakenError(f"{host} port {port} cannot be listened on: {error.strerror}: choose another") from None


class TlsError(ValueError):
    """Invalid or unreadable TLS files."""


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS files in PEM: the server's certificate and key, and optionally the CA of client certificates."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Check that the files can be loaded.

        Raises:
            TlsError: a file cannot be read, or certificate and key do not match.
        """
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except OSError as error:
            told = f"the files for TLS, {self.certificate}, {self.key} and {self.client_ca or 'no client_ca'}"
            raise TlsError(f"{told}, cannot be used: {error.strerror or error}") from None

    def describe_flaw(self, now_s: float) -> str:
        """Describe flaws of readable files: a certificate that is expired or expires soon, a world-readable key.

        Empty if there is none, if the certificate lasts longer than :data:`EXPIRY_WARNING_S`, or if it cannot be read.
        """
        told = self._describe_certificate_flaw(now_s)
        if self.key.stat().st_mode & stat.S_IROTH:
            of_key = f"the key {self.key} can be read by every user of this machine: chmod o-r it"
            return f"{told}; {of_key}" if told else of_key
        return told

    def _describe_certificate_flaw(self, now_s: float) -> str:
        server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        server.load_cert_chain(self.certificate, self.key)
        # Trust the certificate itself: real clients decide whether they trust its issuer.
        client.load_verify_locations(self.certificate)
        client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        client.check_hostname = False
        try:
            until_s = ssl.cert_time_to_seconds(_read_certificate(server, client)["notAfter"])
        except ssl.SSLCertVerificationError as error:
            what = f"the certificate {self.certificate} is refused by clients: {error.verify_message}"
            return f"{what}: put a good one there"
        # Such as a name that is no UTF-8: the server may take it still.
        except (ssl.SSLError, ValueError, KeyError):
            return ""
        left_s = until_s - now_s
        if left_s > EXPIRY_WARNING_S:
            return ""
        days = f"{left_s / 86_400:.1f} days"
        return f"the certificate {self.certificate} expires in {days}: put a new one there, and start again"

    def granian_options(self) -> dict[str, Any]:
        """Return the files as options of granian."""
        told: dict[str, Any] = {"ssl_cert": self.certificate, "ssl_key": self.key}
        return told if self.client_ca is None else told | {"ssl_ca": self.client_ca, "ssl_client_verify": True}


def _read_certificate(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any]:
    """Return the fields of a server's certificate, by a handshake in memory.

    Raises:
        ssl.SSLCertVerificationError: the client refuses it.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server)
    while True:
        with suppress(ssl.SSLWantReadError):
            asking.do_handshake()
            return dict(asking.getpeercert() or {})
        with suppress(ssl.SSLWantReadError):
            answering.do_handshake()


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Address of a served app, with its TLS files."""

    host: str
    port: int
    tls: Tls | None = None
    health_port: int | None = None
    """Second port, for health checks alone, without TLS: it has connections left whatever clients do at the first."""

    @property
    def url(self) -> str:
        """Return the URL of the app."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/"


class ErrorMiddleware:
    """ASGI middleware that logs unhandled errors by type and place, each place once.

    The server would print the whole traceback each time, which may hold data of a request.
    """

    def __init__(self, app: App) -> None:
        """Stand before an app."""
        self._app = app
        self._logged = OncePerCause()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request; an error ends it."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if scope["type"] != "http":
                raise
            at = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__} at {at.filename}:{at.lineno}"
            if self._logged.is_new(told):
                _log.error("a request failed by a fault of Hopwatch's own, %s: please report it", told)


class HealthOnlyApp:
    """ASGI app that serves the health paths of another app, and nothing else."""

    def __init__(self, app: App) -> None:
        """Stand before an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer health checks; any other path is not found."""
        if scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return
        told = f"there is {' and '.join(sorted(HEALTH_PATHS))} here, and nothing else"
        await send_problem(HttpProblem(HTTPStatus.NOT_FOUND, "not-found", told), send)


def serve_app(app: App, listening: ServerAddress, stop: Event, ready: Callable[[], None]) -> None:
    """Serve until ``stop`` is set, or the server ends by itself, which sets it; call ``ready`` at the start.

    Raises:
        PortTakenError: a port is in use by now, perhaps by this very process.
    """
    for port in filter(None, (listening.port, listening.health_port)):
        check_port(listening.host, port)
    # Present objects live as long as the app: each full collection would visit them, and block requests meanwhile.
    gc.collect()
    gc.freeze()
    _raise_descriptor_limit()
    # The loop is a large part of what a single event costs, and uvloop's takes less than asyncio's own.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_until_stopped(app, listening, stop, ready))


def _raise_descriptor_limit() -> None:
    """Raise the limit of open files to twice the maximum of connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve_until_stopped(app: App, listening: ServerAddress, stop: Event, ready: Callable[[], None]) -> None:
    servers = [_build_server(ErrorMiddleware(app), listening, listening.port, MAX_CONNECTIONS)]
    if listening.health_port is not None:
        # The first server alone runs the lifespan.
        health, plain = ErrorMiddleware(HealthOnlyApp(app)), ServerAddress(listening.host, listening.health_port)
        servers.append(_build_server(health, plain, plain.port, MAX_HEALTH_CONNECTIONS, interface=Interfaces.ASGINL))
    ports = {listening.port, listening.health_port or listening.port}
    connections = ConnectionLimiter(ports)
    with connections.watch():
        running = [asyncio.create_task(server.serve()) for server in servers]
        ready()
        stopping = asyncio.create_task(asyncio.to_thread(stop.wait))
        await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for server, task in zip(servers, running, strict=True):
            if not task.done():
                server.stop()  # type: ignore[no-untyped-call]  # granian's own
        await asyncio.wait(running, timeout=STOP_S)
        connections.end_all()
        try:
            await asyncio.gather(*running)
        finally:
            # A thread waits for it, and with it the loop for its end.
            stop.set()
    await stopping


def _build_server(app: App, listening: ServerAddress, port: int, connections: int, **more: Any) -> Server:  # noqa: ANN401 - granian's
    return Server(
        app,
        address=listening.host,
        port=port,
        **({} if listening.tls is None else listening.tls.granian_options()),
        **({"interface": Interfaces.ASGI} | more),
        backlog=connections,
        backpressure=connections,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(HEADERS_S * 1_000)),
        websockets=False,
        log_enabled=False,
    )
