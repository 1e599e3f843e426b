"""Tests of the ingest time of the gate."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from hopwatch.gate.ingest_times import IngestTimeMiddleware, IngestTimes
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.exposition import MetricsCollector
from hopwatch.testing import ManualClock
from tests.support.gate_client import EVENTS, AtEntrance, post, put


def read(times: IngestTimes) -> dict[tuple[str, ...], float]:
    """Return the samples as they are exposed: by name and values of labels."""
    families = MetricsCollector(catalog.COMPONENT_METRICS, times.build_samples).collect()
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def run(path: str, status: int, messages: list[dict[str, Any]], clock: ManualClock) -> IngestTimes:
    """Run an app that reads all messages, each 1 ms after the last, and answers 40 ms later."""
    times = IngestTimes(clock)

    async def app(_: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        for _ in range(len(messages)):
            await receive()
        clock.advance(0.04)
        await send({"type": "http.response.start", "status": status, "headers": []})
        clock.advance(5)
        await send({"type": "http.response.body", "body": b""})

    left = iter(messages)

    async def receive() -> Any:  # noqa: ANN401 - ASGI
        clock.advance(0.001)
        return next(left)

    async def send(_: Any) -> None:  # noqa: ANN401 - ASGI
        pass

    asyncio.run(IngestTimeMiddleware(app, times)({"type": "http", "path": path}, receive, send))
    return times


PARTS: Final[list[dict[str, Any]]] = [
    {"type": "http.request", "body": b"[", "more_body": True},
    {"type": "http.request", "body": b"]"},
]


def test_it_is_from_the_last_byte_in_to_the_first_byte_out() -> None:
    """Neither a slow body nor a slow reader counts."""
    found = read(run(EVENTS, 207, PARTS, ManualClock()))
    name = "hopwatch_gate_ingest_seconds"
    assert found[f"{name}_count", "orders"] == 1
    assert round(found[f"{name}_sum", "orders"], 9) == 0.04
    assert (found[f"{name}_bucket", "orders", "0.02"], found[f"{name}_bucket", "orders", "0.05"]) == (0, 1)


def test_what_is_not_taken_has_no_ingest_time() -> None:
    """Neither an answer that refuses, nor one that came before the body, nor a request about schemas counts."""
    assert read(run(EVENTS, 503, PARTS, ManualClock())) == {}
    assert read(run(EVENTS, 201, PARTS[:1], ManualClock())) == {}
    assert read(run("/subjects/orders/schemas", 200, PARTS, ManualClock())) == {}


def test_the_gate_measures_its_requests(gate: AtEntrance) -> None:
    """Single events and batches count; a rejected one does not, nor one for a stream that is not there."""
    assert put(gate, gate.new_id()).status_code == 201
    assert post(gate, [gate.event()], each="true").status_code == 207
    assert post(gate, [gate.event({"price": "dear"})]).status_code == 422
    assert gate.ask("POST", "/streams/none/events", [gate.event()]).status_code == 404
    found = read(gate.gate.ingest_times)
    assert {key[1:]: value for key, value in found.items() if key[0].endswith("_count")} == {("orders",): 2}
