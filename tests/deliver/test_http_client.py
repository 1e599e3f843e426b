"""Tests of the HTTP client against receivers on real sockets, good and hostile."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from hopwatch.deliver import http_client
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.deliver.http_client import HttpReceiver
from tests.support import http_receiver
from tests.support.http_receiver import Behaviour, receiving

TIMEOUT_S = 0.5


def post(
    url: str, body: bytes = b"{}", timeout_s: float = TIMEOUT_S, context: ssl.SSLContext | None = None, times: int = 1
) -> list[Answer | NoAnswer]:
    """Post some times, one after the other."""

    async def run() -> list[Answer | NoAnswer]:
        async with HttpReceiver(url, timeout_s, 4, context) as receiver:
            return [await receiver.post(body, {"Content-Type": "application/json"}) for _ in range(times)]

    return asyncio.run(run())


def post_to(*behaviours: Behaviour) -> Answer | NoAnswer:
    """Post once to a receiver that behaves so."""
    with receiving(*behaviours) as receiver:
        (answer,) = post(receiver.url())
    return answer


def test_an_answer_is_returned() -> None:
    """Status, body and Retry-After come as they were sent, and the body goes as it is."""
    with receiving(http_receiver.answers(429, b"slow down", Retry_After="7")) as receiver:
        assert post(receiver.url("/hook?a=1"), b"[1]") == [Answer(429, b"slow down", "7")]
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/hook?a=1", b"[1]")
    assert request.headers["user-agent"].startswith("hopwatch/")
    assert request.headers["content-type"] == "application/json"


def test_a_connection_is_kept() -> None:
    """Requests that follow each other go over one connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def run() -> list[Answer | NoAnswer]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with HttpReceiver(f"http://127.0.0.1:{port}/", TIMEOUT_S, 4) as receiver:
                return [await receiver.post(b"{}", {}) for _ in range(5)]

    connections: list[asyncio.StreamWriter] = []
    assert asyncio.run(run()) == [Answer(200, b"ok")] * 5
    assert len(connections) == 1


