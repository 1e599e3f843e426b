"""Tests of the bounds on connections: of one address, and of who does not read."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Iterator

import pytest

from probes.http.connections import Connections

PATIENCE_S = 60.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Return a socket that listens, at all addresses of this machine."""
    with socket.create_server(("0.0.0.0", 0)) as made:  # noqa: S104 - to be reached from two addresses
        yield made


def connected(server: socket.socket, address: str) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection from an address of this machine."""
    client = socket.create_connection(("127.0.0.1", server.getsockname()[1]), PATIENCE_S, (address, 0))
    return client, server.accept()[0]


def is_open(client: socket.socket) -> bool:
    """Return whether nothing was said and the other end is not closed."""
    return not select.select([client], [], [], 0)[0]


def test_an_address_has_so_many_connections_and_takes_none_of_others(server: socket.socket) -> None:
    """The latest are ended, those before stay, and so do those of other servers."""
    other = socket.create_server(("127.0.0.1", 0))
    connections = Connections({server.getsockname()[1]}, most=2)
    first = [connected(server, "127.0.0.1") for _ in range(2)]
    connections.look()
    late = [connected(server, "127.0.0.1") for _ in range(3)]
    beside = [connected(server, "127.0.0.2"), connected(other, "127.0.0.1"), connected(other, "127.0.0.1")]
    for _ in range(2):
        connections.look()
    assert [is_open(client) for client, _ in (*first, *late, *beside)] == [True] * 2 + [False] * 3 + [True] * 3
    first[0][0].close()
    first[0][1].close()
    for _, end in late:
        end.close()
    again = connected(server, "127.0.0.1")
    connections.look()
    assert is_open(again[0])
    for one in (*first, *late, *beside, again):
        for end in one:
            end.close()
    other.close()


def test_looking_leaves_nothing_open(server: socket.socket) -> None:
    """However often: the handles that it looks with are closed."""
    connections = Connections({server.getsockname()[1]}, most=1)
    pairs = [connected(server, "127.0.0.1") for _ in range(2)]
    for _ in range(3):
        connections.look()
    before = max(end.fileno() for pair in pairs for end in pair)
    for _ in range(300):
        connections.look()
    with socket.socket() as probe:
        assert probe.fileno() <= before + 1
    for pair in pairs:
        for end in pair:
            end.close()


def send_on(end: socket.socket) -> None:
    """Send until that cannot be."""
    while True:
        end.sendall(bytes(1 << 20))


def test_who_does_not_read_is_cut(server: socket.socket) -> None:
    """What was sent waits so long in full buffers; who reads, and who asks for nothing, is not touched."""
    connections = Connections({server.getsockname()[1]}, unread_s=0.5)
    (silent, unread), (reader, read) = connected(server, "127.0.0.1"), connected(server, "127.0.0.1")
    unread.settimeout(PATIENCE_S)
    with connections.looked_after(), pytest.raises(OSError, match="timed out") as caught:
        send_on(unread)
    assert caught.value.errno == errno.ETIMEDOUT  # the kernel's; ours would have none
    read.sendall(b"x")
    assert reader.recv(1) == b"x"
    for end in (silent, unread, reader, read):
        end.close()
