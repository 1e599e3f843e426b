"""Tests of the bounds on connections: of one address, and of who does not read."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from unittest.mock import MagicMock

import pytest

from hopwatch.probes.http import connections, granian_server
from hopwatch.probes.http.connections import ConnectionLimiter
from hopwatch.probes.http.granian_server import ServerAddress
from hopwatch.probes.http.limits import Receive, Scope, Send

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
    looked = select.poll()  # which knows descriptors above 1,023, as select() does not
    looked.register(client, select.POLLIN)
    return not looked.poll(0)


def test_an_address_has_so_many_connections_and_takes_none_of_others(server: socket.socket) -> None:
    """The latest are ended, those before stay, and so do those of other servers."""
    other = socket.create_server(("127.0.0.1", 0))
    looked = ConnectionLimiter({server.getsockname()[1]}, most=2)
    first = [connected(server, "127.0.0.1") for _ in range(2)]
    looked.enforce_limits()
    late = [connected(server, "127.0.0.1") for _ in range(3)]
    beside = [connected(server, "127.0.0.2"), connected(other, "127.0.0.1"), connected(other, "127.0.0.1")]
    for _ in range(2):
        looked.enforce_limits()
    assert [is_open(client) for client, _ in (*first, *late, *beside)] == [True] * 2 + [False] * 3 + [True] * 3
    first[0][0].close()
    first[0][1].close()
    for _, end in late:
        end.close()
    again = connected(server, "127.0.0.1")
    looked.enforce_limits()
    assert is_open(again[0])
    for one in (*first, *late, *beside, again):
        for end in one:
            end.close()
    other.close()


def test_looking_leaves_nothing_open(server: socket.socket) -> None:
    """The limiter closes its copies of descriptors, however often it looks."""
    looked = ConnectionLimiter({server.getsockname()[1]}, most=1)
    pairs = [connected(server, "127.0.0.1") for _ in range(2)]
    for _ in range(3):
        looked.enforce_limits()
    before = max(end.fileno() for pair in pairs for end in pair)
    for _ in range(300):
        looked.enforce_limits()
    with socket.socket() as probe:
        # Another thread may have opened a few meanwhile; one that stayed open a look would be 300.
        assert probe.fileno() < before + 100
    for pair in pairs:
        for end in pair:
            end.close()


LOCKING = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_looking_leaves_locks_of_files_as_they_are(server: socket.socket, tmp_path: Path) -> None:
    """A file that this process has locked, as SQLite locks a store, stays locked for other processes."""
    path = tmp_path / "store.db"
    path.touch()
    client, ours = connected(server, "127.0.0.1")
    with path.open("r+b") as file, client, ours:
        fcntl.lockf(file, fcntl.LOCK_EX)
        ConnectionLimiter({server.getsockname()[1]}).enforce_limits()
        other = subprocess.run([sys.executable, "-c", LOCKING, str(path)], check=False, capture_output=True, text=True)
        assert "BlockingIOError" in other.stderr


def test_connections_at_one_port_take_none_of_another(server: socket.socket) -> None:
    """An address that has too many at one port keeps those that it has at the other, such as health checks."""
    with socket.create_server(("127.0.0.1", 0)) as health:
        looked = ConnectionLimiter({server.getsockname()[1], health.getsockname()[1]}, most=1)
        ends = [connected(server, "127.0.0.1"), connected(server, "127.0.0.1"), connected(health, "127.0.0.1")]
        looked.enforce_limits()
        assert [is_open(client) for client, _ in ends] == [True, False, True]
    for pair in ends:
        for end in pair:
            end.close()


def send_on(end: socket.socket) -> None:
    """Send until that cannot be."""
    while True:
        end.sendall(bytes(1 << 20))


def test_who_does_not_read_is_cut(server: socket.socket) -> None:
    """A connection whose client does not read is cut after a while; one that reads, or asks for nothing, is not."""
    looked = ConnectionLimiter({server.getsockname()[1]}, unread_s=0.5)
    (silent, unread), (reader, read) = connected(server, "127.0.0.1"), connected(server, "127.0.0.1")
    unread.settimeout(PATIENCE_S)
    with looked.watch(), pytest.raises(OSError, match="timed out") as caught:
        send_on(unread)
    assert caught.value.errno == errno.ETIMEDOUT  # the kernel's; ours would have none
    read.sendall(b"x")
    assert reader.recv(1) == b"x"
    for end in (silent, unread, reader, read):
        end.close()


def test_looking_without_a_descriptor_left_is_no_fault(server: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free descriptor the limiter does nothing; the next run enforces the limits."""
    client, ours = connected(server, "127.0.0.1")
    with monkeypatch.context() as changed:
        changed.setattr(os, "dup", MagicMock(side_effect=OSError(errno.EMFILE, "Too many open files")))
        ConnectionLimiter({server.getsockname()[1]}, most=0).enforce_limits()
        changed.setattr(connections, "_DESCRIPTORS", Path("/nowhere"))
        ConnectionLimiter({server.getsockname()[1]}, most=0).end_all()
    assert is_open(client)
    ConnectionLimiter({server.getsockname()[1]}, most=0).enforce_limits()
    assert not is_open(client)
    client.close()
    ours.close()


def test_all_are_ended_at_the_end(server: socket.socket) -> None:
    """Those of other servers go on."""
    other = socket.create_server(("127.0.0.1", 0))
    ends = [connected(server, "127.0.0.1"), connected(other, "127.0.0.1")]
    ConnectionLimiter({server.getsockname()[1]}).end_all()
    assert [is_open(client) for client, _ in ends] == [False, True]
    for pair in ends:
        for end in pair:
            end.close()
    other.close()


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with more than a connection holds."""
    if scope["type"] == "lifespan":
        return
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(16 * 1024 * 1024)})


def test_a_client_that_does_not_read_keeps_no_server_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server waits for unread answers for a bounded time only, here for none."""
    monkeypatch.setattr(granian_server, "STOP_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ready, stop = Event(), Event()
    serving = Thread(
        target=granian_server.serve_app, args=(large, ServerAddress("127.0.0.1", port), stop, ready.set), daemon=True
    )
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