@pytest.mark.parametrize("status", [200, 408], ids=["an answer too many", "a proxy that closes an idle connection"])
def test_what_came_before_a_request_is_no_answer_to_it(status: int) -> None:
    """A connection on which something came while it was idle is closed, and the request goes over another one."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 201 First\r\nContent-Length: 0\r\n\r\n")
        await idle.wait()
        writer.write(b"HTTP/1.1 %d Unasked\r\nContent-Length: 0\r\n\r\n" % status)
        await writer.drain()
        said.set()

    async def run() -> list[Answer | NoAnswer]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with HttpReceiver(f"http://127.0.0.1:{port}/", TIMEOUT_S, 4) as receiver:
                first = await receiver.post(b"{}", {})
                idle.set()
                await said.wait()
                await asyncio.sleep(0.05)  # for the bytes to arrive: nothing tells of it
                idle.clear()
                return [first, await receiver.post(b"{}", {})]

    idle, said = asyncio.Event(), asyncio.Event()
    connections: list[asyncio.StreamWriter] = []
    assert asyncio.run(run()) == [Answer(201), Answer(201)]
    assert len(connections) == 2


@pytest.mark.parametrize(
    "behaviour", [http_receiver.hangs, http_receiver.trickles], ids=["says nothing", "says a byte now and then"]
)
def test_a_receiver_that_hangs_is_left(behaviour: Behaviour) -> None:
    """There is one deadline for the whole request."""
    assert post_to(behaviour) == NoAnswer(AttemptResult.TIMEOUT, "no answer within 0.5 s")


def test_an_endless_answer_is_cut() -> None:
    """Its status counts, and no more of it is read than the bound."""
    answer = post_to(http_receiver.floods)
    assert isinstance(answer, Answer)
    assert (answer.status, len(answer.body)) == (200, http_client.MAX_ANSWER_BYTES)


def test_a_connection_that_breaks_is_no_answer() -> None:
    """A close without an answer may pass."""
    answer = post_to(http_receiver.closes)
    assert isinstance(answer, NoAnswer)
    assert answer.result is AttemptResult.BROKEN
    assert answer.reason.startswith("the connection broke: ")


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"\0" * 64,
    ],
    ids=["ssh", "a long header", "a status in words", "zeros"],
)
def test_what_is_no_http_is_no_answer(said: bytes) -> None:
    """Rubbish may pass, and its reason is one short line."""
    answer = post_to(lambda sock, _: sock.sendall(said))
    assert isinstance(answer, NoAnswer)
    assert answer.result is AttemptResult.BROKEN
    assert answer.reason.isprintable()
    assert len(answer.reason) <= http_client.MAX_REASON_CHARS


def test_a_body_that_breaks_leaves_the_status() -> None:
    """A 200 is a 200, though its body ends early."""
    answer = post_to(lambda sock, _: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nbeg"))
    assert isinstance(answer, Answer)
    assert answer.status == 200


def test_a_multi_status_that_breaks_is_no_answer() -> None:
    """Without its whole body nobody knows the statuses."""
    answer = post_to(lambda sock, _: sock.sendall(b'HTTP/1.1 207 X\r\nContent-Length: 99\r\n\r\n{"eve'))
    assert isinstance(answer, NoAnswer)
    assert answer.result is AttemptResult.BROKEN


def test_a_redirect_is_not_followed() -> None:
    """The client returns a redirect as the answer, and asks nothing of the place that it names."""
    with receiving(http_receiver.answers(200)) as other:
        with receiving(http_receiver.answers(307, Location=other.url())) as receiver:
            (answer,) = post(receiver.url())
        assert isinstance(answer, Answer)
        assert answer.status == 307
        assert other.connections == 0


def test_a_closed_port_is_unreachable() -> None:
    """Nobody listens."""
    with receiving(http_receiver.answers(200)) as receiver:
        url = receiver.url()
    assert post(url) == [NoAnswer(AttemptResult.UNREACHABLE, "no connection: Connection refused")]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("169.254.169.254", "the receiver is 169.254.169.254, link-local, where clouds keep credentials"),
        ("100.100.100.200", "a cloud's metadata service"),
        ("[fe80::1]", "link-local"),
        ("[::ffff:169.254.169.254]", "link-local"),
        ("0.0.0.0", "no machine"),  # noqa: S104 - nothing is bound
    ],
)
def test_a_refused_address_is_not_connected_to(host: str, reason: str) -> None:
    """Addresses of metadata services are refused in each way of writing them, before a socket is made."""
    (answer,) = post(f"http://{host}/")
    assert isinstance(answer, NoAnswer)
    assert answer.result is AttemptResult.UNREACHABLE
    assert reason in answer.reason
    assert answer.reason.endswith("nothing is sent there")


@pytest.mark.parametrize("host", ["2852039166", "169.254.43518"])
def test_a_number_is_no_host(host: str) -> None:
    """An IPv4 address that is not written as four numbers is no URL for the client."""
    (answer,) = post(f"http://{host}/")
    told = f"the URL is none: {host} - is not a canonical IPv4 address"
    assert answer == NoAnswer(AttemptResult.UNREACHABLE, told)


def test_a_name_of_a_refused_address_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that a name resolves to is checked too."""
    resolved = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolved)
    (answer,) = post("http://metadata.example/")
    assert isinstance(answer, NoAnswer)
    assert answer.result is AttemptResult.UNREACHABLE
    assert "169.254.169.254, link-local" in answer.reason


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    """One that nobody signed is no connection; with its authority it is."""
    file = http_receiver.certificate(tmp_path)
    with receiving(http_receiver.answers(200), context=http_receiver.server_tls(file)) as receiver:
        (refused,) = post(receiver.url(), timeout_s=5)
        (taken,) = post(receiver.url(), timeout_s=5, context=http_client.create_tls_context(str(file)))
    assert isinstance(refused, NoAnswer)
    assert refused.result is AttemptResult.UNREACHABLE
    assert "certificate" in refused.reason.lower()
    assert isinstance(taken, Answer)
    assert taken.status == 200


def test_a_client_shows_its_certificate(tmp_path: Path) -> None:
    """A receiver that asks for one takes the request with it alone."""
    file = http_receiver.certificate(tmp_path)
    server = http_receiver.server_tls(file)
    server.load_verify_locations(file)
    server.verify_mode = ssl.CERT_REQUIRED
    with receiving(http_receiver.answers(200), context=server) as receiver:
        (without,) = post(receiver.url(), timeout_s=5, context=http_client.create_tls_context(str(file)))
        shown = http_client.create_tls_context(str(file), str(file))
        (with_one,) = post(receiver.url(), timeout_s=5, context=shown)
    assert isinstance(without, NoAnswer)
    assert isinstance(with_one, Answer)


def test_a_receiver_is_opened_first() -> None:
    """A post before it says what to do."""
    with pytest.raises(RuntimeError, match="enter it with 'async with' first"):
        asyncio.run(HttpReceiver("http://127.0.0.1/", 1, 1).post(b"", {}))
