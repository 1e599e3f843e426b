"""Tests of what stands between an app and its server."""

from __future__ import annotations

import asyncio
import socket
from threading import Event
from typing import Any, Final

import pytest

from hopwatch.probes.http import granian_server
from hopwatch.probes.http.granian_server import ErrorMiddleware, HealthOnlyApp, PortTakenError, ServerAddress

FORGED: Final = "\x1b[2J\nhopwatch: all is well " * 1_000


async def failing(*_: object) -> None:
    """Raise what a stranger has said."""
    raise ValueError(FORGED)


async def _nothing(*_: object) -> Any:  # noqa: ANN401 - what of ASGI is sent or received
    return {}


def test_a_fault_is_logged_where_it_is_once_and_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    """A request may stand in them, as long as it likes and with lines of its own."""
    app = ErrorMiddleware(failing)
    for _ in range(300):
        asyncio.run(app({"type": "http"}, _nothing, _nothing))
    (record,) = caplog.records
    assert record.getMessage().startswith("a request failed by a fault of Hopwatch's own, ValueError at /")
    assert record.getMessage().endswith(
        f"test_granian_server.py:{failing.__code__.co_firstlineno + 2}: please report it"
    )
    assert record.exc_info is None


def test_a_start_that_fails_is_the_servers(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody has sent anything yet, and it is not to be served."""
    with pytest.raises(ValueError, match="all is well"):
        asyncio.run(ErrorMiddleware(failing)({"type": "lifespan"}, _nothing, _nothing))
    assert caplog.records == []


def test_where_health_is_served_there_is_nothing_else() -> None:
    """The app for health answers no other path."""
    asked: list[str] = []
    said: list[dict[str, Any]] = []

    async def app(scope: Any, *_: object) -> None:  # noqa: ANN401 - of ASGI
        asked.append(scope["path"])

    async def send(message: Any) -> None:  # noqa: ANN401 - of ASGI
        said.append(message)

    for path in ("/healthz", "/readyz", "/streams/orders/events", "/healthz/", "/subjects"):
        asyncio.run(HealthOnlyApp(app)({"type": "http", "path": path}, _nothing, send))
    assert asked == ["/healthz", "/readyz"]
    assert [message["status"] for message in said if "status" in message] == [404] * 3


def test_a_port_that_was_taken_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without its port ends, and does not wait for a stop; found before the start, the port is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address, stop = ServerAddress("127.0.0.1", taken.getsockname()[1]), Event()
        with pytest.raises(PortTakenError, match=f"port {address.port} cannot be listened on: Address already in use"):
            granian_server.serve_app(_nothing, address, stop, stop.clear)
        monkeypatch.setattr(granian_server, "check_port", lambda *_: None)
        with pytest.raises(RuntimeError, match="Address already in use"):
            granian_server.serve_app(_nothing, address, stop, stop.clear)
        assert stop.is_set()
