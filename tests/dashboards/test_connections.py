"""Tests of the bounds on connections: nobody takes them all, and nobody who is late keeps one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

import pytest
import uvicorn
from structlog.testing import capture_logs
from uvicorn.server import ServerState

from hopwatch.dashboards import connections
from hopwatch.dashboards.connections import WARN_INTERVAL_S, BoundedHttpProtocol

PATIENCE_S: Final = 30.0
LARGE: Final = b"x" * 32_000_000
"""More than the buffers of both ends hold."""
ASK: Final = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
ASK_LARGE: Final = b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n"
UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
NEVER_S: Final = 3_600.0
LOOK_S: Final = 0.01
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Patient(BoundedHttpProtocol):
    """Waits as long as it takes, and looks often."""

    request_timeout_s: ClassVar[float] = NEVER_S
    read_timeout_s: ClassVar[float] = NEVER_S
    check_interval_s: ClassVar[float] = LOOK_S


async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
    """Answer with much, and send as much into a WebSocket."""
    del receive
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": LARGE})
        return
    body = LARGE if scope["path"] == "/large" else b"well"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(kind: type[BoundedHttpProtocol]) -> AsyncIterator[tuple[Callable[[], Awaitable[Client]], set[Any]]]:
    """Yield what connects to a server of this protocol, and the connections that it holds."""
    config, state = (
        uvicorn.Config(app, ws="websockets-sansio", log_config=None, timeout_keep_alive=3_600),
        ServerState(),
    )
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    opened: list[asyncio.StreamWriter] = []

    async def connect() -> Client:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1024)
        opened.append(writer)
        return reader, writer

    try:
        async with asyncio.timeout(PATIENCE_S):
            yield connect, state.connections
    finally:
        server.close()
        for writer in opened:
            writer.transport.abort()
        for one in list(state.connections):
            one.transport.abort()


async def is_answered(client: Client) -> bool:
    """Return whether a client gets an answer; else it was cut."""
    reader, writer = client
    try:
        writer.write(ASK)
        head = await reader.readuntil(b"well")
    except (OSError, asyncio.IncompleteReadError):
        return False
    return head.startswith(b"HTTP/1.1 200")


async def cut(client: Client) -> bytes:
    """Return what a client gets until it is cut."""
    got = b""
    try:
        while part := await client[0].read(1 << 20):
            got += part
    except OSError:
        pass
    return got


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not is_so():  # noqa: ASYNC110 - uvicorn's set tells nobody
        await asyncio.sleep(LOOK_S)


def test_an_address_has_so_many_connections() -> None:
    """Those beyond are cut at once; where one ends another may come, and it is told once a minute."""

    class Few(Patient):
        max_per_address: ClassVar[int] = 2

    async def run() -> None:
        BoundedHttpProtocol.warned_s = -WARN_INTERVAL_S
        async with serving(Few) as (connect, _):
            first, second = await connect(), await connect()
            assert [await is_answered(first), await is_answered(second)] == [True, True]
            assert [await is_answered(await connect()) for _ in range(3)] == [False] * 3
            first[1].close()
            while not await is_answered(await connect()):
                pass

    with capture_logs() as logs:
        asyncio.run(run())
    assert logs == [
        {
            "event": "connections to the dashboard were refused",
            "log_level": "warning",
            "client": "127.0.0.1",
            "most": "2 of one address, 512 of all",
        }
    ]


def test_all_together_have_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients together have a bounded number of connections."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)

    async def run() -> None:
        async with serving(Patient) as (connect, _):
            first = await connect()
            assert [await is_answered(first), await is_answered(await connect())] == [True, False]

    with capture_logs():
        asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        (b"", 0),
        (b"GET / HTTP/1.1\r\nHost:", 0),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf", 1),
        (ASK, 1),
        (ASK + b"GET", 1),
    ],
    ids=["nothing", "half a head", "half a body", "one request", "a second begun"],
)
def test_who_asks_for_nothing_is_cut(said: bytes, answers: int) -> None:
    """At its beginning and between requests; an answer that was due has been sent."""

    class Hasty(Patient):
        request_timeout_s: ClassVar[float] = 0.2

    async def run() -> bytes:
        async with serving(Hasty) as (connect, _):
            client = await connect()
            client[1].write(said)
            return await cut(client)

    assert asyncio.run(run()).count(b"well") == answers


@pytest.mark.parametrize("said", [ASK_LARGE, UPGRADE], ids=["an answer", "a WebSocket"])
def test_who_does_not_read_is_cut(said: bytes) -> None:
    """With all that waits for it in memory, which it does not get any more."""

    class Hasty(Patient):
        read_timeout_s: ClassVar[float] = 0.3

    async def run() -> int:
        async with serving(Hasty) as (connect, held):
            client = await connect()
            client[1].write(said)
            await until(lambda: bool(held))
            await until(lambda: not held)
            return len(await cut(client))

    assert asyncio.run(run()) < len(LARGE)


def test_who_reads_slowly_gets_all_of_it() -> None:
    """As long as it is done within its time."""

    class Hasty(Patient):
        request_timeout_s: ClassVar[float] = 0.2

    async def run() -> int:
        async with serving(Hasty) as (connect, _):
            client = await connect()
            client[1].write(ASK_LARGE)
            return len(await cut(client))

    assert asyncio.run(run()) > len(LARGE)
