"""Tests of the connection to the gate, against receivers that behave badly."""

from __future__ import annotations

import re
import select
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from hopwatch.client import gate_connection
from hopwatch.client.gate_connection import GateConnection
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from servers.process import free_ports
from tests.support import http_receiver
from tests.support.http_receiver import answers, receiving

BODY = b'[{"id":"x"}]'


def test_a_batch_is_posted_to_the_stream() -> None:
    """The request has path, token and body; of the answer come status, body and Retry-After."""
    with receiving(answers(503, b"busy", Retry_After="7")) as receiver:
        connection = GateConnection(receiver.url("/behind/"), "orders", "secret", 20.0)
        assert connection.post(BODY) == Answer(503, b"busy", "7")
        connection.close()
    (request,) = receiver.requests
    assert request.path == "/behind/streams/orders/events?each=true"
    assert request.body == BODY
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["content-type"] == "application/json"


def test_a_connection_that_was_closed_is_made_anew() -> None:
    """A request that breaks is told so, and the next one has a new connection."""
    with receiving(http_receiver.closes, answers(207)) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 20.0)
        broken = connection.post(BODY)
        assert isinstance(broken, NoAnswer)
        assert (broken.result, broken.reason.partition(":")[0]) == (AttemptResult.BROKEN, "the connection broke")
        assert connection.post(BODY) == Answer(207)
        connection.close()


