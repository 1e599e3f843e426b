"""Tests of the server: it answers what it should, and no client can use it up."""

from __future__ import annotations

import gzip
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hopwatch.monitor.metrics.exposition import build_registry
from hopwatch.monitor.metrics.snapshot import MetricsSnapshot
from hopwatch.probes.metrics.server import MAX_CONNECTIONS, MAX_PER_ADDRESS, MetricsAddressError, MetricsServer
from tests.support.metrics_page import STORE_SNAPSHOT, make_recorder

OPENMETRICS: Final = {"Accept": "application/openmetrics-text; version=1.0.0; charset=utf-8"}
PATIENCE_S: Final = 120


def known() -> MetricsSnapshot:
    """Return what is known of a stream."""
    of = make_recorder()
    of.read(STORE_SNAPSHOT)
    return of.known()


@contextmanager
def serving(
    what: Callable[[], MetricsSnapshot] = known, cut_after_s: float = 10.0, report: Callable[[str], None] = print
) -> Iterator[MetricsServer]:
    """Yield a server that answers."""
    server = MetricsServer("127.0.0.1", 0, build_registry(what), report, cut_after_s)
    server.start()
    try:
        yield server
    finally:
        server.close()


def ask(
    server: MetricsServer, path: str = "/metrics", method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_the_page_is_served_as_text() -> None:
    """To whoever asks for nothing else; without a word on what serves it."""
    with serving() as server:
        status, headers, body = ask(server)
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=")
    assert headers["server"].strip() == "hopwatch"
    assert b'hopwatch_set_aside_records_total{reason="torn"} 5.0\n' in body


def test_the_page_is_served_as_openmetrics_and_compressed_where_that_is_asked_for() -> None:
    """As Prometheus does; with units, and an end that tells that it is whole."""
    with serving() as server:
        _, headers, body = ask(server, headers=OPENMETRICS | {"Accept-Encoding": "gzip"})
    text = gzip.decompress(body).decode()
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert "# UNIT hopwatch_store_read_timestamp_seconds seconds\n" in text
    assert text.endswith("# EOF\n")
    assert len(list(text_string_to_metric_families(text))) > 20  # type: ignore[no-untyped-call]  # the library's


def test_a_head_is_answered_without_making_the_page() -> None:
    """A HEAD is answered though the page cannot be made."""

    def fail() -> MetricsSnapshot:
        raise AssertionError("the page was made")

    with serving(fail) as server:
        status, headers, body = ask(server, method="HEAD")
    assert (status, body) == (200, b"")
    assert headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        ("/x", "GET", 404),
        ("/x", "HEAD", 404),
        ("/metrics/x", "HEAD", 404),
        ("/metrics", "POST", 501),
        ("/metrics?name[]=up", "GET", 200),
    ],
)
def test_nothing_else_is_served(path: str, method: str, expected: int) -> None:
    """No other path, no other method."""
    with serving() as server:
        assert ask(server, path, method)[0] == expected


def connected(server: MetricsServer, number: int) -> socket.socket:
    """Return a connection of one of many addresses, each of which has as many as it may."""
    address = f"127.0.1.{1 + number // MAX_PER_ADDRESS}"
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE_S, (address, 0))


def test_an_address_that_takes_all_it_can_keeps_nobody_waiting() -> None:
    """Connections beyond an address's share are cut at once, and those that it gives up it may have again."""
    with serving(cut_after_s=3_600) as server:
        greedy = [connected(server, 0) for _ in range(MAX_PER_ADDRESS)]
        for _ in range(3 * MAX_CONNECTIONS):
            with connected(server, 0) as beyond:
                assert beyond.recv(1) == b""
        assert ask(server)[0] == 200
        for one in greedy:
            one.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
            assert one.recv(12) == b"HTTP/1.0 200"
            one.close()
        while True:
            with suppress(OSError), connected(server, 0) as again:
                again.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
                if again.recv(12) == b"HTTP/1.0 200":
                    break


def test_the_root_links_to_the_page() -> None:
    """For whoever opens the port in a browser; no page is made for it."""
    with serving(known_never) as server:
        status, headers, body = ask(server, "/")
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert b'<a href="/metrics">/metrics</a>' in body
        status, headers, nothing = ask(server, "/?x", "HEAD")
    assert (status, headers["content-length"], nothing) == (200, str(len(body)), b"")


