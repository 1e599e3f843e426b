"""Tests of what stands before the app: what never changes is asked of it once, and all else each time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from hopwatch.dashboards.static_cache import CHUNK_BYTES, StaticCacheMiddleware

OF_ONE = ("set-cookie", "vary", "content-encoding")
FOR_EVER = "public, immutable, max-age=31536000"


@dataclass
class Files:
    """An app that answers in two parts, and counts how often it was asked for each path."""

    cache_control: str = FOR_EVER
    status: int = 200
    more: dict[str, str] = field(default_factory=lambda: {"content-length": "13"})
    asked: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del receive
        self.asked.append(scope["path"])
        told = {"cache-control": self.cache_control, "content-type": "text/x", **self.more}
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"half ", "more_body": True})
        await send({"type": "http.response.body", "body": b"and half"})


def get(app: StaticCacheMiddleware, path: str = "/a.js", method: str = "GET", **headers: str) -> tuple[int, str, str]:
    """Return status, type and body of an answer."""

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return await client.request(method, path, headers=headers)

    answer = asyncio.run(ask())
    return answer.status_code, answer.headers["content-type"], answer.text


def test_what_never_changes_is_asked_for_once() -> None:
    """Status, headers and body are the same from then on, for each path."""
    files = Files()
    app = StaticCacheMiddleware(files)
    assert [get(app), get(app), get(app, "/b.js")] == [(200, "text/x", "half and half")] * 3
    assert files.asked == ["/a.js", "/b.js"]


@pytest.mark.parametrize(
    ("files", "path", "method", "headers"),
    [
        (Files("no-cache"), "/a.js", "GET", {}),
        (Files(status=206), "/a.js", "GET", {}),
        (Files(), "/a.js", "HEAD", {}),
        (Files(), "/a.js?v=1", "GET", {}),
        (Files(), "/a.js", "GET", {"range": "bytes=0-1"}),
        (Files(), "/a.js", "GET", {"if-none-match": "x"}),
        (Files(), "/x/%2e/a.js", "GET", {}),
        (Files(), "/x//a.js", "GET", {}),
        (Files(more={"content-length": "14"}), "/a.js", "GET", {}),
        (Files(more={}), "/a.js", "GET", {}),
        *((Files(more={"content-length": "13", one: "x"}), "/a.js", "GET", {}) for one in OF_ONE),
    ],
)
def test_all_else_is_asked_for_each_time(files: Files, path: str, method: str, headers: dict[str, str]) -> None:
    """Other requests and answers than whole static files are passed to the app each time."""
    app = StaticCacheMiddleware(files)
    get(app, path, method, **headers)
    get(app, path, method, **headers)
    assert len(files.asked) == 2


def test_no_more_is_kept_than_there_is_room_for() -> None:
    """Files beyond the bound are passed to the app each time."""
    files = Files()
    app = StaticCacheMiddleware(files, most_bytes=150)
    for path in ("/a.js", "/b.js", "/a.js", "/b.js"):
        assert get(app, path)[2] == "half and half"
    assert files.asked == ["/a.js", "/b.js", "/b.js"]


def test_a_client_that_does_not_read_holds_little_in_memory() -> None:
    """A cached answer is sent in parts, each after the one before; an empty answer is one part."""
    sizes: list[tuple[int, bool]] = []

    async def ask(body: bytes) -> None:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            del scope, receive
            headers = [(b"cache-control", FOR_EVER.encode()), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                sizes.append((len(message["body"]), message.get("more_body", False)))

        scope = {"type": "http", "method": "GET", "path": "/a.js", "query_string": b"", "headers": []}
        await StaticCacheMiddleware(answer)(scope, receive, send)

    asyncio.run(ask(b"x" * (2 * CHUNK_BYTES + 1)))
    assert sizes == [(CHUNK_BYTES, True), (CHUNK_BYTES, True), (1, False)]
    sizes.clear()
    asyncio.run(ask(b""))
    assert sizes == [(0, False)]


def test_one_answer_at_a_time_is_gathered() -> None:
    """One answer is gathered at a time; other requests for it go to the app, and leave nothing in memory."""
    files, begun, gate = Files(), asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if not files.asked:
            files.asked.append("first")
            begun.set()
            await gate.wait()
        await files(scope, receive, send)

    async def ask() -> list[str]:
        app = StaticCacheMiddleware(slow)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            first = asyncio.create_task(client.get("/a.js"))
            await begun.wait()
            second = await client.get("/a.js")
            assert files.asked == ["first", "/a.js"]
            gate.set()
            return [(await first).text, second.text, (await client.get("/a.js")).text]

    assert asyncio.run(ask()) == ["half and half"] * 3
    assert files.asked == ["first", "/a.js", "/a.js"]
