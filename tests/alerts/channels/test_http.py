"""Tests of posting: what each kind of receiver comes to, for how long it holds us, and where nothing is sent."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.http import MAX_READ_BYTES, Poster
from tests.support.http_receiver import (
    Behaviour,
    Receiver,
    answers,
    certificate,
    closes,
    hangs,
    receiving,
    server_tls,
    trickles,
)

SHORT_S: Final = 0.3
LONG_S: Final = 20.0
SECRET: Final = "T0P-5ecret/with%20blank"  # noqa: S105 - of nothing


def post(receiver: Receiver, poster: Poster | None = None) -> Outcome:
    """Post something to a receiver."""
    return (poster or Poster(LONG_S)).post(receiver.url("/hook"), b"{}", {"Content-Type": "application/json"}, 0)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (answers(200, b"ok"), Accepted()),
        (answers(202), Accepted()),
        (answers(500, b"oh"), Failure("{} answered 500: oh")),
        (answers(429, b"", Retry_After="7"), Failure("{} answered 429", wait_s=7.0)),
        (answers(400, b"no\nsuch\x00key"), Failure("{} answered 400: no such key", is_for_good=True)),
        (
            answers(301, b"", Location="http://127.0.0.1:1/"),
            Failure("{} answered 301; redirects are not followed: name the URL that it leads to"),
        ),
    ],
)
def test_an_answer_is_told_with_whose_it_is(behaviour: Behaviour, expected: Outcome) -> None:
    """An error names the host of the URL alone, as its path may be a secret."""
    with receiving(behaviour) as receiver:
        place = receiver.url("")
        if isinstance(expected, Failure):
            expected = Failure(expected.why.format(place), expected.is_for_good, expected.wait_s)
        assert post(receiver) == expected
    (request,) = receiver.requests
    assert (request.path, request.body, request.headers["content-type"]) == ("/hook", b"{}", "application/json")
    assert receiver.connections == 1


@pytest.mark.parametrize("behaviour", [hangs, trickles])
def test_a_receiver_that_takes_its_time_does_not_take_ours(behaviour: Behaviour) -> None:
    """One deadline is for all of a post, however short each wait in it is."""
    with receiving(behaviour) as receiver:
        assert post(receiver, Poster(SHORT_S)) == Failure(f"{receiver.url('')} did not answer within 0.3 s")


def test_a_body_that_trickles_is_not_waited_for() -> None:
    """Its status has been said, and that is what counts."""

    def behave(sock: socket.socket, over: Any) -> None:  # noqa: ANN401 - an event
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        hangs(sock, over)

    with receiving(behave) as receiver:
        assert post(receiver, Poster(SHORT_S)) == Accepted()


def test_a_receiver_that_does_not_read_is_not_waited_for() -> None:
    """A body that is larger than all buffers is given up at the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(listening.getsockname()[1])
        answer = Poster(SHORT_S).post(receiver.url(), b"x" * 50_000_000, {}, 0)
    assert answer == Failure(f"{receiver.url('')} did not answer within 0.3 s")


def test_connections_that_break_are_failures_that_pass() -> None:
    """A receiver that closes, and one that is not there."""
    with receiving(closes) as receiver:
        broken = post(receiver)
    away = post(receiver)
    assert broken == Failure(f"{receiver.url('')} cannot be reached: Server disconnected without sending a response.")
    assert away == Failure(f"{receiver.url('')} cannot be reached: [Errno 111] Connection refused")


def test_an_answer_that_is_none_is_a_failure_that_passes() -> None:
    """A receiver that speaks no HTTP is a temporary failure."""
    with receiving(lambda sock, _: sock.sendall(b"220 mail.example ESMTP\r\n\r\n")) as receiver:
        answer = post(receiver)
    assert isinstance(answer, Failure)
    assert "cannot be reached: illegal status line" in answer.why
    assert not answer.is_for_good


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    """One that signs itself is refused before anything is sent, and taken when its file is named."""
    file = certificate(tmp_path)
    with receiving(answers(200), context=server_tls(file)) as receiver:
        refused = post(receiver)
        assert receiver.requests == []
        assert post(receiver, Poster(LONG_S, str(file))) == Accepted()
    assert isinstance(refused, Failure)
    assert "certificate verify failed: self-signed certificate" in refused.why


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor anything else of it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with receiving(answers(200)) as receiver:
        assert post(receiver) == Accepted()