def known_never() -> MetricsSnapshot:
    """Make no page."""
    raise AssertionError("a page was made")


def test_clients_that_say_nothing_are_cut_and_others_are_served_meanwhile() -> None:
    """More of them than there are places; each is let in and cut in its time, and then whoever waited has its turn."""
    with serving(cut_after_s=0.2) as server:
        silent = [connected(server, number) for number in range(MAX_CONNECTIONS + 3)]
        assert ask(server)[0] == 200
        for one in silent:
            one.settimeout(PATIENCE_S)
            assert one.recv(1) == b""
            one.close()


def test_a_client_that_does_not_read_is_cut_too() -> None:
    """Its answer is larger than what the kernel keeps for it."""
    large = make_recorder(
        *(f"s{number}" for number in range(400)), path=" -> ".join(f"n{n}" for n in range(40)), most_series=100_000
    )
    with serving(large.known, cut_after_s=1.0) as server:
        slow = [socket.socket() for _ in range(MAX_CONNECTIONS)]
        for number, one in enumerate(slow):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.bind((f"127.0.1.{1 + number // MAX_PER_ADDRESS}", 0))
            one.connect(("127.0.0.1", server.port))
            one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert ask(server, method="HEAD")[0] == 200
        for one in slow:
            one.close()


def test_a_server_that_is_full_can_be_closed() -> None:
    """Closing does not wait for connections."""
    with serving() as server:
        silent = [connected(server, number) for number in range(MAX_CONNECTIONS + 1)]
    for one in silent:
        one.close()


@pytest.mark.parametrize("is_timer", [False, True])
def test_a_thread_that_cannot_start_keeps_no_slot(is_timer: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """A connection for which no thread can start is cut and reported, and its slot is free again."""
    begin, reported, failures = threading.Thread.start, list[str](), iter(range(2 * MAX_CONNECTIONS))

    def start(self: threading.Thread) -> None:
        is_meant = isinstance(self, threading.Timer) if is_timer else "process_request_thread" in self.name
        if is_meant and next(failures, None) is not None:
            raise RuntimeError("no thread")
        begin(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with serving(report=reported.append) as server:
        for number in range(2 * MAX_CONNECTIONS):
            with connected(server, number) as one:
                assert one.recv(1) == b""
        assert ask(server)[0] == 200
    assert reported == ["RuntimeError('no thread')"] * (2 * MAX_CONNECTIONS)


def test_a_client_that_goes_away_is_no_fault_and_a_page_that_cannot_be_made_is_one() -> None:
    """The first is not told, the second is, and the server goes on."""
    faults = iter([ValueError("odd"), None])

    def sometimes() -> MetricsSnapshot:
        fault = next(faults)
        if fault:
            raise fault
        return known()

    reported: list[str] = []
    with serving(sometimes, report=reported.append) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as gone:
            gone.sendall(b"GET /metr")
        with pytest.raises(http.client.HTTPException):
            ask(server)
        assert ask(server)[0] == 200
    assert reported == ["ValueError('odd')"]


def test_a_port_that_is_taken_is_told() -> None:
    """With the address and the reason."""
    with serving() as server, pytest.raises(MetricsAddressError) as caught:
        MetricsServer("127.0.0.1", server.port, build_registry(known), print)
    assert str(caught.value) == f"metrics cannot be served at 127.0.0.1:{server.port}: Address already in use"


def test_an_address_that_is_not_ours_is_told() -> None:
    """Before anything is served."""
    with pytest.raises(MetricsAddressError, match=r"^metrics cannot be served at 192\.0\.2\.1:9464: "):
        MetricsServer("192.0.2.1", 9464, build_registry(known), print)


def test_the_other_loopback_is_one_too() -> None:
    """IPv6 needs another kind of socket."""
    server = MetricsServer("::1", 0, build_registry(known), print)
    server.start()
    with socket.create_connection(("::1", server.port)) as one:
        one.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
        assert one.recv(15) == b"HTTP/1.0 200 OK"
    server.close()
