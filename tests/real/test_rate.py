"""Tests of ``hopwatch rate`` over a real broker and gate, with a router whose work is to wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from servers.kafka import Kafka
from servers.process import answers, free_ports, until
from tests.real.gate_command import RUN
from tests.repository import ROOT
from tests.support.command_call import called
from tests.support.gate_client import configured
from tests.support.program import ProgramProcess

WAIT_MS = 20
"""Time that the router waits for each message: it takes 50 messages a second at most, which a busy machine sends, too.
"""
TRIES = 6
"""Ratings until one is taken: one that a busy machine held back says less than the router can take."""
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "price", "type": "double"}],
}


class RatedStream(NamedTuple):
    """Stream from a gate through a router; flags of a rating of it."""

    folder: Path
    flags: tuple[str, ...]


@pytest.fixture
def stream(kafka: Kafka, tmp_path: Path) -> Iterator[RatedStream]:
    """Yield a stream whose gate and router run."""
    for topic in ("rated", "rated.rejected", "routed"):
        kafka.create_topic(topic, 1, {})
    (port,) = free_ports(1)
    more = f'rejected = "{kafka.url("rated.rejected")}"'
    config = configured(kafka.url("rated"), more).replace("gate -> sink", "gate -> router")
    (tmp_path / "hopwatch.toml").write_text(config, "utf-8")
    (tmp_path / "events.jsonl").write_text('{"item": "book", "price": 1.5}\n', "utf-8")
    router = ("tests.real.rating_router", kafka.bootstrap, "rated", "routed", str(tmp_path / "spool"))
    processes = [
        ProgramProcess(
            [*RUN, "--config", str(tmp_path / "hopwatch.toml"), "--port", str(port)], tmp_path / "gate", folder=ROOT
        ),
        ProgramProcess([*router, str(WAIT_MS), "0"], tmp_path / "router", folder=ROOT),
    ]
    try:
        until(lambda: answers(port), "the gate answers")
        assert httpx.put(f"http://127.0.0.1:{port}/subjects/orders/schemas", json=SCHEMA).status_code == 201
        where = ("--topic", kafka.url("routed"), "--entrance", f"http://127.0.0.1:{port}")
        yield RatedStream(tmp_path, ("rate", "--stream", "orders", "--events", "events.jsonl", *where))
    finally:
        for process in processes:
            process.kill()


def test_a_router_that_waits_is_what_saturates(stream: RatedStream) -> None:
    """The rating is near what the router can take; the lag grows on its way in, and its process is idle."""
    target = ("--until", "e2e p50 <= 1 s and loss = 0")
    asked = ("--start", "25", "--tolerance", "0.2", "--repeats", "1", "--json")
    saturation: dict[str, Any] | None = None
    run: dict[str, Any] = {}
    for _ in range(TRIES):
        done = called(*stream.flags, *target, *asked, folder=stream.folder)
        assert done.returncode == 0, done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        saturation = run["saturation"]
        if saturation is not None and run["rating_per_s"] >= 25 and saturation["node"] == "router":
            break
        # On a busy machine a step that is too fast may be void, as its sender was late, or undecided: none has failed;
        # one of a rate that the router can take may fail, and the receiver may be held back more than the router.
        states = {step["state"] for step in run["repeats"][0]["steps"]}
        assert saturation is not None or states & {"void", "undecided"}
    assert 25 <= run["rating_per_s"] <= 50
    assert saturation is not None
    assert (saturation["node"], saturation["side"], saturation["grows"]) == ("router", "in", True)
    assert saturation["processor"] < 0.5
    steps = run["repeats"][0]["steps"]
    assert all(step["lost"] == step["duplicates"] == 0 for step in steps)
    held = next(step for step in steps if step["state"] == "holds")
    lags_ms = {(point["node"], point["side"]): point["lag_p95_ms"] for point in held["nodes"]}
    taken, acknowledged, *path = lags_ms.values()
    assert list(lags_ms) == [
        *(("gate", "in"), ("gate", "out"), ("router", "in"), ("router", "out"), ("receiver", "in"))
    ]
    assert taken <= acknowledged, "the gate takes a message before the broker acknowledges it"
    assert [taken, *path] == sorted([taken, *path]), "a router may read a message before the gate has its answer"
