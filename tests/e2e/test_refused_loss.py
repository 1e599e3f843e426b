"""Observations that the tap by HTTP refuses, judged by the monitor: what a service has handled is never called lost."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from hopwatch import Probe
from hopwatch.monitor.store import reader
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.http.app import build_app
from hopwatch.probes.taps.http.intake import ObservationIntake
from tests.support.micro_batches import run_once
from tests.support.model_comparison import prepared_store, rules_of

PATH: Final = "/v1/observations"
MESSAGES: Final = 1_000
REFUSED: Final = 200
JSON: Final = {"content-type": "application/json"}


def posted(numbers: range, event_us: int, **more: object) -> bytes:
    """Return a body with observations of node b."""
    items = [{"id": number, "event_time": event_us, "stamp": "in"} | more for number in numbers]
    return json.dumps({"stream": "orders", "node": "b", "observations": items}).encode()


def ask(intake: ObservationIntake, content: bytes, **more: Any) -> int:  # noqa: ANN401 - as httpx takes it
    """Post a body, and return the status."""

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(build_app(intake))
        async with httpx.AsyncClient(transport=transport, base_url="http://tap") as client:
            return await client.post(PATH, content=content, **{"headers": JSON} | more)

    return asyncio.run(post()).status_code


@pytest.mark.parametrize("minutes_ago", [0, 1])
@pytest.mark.parametrize("form", ["bad items", "half", "cut", "type", "packed", "long", "full"])
def test_what_was_refused_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, minutes_ago: int
) -> None:
    """Node b handles all of a's messages; the tap refuses 200 of 1,000 that it is told of."""
    spool, event_us = tmp_path / "spool", time.time_ns() // 1_000 - minutes_ago * 60_000_000
    good, bad = range(MESSAGES - REFUSED), range(MESSAGES - REFUSED, MESSAGES)
    intake = ObservationIntake(f"spool:{spool}", RunContext(print))
    with Probe("orders", "a", f"spool:{spool}") as origin:
        for number in range(MESSAGES):
            origin.departed(number, event_us)
    assert ask(intake, posted(good, event_us)) == 202
    body = posted(bad, event_us)
    if form == "bad items":
        assert ask(intake, posted(bad, event_us, stamp="no")) == 422
    elif form == "half":
        items = [*json.loads(body)["observations"], {"id": "", "event_time": event_us, "stamp": "in"}]
        intake_status = ask(intake, json.dumps(json.loads(body) | {"observations": items}).encode())
        assert intake_status in {207, 422}
    elif form == "cut":
        assert ask(intake, body[:-1]) == 400
    elif form == "type":
        assert ask(intake, body, headers={"content-type": "text/csv"}) == 415
    elif form == "packed":
        assert ask(intake, body, headers=JSON | {"content-encoding": "br"}) == 415
    elif form == "long":
        assert ask(intake, body + b" " * 5 * 2**20) == 413
    else:
        with monkeypatch.context() as patch:
            patch.setattr(SpoolSink, "send", lambda *_: False)
            assert ask(intake, body) == 503
    intake.close(bye=True)
    store = prepared_store(tmp_path, "hopwatch.db")
    streams = {"orders": {"path": "a -> b", "stamps": {"a": "out", "b": "in"}}}
    run_once(store, rules_of(tmp_path, streams), sorted(spool.rglob("*.seg")))
    (stream,) = reader.read_report(store)["streams"]
    assert sum(window["known"] for window in stream["windows"]) == MESSAGES
    assert {window["lost_lower"] for window in stream["windows"]} == {0}
    assert {node["loss_lower"] for window in stream["windows"] for node in window["nodes"]} == {0}
