"""Tests of which web pages may open the dashboard's WebSocket, and that nobody is asked to find out."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send
from streamlit import net_util
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed
from structlog.testing import capture_logs

from hopwatch.dashboards.origins import MAX_WARNED, OriginMiddleware

HOST: Final = "127.0.0.1:8501"
PUBLIC: Final = "https://hopwatch.example"


@dataclass
class Inner:
    """An app that notes what comes through."""

    scopes: list[Scope] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note it."""
        del receive, send
        self.scopes.append(scope)


def knock(app: OriginMiddleware, *headers: tuple[str, str], kind: str = "websocket") -> list[Message]:
    """Send a request with these headers, and return what the app answers by itself."""
    answers: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        answers.append(message)

    scope: dict[str, Any] = {
        "type": kind,
        "headers": [(key.encode(), value.encode("latin-1")) for key, value in headers],
    }
    asyncio.run(app(scope, receive, send))
    return answers


def is_let_in(origin: str | None, host: str | None = HOST, *urls: str) -> bool:
    """Return whether a page of an origin comes through at a host; else it is closed as against the policy."""
    inner = Inner()
    told = [(key, value) for key, value in (("host", host), ("origin", origin)) if value is not None]
    with capture_logs():
        answers = knock(OriginMiddleware(inner, urls), *told)
    assert len(inner.scopes) + len(answers) == 1
    assert not answers or (answers[0]["type"], answers[0]["code"]) == ("websocket.close", 1008)
    return bool(inner.scopes)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8501", "127.0.0.1:8501"),
        ("http://localhost:8501", "localhost:8501"),
        ("http://LOCALHOST:8501", "localhost:8501"),
        ("http://localhost:9000", "localhost:9000"),
        ("http://[::1]:8501", "[::1]:8501"),
        ("http://192.0.2.7", "192.0.2.7"),
        ("https://192.0.2.7", "192.0.2.7:443"),
        (f"http://{socket.gethostname()}:8501", f"{socket.gethostname()}:8501"),
        (None, "127.0.0.1:8501"),
        (None, "foreign.example"),
    ],
)
def test_its_own_pages_open_it(origin: str | None, host: str) -> None:
    """At an address, localhost or the machine's name, however a port is led there; and what is no browser."""
    assert is_let_in(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://foreign.example", HOST),
        ("http://localhost:9999", "localhost:8501"),
        ("http://localhost", "localhost:8501"),
        ("http://127.0.0.1:8501", "localhost:8501"),
        ("http://rebound.example:8501", "rebound.example:8501"),
        ("http://127.0.0.1.foreign.example:8501", "127.0.0.1.foreign.example:8501"),
        ("null", HOST),
        ("", HOST),
        ("http://127.0.0.1:8501", None),
        ("http://127.0.0.1:99999", HOST),
        ("http://me@127.0.0.1:8501", HOST),
        ("file://127.0.0.1:8501", HOST),
        ("http://127.0.0.1:8501", "\xff"),
        ("http://\xff", HOST),
        ("http://[", "["),
    ],
)
def test_pages_of_others_do_not(origin: str, host: str | None) -> None:
    """Those of other ports of this machine, and of names that somebody leads to it, among them."""
    assert not is_let_in(origin, host)


@given(st.text(st.characters(max_codepoint=255), max_size=40), st.text(st.characters(max_codepoint=255), max_size=40))
def test_nothing_that_anybody_says_is_a_fault(origin: str, host: str) -> None:
    """Any pair of headers gives yes or no, and no error."""
    assert is_let_in(origin, host) in {True, False}


@pytest.mark.parametrize("url", [PUBLIC, PUBLIC + "/", "https://HOPWATCH.example:443/below?stream=orders"])
@pytest.mark.parametrize("host", ["hopwatch.example", "127.0.0.1:8501", None])
def test_where_people_open_it_may_be_named(url: str, host: str | None) -> None:
    """A configured origin is let in by its scheme, host and port, whatever host a proxy passes on."""
    assert is_let_in(PUBLIC, host, url)
    assert not is_let_in("http://hopwatch.example", host, url)
    assert not is_let_in("https://hopwatch.example:8443", host, url)
    assert not is_let_in("https://sub.hopwatch.example", host, url)


def test_two_origins_are_none() -> None:
    """Nobody knows which of them is the page's."""
    inner = Inner()
    with capture_logs():
        assert knock(OriginMiddleware(inner, [PUBLIC]), ("host", HOST), ("origin", PUBLIC), ("origin", PUBLIC))
    assert not inner.scopes


def test_what_is_no_websocket_goes_through() -> None:
    """Files and health are for everybody; nothing of the store is among them."""
    inner = Inner()
    assert not knock(OriginMiddleware(inner, ()), ("host", HOST), ("origin", "https://foreign.example"), kind="http")
    assert len(inner.scopes) == 1


@pytest.mark.parametrize(
    ("origin", "host"), [(PUBLIC, HOST), (PUBLIC, None), ("http://localhost:8501", "localhost:8501")]
)
def test_streamlit_asks_nobody_of_whom_we_let_in(
    origin: str, host: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For it each is a page of the same origin; for others it looks for its own addresses over the network."""

    def asked(*_: object) -> None:
        pytest.fail("Streamlit looks for an address of this machine")

    monkeypatch.setattr(net_util, "get_internal_ip", asked)
    monkeypatch.setattr(net_util, "get_external_ip", asked)
    inner = Inner()
    knock(
        OriginMiddleware(inner, [PUBLIC]),
        *([] if host is None else [("host", host)]),
        ("origin", origin),
        ("cookie", "a=b"),
    )
    headers = {key.decode(): value.decode() for key, value in inner.scopes[0]["headers"]}
    assert (headers["origin"], headers["cookie"]) == (origin, "a=b")
    assert _is_origin_allowed(headers["origin"], headers["host"])


def test_who_is_refused_is_told_once_with_what_to_do() -> None:
    """And of a flood of made up ones a few."""
    app = OriginMiddleware(Inner(), ())
    with capture_logs() as logs:
        for turn in range(2 * MAX_WARNED):
            for _ in range(2):
                knock(app, ("host", HOST), ("origin", f"https://{turn}.{'x' * 200}.example"))
    assert len(logs) == MAX_WARNED
    assert logs[0]["event"] == "a page of another origin was refused"
    assert logs[0]["origin"].startswith("https://0.xxx")
    assert len(logs[0]["origin"]) == 100
    assert logs[0]["advice"] == "if people open the dashboard there, add it to [dashboard] origins"