def test_a_connection_is_kept_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests use one connection; an idle one is closed before a server may do it."""

    def answer_twice(sock: socket.socket, over: threading.Event) -> None:
        answers(207)(sock, over)
        http_receiver._read(sock)
        answers(207, b"again")(sock, over)
        over.wait()

    with receiving(answer_twice, answers(207, b"new")) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 20.0)
        assert [connection.post(BODY) for _ in range(2)] == [Answer(207), Answer(207, b"again")]
        assert receiver.connections == 1
        monkeypatch.setattr(gate_connection, "MAX_IDLE_S", 0.0)
        assert connection.post(BODY) == Answer(207, b"new")
        connection.close()


UNASKED = b"HTTP/1.1 %d Unasked\r\nContent-Length: 0\r\n\r\n"


def _await_bytes(connection: GateConnection) -> None:
    """Wait until something has come."""
    kept = cast("Any", connection._connection.sock)
    polled = select.poll()
    polled.register(kept._inner.fileno(), select.POLLIN)
    assert polled.poll(20_000)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize(
    "unasked",
    [UNASKED % 207, UNASKED % 408, b"", b"x"],
    ids=["an answer too many", "a proxy that closes an idle connection", "the end", "half an answer"],
)
def test_what_came_before_a_request_is_no_answer_to_it(tmp_path: Path, unasked: bytes, *, is_tls: bool) -> None:
    """A connection on which something came while it was idle is closed; the request goes over another one, once."""
    idle = threading.Event()

    def answer_unasked(sock: socket.socket, over: threading.Event) -> None:
        answers(207, b"first")(sock, over)
        idle.wait(20)
        sock.sendall(unasked)
        if unasked:
            http_receiver._read(sock)

    file = http_receiver.certificate(tmp_path) if is_tls else None
    server = http_receiver.server_tls(file) if file else None
    trusted = ssl.create_default_context(cafile=str(file)) if file else None
    with receiving(answer_unasked, answers(207, b"second"), context=server) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 20.0, trusted)
        assert connection.post(BODY) == Answer(207, b"first")
        idle.set()
        _await_bytes(connection)
        assert connection.post(BODY) == Answer(207, b"second")
        connection.close()
    assert (receiver.connections, len(receiver.requests)) == (2, 2)


def test_an_encrypted_connection_is_kept(tmp_path: Path) -> None:
    """Session tickets, which come unasked before the first answer, close nothing."""
    file = http_receiver.certificate(tmp_path)

    def answer_twice(sock: socket.socket, over: threading.Event) -> None:
        answers(207)(sock, over)
        http_receiver._read(sock)
        answers(207, b"again")(sock, over)
        over.wait()

    with receiving(answer_twice, context=http_receiver.server_tls(file)) as receiver:
        trusted = ssl.create_default_context(cafile=str(file))
        connection = GateConnection(receiver.url(), "orders", "", 20.0, trusted)
        assert [connection.post(BODY) for _ in range(2)] == [Answer(207), Answer(207, b"again")]
        assert receiver.connections == 1
        connection.close()


def test_what_is_deciphered_already_is_no_answer_either(tmp_path: Path) -> None:
    """Behind an answer another one may have come in the same record of TLS."""
    file = http_receiver.certificate(tmp_path)
    stray = b"HTTP/1.1 207 Unasked\r\nContent-Length: 12000\r\n\r\n" + bytes(12_000)

    def answer_twice(sock: socket.socket, over: threading.Event) -> None:
        sock.sendall(b"HTTP/1.1 207 First\r\nContent-Length: 5\r\n\r\nfirst" + stray)
        over.wait()

    with receiving(answer_twice, answers(207, b"second"), context=http_receiver.server_tls(file)) as receiver:
        trusted = ssl.create_default_context(cafile=str(file))
        connection = GateConnection(receiver.url(), "orders", "", 20.0, trusted)
        assert connection.post(BODY) == Answer(207, b"first")
        assert connection.post(BODY) == Answer(207, b"second")
        connection.close()


@pytest.mark.parametrize("behave", [http_receiver.hangs, http_receiver.trickles])
def test_a_request_has_one_deadline(behave: http_receiver.Behaviour) -> None:
    """A gate that says nothing, or a byte at a time, holds the client no longer than its timeout."""
    with receiving(behave) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 0.2)
        began_s = time.monotonic()
        assert connection.post(BODY) == NoAnswer(AttemptResult.TIMEOUT, "no answer within 0.2 s")
        assert time.monotonic() - began_s < 5
        connection.close()


def test_an_answer_without_end_is_none() -> None:
    """Memory is bounded, however much is answered."""
    with receiving(http_receiver.floods) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 20.0)
        assert connection.post(BODY) == NoAnswer(AttemptResult.BROKEN, "an answer of more than 16,777,216 bytes")
        connection.close()


def test_a_gate_that_is_not_there_is_told() -> None:
    """A port where nothing listens is no connection."""
    (port,) = free_ports(1)
    connection = GateConnection(f"http://127.0.0.1:{port}", "orders", "", 5.0)
    assert connection.post(BODY) == NoAnswer(AttemptResult.UNREACHABLE, "no connection: Connection refused")
    connection.abort()


def test_a_request_that_is_aborted_ends() -> None:
    """Another thread may break a request, which then ends at once."""
    with receiving(http_receiver.hangs) as receiver:
        connection = GateConnection(receiver.url(), "orders", "", 60.0)
        got: list[Answer | NoAnswer] = []
        thread = threading.Thread(target=lambda: got.append(connection.post(BODY)))
        thread.start()
        while not receiver.requests:
            time.sleep(0.01)
        connection.abort()
        thread.join(10)
        assert not thread.is_alive()
    assert isinstance(got[0], NoAnswer)
    assert got[0].result is AttemptResult.BROKEN


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://gate", "gate", 80),
        ("https://gate/x", "gate", 443),
        ("http://[::1]", "::1", 80),
        ("https://[::1]", "::1", 443),
        ("http://[::1]:8081", "::1", 8081),
    ],
)
def test_a_url_without_a_port_has_that_of_its_scheme(url: str, host: str, port: int) -> None:
    """Of an IPv6 address too."""
    inner = GateConnection(url, "orders", "", 20.0)._connection
    assert (inner.host, inner.port) == (host, port)


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    """An unknown authority is refused, a known one is not."""
    file = http_receiver.certificate(tmp_path)
    with receiving(answers(207), context=http_receiver.server_tls(file)) as receiver:
        refused = GateConnection(receiver.url(), "orders", "", 20.0).post(BODY)
        assert isinstance(refused, NoAnswer)
        assert "certificate verify failed" in refused.reason
        trusting = GateConnection(receiver.url(), "orders", "", 20.0, ssl.create_default_context(cafile=str(file)))
        assert trusting.post(BODY) == Answer(207)
        trusting.close()


@pytest.mark.parametrize(
    ("url", "stream", "token", "told"),
    [
        ("gate:8081", "orders", "", "the URL of a gate is http://HOST:PORT or https://HOST:PORT, got 'gate:8081'"),
        ("http://", "orders", "", "the URL of a gate is http://HOST:PORT or https://HOST:PORT, got 'http:"),
        ("http://me:secret@gate", "orders", "", "got 'http://gate'"),
        ("http://gate?a=b", "orders", "", "got 'http://gate?a=b'"),
        ("http://gate", "or/ders", "", "a stream is 1 to 128 of A-Z a-z 0-9 . _ -, got 'or/ders'"),
        ("http://gate", "orders", "a\nb", "a token is 0 to 4,096 visible ASCII characters, got something else"),
    ],
)
def test_a_wrong_argument_is_told_without_its_secrets(url: str, stream: str, token: str, told: str) -> None:
    """The error says what is wrong, and shows neither a password nor a token."""
    with pytest.raises(ValueError, match=re.escape(told)) as caught:
        GateConnection(url, stream, token, 1.0)
    assert "secret" not in str(caught.value)