@pytest.mark.parametrize(
    ("host", "is_at", "why"),
    [
        ("169.254.169.254", "169.254.169.254", "link-local, where clouds keep credentials"),
        ("[fe80::1]", "fe80::1", "link-local, where clouds keep credentials"),
        ("[64:ff9b:1::a9fe:a9fe]", "64:ff9b:1::a9fe:a9fe", "link-local, where clouds keep credentials"),
        ("[::ffff:0:a9fe:a9fe]", "::ffff:0:a9fe:a9fe", "link-local, where clouds keep credentials"),
        ("[::a9fe:a9fe]", "::169.254.169.254", "link-local, where clouds keep credentials"),
        ("[fd00:ec2::254]", "fd00:ec2::254", "a cloud's metadata service"),
        ("0.0.0.0", "0.0.0.0", "no machine"),  # noqa: S104 - nothing is bound
        ("[::]", "::", "no machine"),
        ("[::ffff:169.254.169.254]", "::ffff:169.254.169.254", "link-local, where clouds keep credentials"),
        ("224.0.0.1", "224.0.0.1", "many machines at once"),
        ("2852039166", "169.254.169.254", "link-local, where clouds keep credentials"),
        ("0xa9.0xfe.0251.0376", "169.254.169.254", "link-local, where clouds keep credentials"),
    ],
)
def test_nothing_is_sent_where_nobody_receives_alerts(host: str, is_at: str, why: str) -> None:
    """A refused address is refused in every notation."""
    answer = Poster(SHORT_S).post(f"http://{host}/", b"", {}, 0)
    name = host.strip("[]")
    assert answer == Failure(f"http://{host} cannot be reached: {name} is {is_at}, {why}: nothing is sent there")


def test_a_name_that_changes_its_mind_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is resolved once, and the checked address is the one that is connected to."""
    asked: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    with receiving(answers(200)) as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        url = f"http://rebinding.example:{receiver.port}/"
        first, second = (Poster(LONG_S).post(url, b"", {}, 0) for _ in range(2))
    assert (first, receiver.connections, asked) == (Accepted(), 1, ["rebinding.example"] * 2)
    assert isinstance(second, Failure)
    assert "rebinding.example is 169.254.169.254, link-local" in second.why


def test_of_several_addresses_one_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are refused are left out, those that do not answer passed over."""
    with receiving(answers(200)) as receiver, socket.create_server(("127.0.0.1", 0)) as held:
        places = [("169.254.1.1", 80), held.getsockname(), ("127.0.0.1", receiver.port)]
        held.close()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert Poster(LONG_S).post(f"http://many.example:{receiver.port}/", b"", {}, 0) == Accepted()


def test_a_name_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is one whose resolver does not answer in time."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    told = "http://nowhere.example cannot be reached: the name nowhere.example"
    assert Poster(LONG_S).post("http://nowhere.example/", b"", {}, 0) == Failure(
        f"{told} cannot be resolved: Name or service not known"
    )
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait() and [])
    slow = Poster(0.05).post("http://nowhere.example/", b"", {}, 0)
    over.set()
    assert slow == Failure(f"{told} is not resolved in time")


@pytest.mark.parametrize("junk", [b"", b"x" * MAX_READ_BYTES, (SECRET + " ").encode() * 1_000])
def test_a_receiver_that_repeats_a_secret_is_not_quoted(junk: bytes) -> None:
    """Neither the secret as it stands, nor as a URL or JSON writes it, nor the half of it that was read last."""
    body = b" ".join([SECRET.encode(), b"T0P-5ecret/with blank", b"T0P-5ecret\\/with%20blank", junk])
    with receiving(answers(400, body)) as receiver:
        answer = post(receiver, Poster(LONG_S, secrets=[SECRET]))
    assert isinstance(answer, Failure)
    assert answer.why.startswith(f"{receiver.url('')} answered 400: *** *** ***")
    assert "T0P" not in answer.why
    assert len(answer.why) < 300
