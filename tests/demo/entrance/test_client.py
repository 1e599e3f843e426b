"""Tests of the client: what it makes of a gate's answers, and of none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from hopwatch.demo.entrance.client import HOST, EntranceClient, GateAnswer, GateAwayError
from hopwatch.demo.link import LinkError

ARRIVED = "2023-11-14T22:14:00.000001Z"
ARRIVED_US = 1_700_000_040_000_001


class PaperServer(HTTPServer):
    """Answers every request with the same words."""

    status, body = 200, b"{}"

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__((HOST, 0), _Handler)
        self.asked: list[tuple[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: PaperServer
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        said = self.rfile.read(int(self.headers["content-length"]))
        assert self.headers["content-type"] == "application/json"
        self.server.asked.append((f"{self.command} {self.path}", json.loads(said)))
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def do_PUT(self) -> None:
        """Answer."""
        self._answer()

    def do_POST(self) -> None:
        """Answer."""
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[PaperServer]:
    """Yield a server that runs."""
    with PaperServer() as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()


@pytest.fixture
def client(server: PaperServer) -> Iterator[EntranceClient]:
    """Yield a client of that server."""
    made = EntranceClient(server.server_port)
    yield made
    made.close()


def test_events_are_posted_each_with_a_fate_of_its_own(server: PaperServer, client: EntranceClient) -> None:
    """Status, arrival, and the first error with its place in the event; two batches use one connection."""
    errors = [{"place": "/1/data/distance", "detail": "no integer"}, {"place": "/1/time", "detail": "old"}]
    events = [
        {"id": "a", "status": 201, "arrived": ARRIVED},
        {"id": "b", "status": 422, "arrived": ARRIVED, "errors": errors},
    ]
    server.status, server.body = 207, json.dumps({"entered": 1, "held": 0, "events": events}).encode()
    expected = [GateAnswer(201, ARRIVED_US, "", ""), GateAnswer(422, ARRIVED_US, "/data/distance", "no integer")]
    assert client.post("flights", [{"id": "a"}, {"id": "b"}]) == expected
    assert client.post("flights", [{"id": "a"}, {"id": "b"}]) == expected
    assert server.asked == [("POST /streams/flights/events?each=true", [{"id": "a"}, {"id": "b"}])] * 2


@pytest.mark.parametrize("status", [200, 201])
def test_a_schema_that_is_new_or_known_is_registered(server: PaperServer, client: EntranceClient, status: int) -> None:
    """A sender that comes back registers it again."""
    server.status = status
    client.register("flights", {"type": "string"})
    assert server.asked == [("PUT /subjects/flights/schemas", {"type": "string"})]


@pytest.mark.parametrize("status", [408, 429, 503])
def test_a_gate_that_is_busy_is_asked_again(server: PaperServer, client: EntranceClient, status: int) -> None:
    """Nothing of such a request has entered, or all of it is known again by its ids."""
    server.status, server.body = status, b"too much at once"
    with pytest.raises(GateAwayError, match=rf"^{status} too much at once$"):
        client.post("flights", [])


def test_a_gate_that_refuses_is_not(server: PaperServer, client: EntranceClient) -> None:
    """The demo ends with what the gate said."""
    server.status, server.body = 409, b'{"detail": "the schema would break readers"}'
    text = r'^the gate answered 409 to PUT /subjects/flights/schemas: {"detail": "the schema would break readers"}$'
    with pytest.raises(LinkError, match=text):
        client.register("flights", {})


def test_a_gate_that_is_not_there_may_come(server: PaperServer, client: EntranceClient) -> None:
    """Before it listens, and after it has hung up."""
    server.shutdown()
    server.server_close()
    with pytest.raises(GateAwayError, match="Connection refused"):
        client.post("flights", [])
