"""Tests of the limits on requests: too large, too slow, too many, or no gzip."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.http.limits import App, LimitMiddleware, Limits, Receive, Scope, Send

MIB: Final = 1024 * 1024
PACKED: Final = [(b"content-encoding", b"gzip")]


class Echo:
    """Keeps each body; waits, if it is told to, until it may answer."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.bodies: list[bytes] = []
        self.headers: list[Sequence[tuple[bytes, bytes]]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a body, and answer 200."""
        self.bodies.append((await receive())["body"])
        self.headers.append(scope["headers"])
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


async def ask(
    app: App, parts: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]] = (), wait: asyncio.Event | None = None
) -> tuple[int, Any]:
    """Send a body in parts, the last one when ``wait`` is set, and return status and answer."""
    left = list(parts)
    answer: list[Any] = []

    async def receive() -> dict[str, Any]:
        if wait is not None and len(left) == 1:
            await wait.wait()
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:  # noqa: ANN401 - of ASGI
        answer.append(message)

    await app({"type": "http", "method": "POST", "headers": list(headers)}, receive, send)
    return answer[0]["status"], orjson.loads(answer[1]["body"])


def asked(limits: Limits, parts: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]] = ()) -> tuple[int, str, Echo]:
    """Send one body, and return status, kind of problem, and what came through."""
    echo = Echo()
    status, told = asyncio.run(ask(LimitMiddleware(echo, limits), parts, headers))
    return status, told.get("type", "").rpartition(":")[2], echo


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.booleans())
def test_a_body_comes_through_as_it_is(parts: list[bytes], is_packed: bool) -> None:  # noqa: FBT001 - drawn
    """In however many parts, packed or not; behind the bound it is not packed."""
    whole = b"".join(parts)
    data = gzip.compress(whole) if is_packed else whole
    cuts = [data[at : at + 7] for at in range(0, len(data), 7)] or [b""]
    status, _, echo = asked(Limits(max_body_bytes=250), cuts, PACKED if is_packed else [])
    assert (status, echo.bodies, echo.headers) == (200, [whole], [[]])


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_bound_is_on_what_is_unpacked(is_packed: bool) -> None:  # noqa: FBT001 - as above
    """To the byte."""
    for size, expected in ((100, 200), (101, 413)):
        data = gzip.compress(b"a" * size) if is_packed else b"a" * size
        assert asked(Limits(max_body_bytes=100), [data], PACKED if is_packed else [])[0] == expected
    headers = [(b"content-length", b"101")]
    assert asked(Limits(max_body_bytes=100), [b""], headers)[:2] == (413, "body-too-large")


def test_a_bomb_is_cut_before_it_grows() -> None:
    """200 KB that would be 200 MB cost no more memory than the bound and a little."""
    bomb = gzip.compress(bytes(200 * MIB))
    assert len(bomb) < 210_000
    limits = Limits(max_body_bytes=MIB)
    tracemalloc.start()
    try:
        assert asked(limits, [bomb], PACKED)[:2] == (413, "body-too-large")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


ONE: Final = gzip.compress(b"a", mtime=0)


@pytest.mark.parametrize(
    "data", [b"", b"no gzip", ONE[:-1], ONE + b"x", ONE * 2], ids=["empty", "other", "cut", "more", "twice"]
)
def test_what_is_no_gzip_is_told(data: bytes) -> None:
    """Nor what is cut, or followed by something."""
    assert asked(Limits(), [data], PACKED)[:2] == (400, "not-gzip")


def test_what_follows_a_gzip_is_not_collected() -> None:
    """The request ends there, however much more is to come."""
    data = gzip.compress(b"a")
    assert asked(Limits(), [data, *[bytes(1_000)] * 1_000], PACKED)[:2] == (400, "not-gzip")
    assert asked(Limits(), [data, b""], PACKED)[0] == 200


def test_a_slow_body_is_cut() -> None:
    """After its time, whatever trickles."""

    async def slow() -> int:
        status, _ = await ask(LimitMiddleware(Echo(), Limits(body_s=0.05)), [b"a", b"b"], wait=asyncio.Event())
        return status

    assert asyncio.run(slow()) == 408


def test_slow_bodies_take_no_place_of_others() -> None:
    """A request counts among those at once from when its body is there."""

    async def many() -> list[int]:
        app, may_come = LimitMiddleware(Echo(), Limits(max_requests=1)), asyncio.Event()
        slow = [asyncio.create_task(ask(app, [b"a", b"b"], wait=may_come)) for _ in range(20)]
        await asyncio.sleep(0)
        statuses = [(await ask(app, [b"x"]))[0]]
        may_come.set()
        return statuses + [status for status, _ in await asyncio.gather(*slow)]

    assert asyncio.run(many())[0] == 200


def test_so_many_are_worked_on_at_once() -> None:
    """One more is 503 with when to come again; when one has ended there is room."""

    async def many() -> list[int]:
        echo = Echo()
        echo.may_answer.clear()
        app = LimitMiddleware(echo, Limits(max_requests=2))
        running = [asyncio.create_task(ask(app, [b"x"])) for _ in range(2)]
        while len(echo.bodies) < 2:  # noqa: ASYNC110 - two calls, not an event
            await asyncio.sleep(0)
        status, told = await ask(app, [b"x"])
        assert told["detail"] == "2 requests are being worked on already: retry later"
        echo.may_answer.set()
        await asyncio.gather(*running)
        return [status, (await ask(app, [b"x"]))[0]]

    assert asyncio.run(many()) == [503, 200]


def test_so_many_bytes_are_held_at_once() -> None:
    """Of all bodies together, unpacked; they are given back whatever became of the request."""

    async def many() -> list[int]:
        app, may_come = LimitMiddleware(Echo(), Limits(max_held_bytes=100)), asyncio.Event()
        slow = asyncio.create_task(ask(app, [b"a" * 90, b""], wait=may_come))
        await asyncio.sleep(0.01)
        status, told = await ask(app, [b"a" * 11])
        assert told["detail"] == "bodies of 100 bytes are being worked on already: retry later"
        may_come.set()
        await slow
        return [
            status,
            (await ask(app, [b"a" * 100]))[0],
            (await ask(app, [b"a" * 101]))[0],
            (await ask(app, [b"a"]))[0],
        ]

    assert asyncio.run(many()) == [503, 200, 503, 200]


def test_a_body_that_ends_before_its_end_is_told() -> None:
    """The server says of chunks that are none what it says of a client that hung up."""
    echo = Echo()
    answer: list[Any] = []
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:  # noqa: ANN401 - of ASGI
        answer.append(message)

    asyncio.run(LimitMiddleware(echo, Limits())({"type": "http", "method": "POST", "headers": []}, receive, send))
    assert (answer[0]["status"], dict(answer[0]["headers"])[b"content-type"]) == (400, b"application/problem+json")
    told = "the body ended before its end: the client hung up, or its chunks are none"
    assert orjson.loads(answer[1]["body"])["detail"] == told
    assert echo.bodies == []
