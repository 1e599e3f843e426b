"""Tests of the ASGI middleware, with a real app and its life, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI, Response
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

from hopwatch.integrations.asgi import HopwatchMiddleware
from hopwatch.probes import Probe
from hopwatch.probes.contract.batch import BatchKind, Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.drops import drops

MARKED = {"hopwatch-id": "order 7", "hopwatch-time": str(EPOCH_US)}
ARRIVED = Observation(id_bytes("order 7"), EPOCH_US, EPOCH_US + 1_000_000, None)


@pytest.fixture
def app(clock: ManualClock) -> FastAPI:
    """Return an app whose answers take half a second."""
    made = FastAPI()

    @made.post("/{status}")
    async def answer(status: int) -> Response:
        clock.advance(0.5)
        if status == 0:
            raise KeyError("the host's own")
        return Response(status_code=status)

    @made.post("/parts/three")
    async def stream() -> StreamingResponse:
        def parts() -> Iterator[bytes]:
            for _ in range(3):
                clock.advance(0.5)
                yield b"part"

        return StreamingResponse(parts())

    return made


def post(app: FastAPI, probe: Probe, path: str, headers: dict[str, str], *, ignore_unmarked: bool = True) -> None:
    """Post a request to the app behind the middleware."""
    wrapped = HopwatchMiddleware(app, probe=probe, ignore_unmarked=ignore_unmarked)
    client = TestClient(wrapped, raise_server_exceptions=False)
    client.post(path, headers=headers)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/202", [ARRIVED._replace(out_us=EPOCH_US + 1_500_000)]),
        ("/302", [ARRIVED._replace(out_us=EPOCH_US + 1_500_000)]),
        ("/parts/three", [ARRIVED._replace(out_us=EPOCH_US + 2_500_000)]),
        ("/422", [ARRIVED, ARRIVED._replace(in_us=None, outcome=Outcome.REJECTED, reason="HTTP 422")]),
        ("/429", [ARRIVED]),
        ("/503", [ARRIVED]),
        ("/0", [ARRIVED]),
    ],
)
def test_a_message_leaves_when_its_answer_was_sent(
    path: str, expected: list[Observation], app: FastAPI, probe: Probe, sink: MemorySink, clock: ManualClock
) -> None:
    """A refusal ends it here; after an error of the server the sender comes again."""
    clock.advance(1)
    post(app, probe, path, MARKED)
    probe.close()
    assert observations(sink) == expected


def test_other_requests_pass_by(app: FastAPI, probe: Probe, sink: MemorySink) -> None:
    """Unless all of them are messages; a header without the other is a message that was missed."""
    post(app, probe, "/202", {})
    post(app, probe, "/202", {"hopwatch-id": "order 7"})
    post(app, probe, "/202", {}, ignore_unmarked=False)
    probe.close()
    assert observations(sink) == []
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("bad marks", 1), ("unmarked message", 1)]


def test_the_probe_ends_with_the_app(app: FastAPI, sink: MemorySink) -> None:
    """The bye is sent before the server hears that the app has shut down."""
    wrapped = HopwatchMiddleware(app, stream="orders", node="intake", sink=sink)
    with TestClient(wrapped) as client:
        assert client.post("/202", headers=MARKED | {"hopwatch-time": "0"}).status_code == 202
        assert wrapped.hopwatch_probe.node == "intake"
    assert decode(sink.records[-1]).kind is BatchKind.BYE
