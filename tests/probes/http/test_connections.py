"""Tests of connections: none is kept for a client that does not read, and no address has more than its share."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from probes.http import serve
from probes.http.connections import Connections, network
from probes.http.limits import Receive, Scope, Send
from probes.http.serve import Listening

PATIENCE_S = 60


class Listener:
    """A port, and connections to it with both of their ends."""

    def __init__(self) -> None:
        """Listen on a free one."""
        self._open = ExitStack()
        self._socket = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = self._socket.getsockname()[1]

    def connected(self) -> tuple[socket.socket, socket.socket]:
        """Return the server's end of a new connection, and the client's, which reads little at a time."""
        client = self._open.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
        client.connect(("127.0.0.1", self.port))
        client.settimeout(PATIENCE_S)
        ours = self._open.enter_context(self._socket.accept()[0])
        ours.settimeout(PATIENCE_S)
        return ours, client

    def close(self) -> None:
        """Close everything."""
        self._open.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Yield a port that is listened on."""
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def other() -> Iterator[Listener]:
    """Yield another one."""
    listener = Listener()
    yield listener
    listener.close()


def is_open(ends: tuple[socket.socket, socket.socket]) -> bool:
    """Return whether what is written to a connection arrives."""
    try:
        ends[0].sendall(b"x")
        return ends[1].recv(1) == b"x"
    except OSError:
        return False


def test_the_newest_of_an_address_that_has_too_many_are_ended(listener: Listener, other: Listener) -> None:
    """Those that were there before go on, and so do connections to other ports."""
    connections = Connections(listener.port, most_per_address=3)
    first = [listener.connected() for _ in range(2)]
    elsewhere = [other.connected() for _ in range(5)]
    assert connections.look() == 0
    more = [listener.connected() for _ in range(3)]
    assert connections.look() == 2
    assert [is_open(ends) for ends in first] == [True] * 2
    assert sorted(is_open(ends) for ends in more) == [False, False, True]
    assert [is_open(ends) for ends in elsewhere] == [True] * 5


def test_a_place_that_was_left_is_another_s(listener: Listener) -> None:
    """Also where the new connection has the old one's descriptor."""
    connections = Connections(listener.port, most_per_address=1)
    for _ in range(3):
        ends = listener.connected()
        assert connections.look() == 0
        assert is_open(ends)
        for end in ends:
            end.close()


def test_a_client_that_does_not_read_is_let_go(listener: Listener) -> None:
    """What was written and waits to be read for too long ends the connection; until then it is whole."""
    ours, client = listener.connected()
    Connections(listener.port, write_s=0.5).look()
    with pytest.raises(TimeoutError, match="Connection timed out"):
        ours.sendall(bytes(64 * 1024 * 1024))
    assert client.recv(1) == b"\x00"


def test_all_are_ended_at_the_end(listener: Listener, other: Listener) -> None:
    """Whether they were looked at before or not; those to other ports go on."""
    connections = Connections(listener.port)
    known = listener.connected()
    connections.look()
    new, elsewhere = listener.connected(), other.connected()
    connections.end_all()
    assert [is_open(known), is_open(new), is_open(elsewhere)] == [False, False, True]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_one_host_is_one_client(address: str, expected: str) -> None:
    """An address of IPv4, however it is written; of IPv6 the network that a host has addresses of as it likes."""
    assert network(address) == expected


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with more than a connection holds."""
    if scope["type"] == "lifespan":
        return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(16 * 1024 * 1024)})


def test_a_client_that_does_not_read_keeps_no_server_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for answers for a while only, here for none."""
    monkeypatch.setattr(serve, "STOP_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ready, stop = Event(), Event()
    serving = Thread(target=serve.serve, args=(large, Listening("127.0.0.1", port), stop, ready.set), daemon=True)
    serving.start()
    assert ready.wait(PATIENCE_S)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
        client.settimeout(PATIENCE_S)
        while client.connect_ex(("127.0.0.1", port)):
            assert serving.is_alive()
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.recv(5) == b"HTTP/"
        stop.set()
        serving.join(PATIENCE_S)
        assert not serving.is_alive()
