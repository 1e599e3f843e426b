"""Client of the gate over a transport of a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hopwatch.client import ClientPolicy, GateClient, SendOutcome
from hopwatch.client.gate_connection import Transport
from hopwatch.client.queues import EventQueue, MemoryQueue
from hopwatch.client.spool import SpoolQueue
from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.probes.clock import SystemClock

QUICK = ClientPolicy(linger_s=0.0, backoff_base_s=0.001, backoff_max_s=0.01)
PATIENCE_S = 30.0


class ScriptedTransport:
    """Transport whose answers a test gives; while it ``is_held`` no request ends."""

    def __init__(self, *statuses: int) -> None:
        """Answer with these statuses, 0 for none, one request after the other; with 207 and 201 for each then."""
        self.statuses, self.bodies = list(statuses), list[bytes]()
        self.may_go_on, self.is_asked = threading.Event(), threading.Event()
        self.may_go_on.set()
        self.is_aborted = False

    def post(self, body: bytes) -> Answer | NoAnswer:
        """Answer."""
        self.bodies.append(body)
        self.is_asked.set()
        self.may_go_on.wait(PATIENCE_S)
        status = self.statuses.pop(0) if self.statuses else 207
        if self.is_aborted or not status:
            return NoAnswer(AttemptResult.BROKEN, "the connection broke: by the test")
        events = [{"id": event["id"], "status": 201} for event in json.loads(body)]
        return Answer(status, json.dumps({"events": events}).encode() if status == 207 else b'{"detail": "no"}')

    def hold(self) -> None:
        """Let requests wait until :meth:`abort` or the event."""
        self.may_go_on.clear()

    def abort(self) -> None:
        """End the request that waits."""
        self.is_aborted = not self.may_go_on.is_set()
        self.may_go_on.set()

    def close(self) -> None:
        """Do nothing."""

    def events(self) -> list[list[dict[str, Any]]]:
        """Return the events of each request."""
        return [json.loads(body) for body in self.bodies]


def open_client(
    transport: Transport,
    *,
    spool: Path | None = None,
    policy: ClientPolicy = QUICK,
    max_bytes: int | None = None,
    on_outcome: Callable[[SendOutcome], object] | None = None,
) -> GateClient:
    """Return a client over a transport."""
    bound = max_bytes or policy.max_waiting_bytes
    queue: EventQueue = MemoryQueue(bound) if spool is None else SpoolQueue(spool, "orders", bound)
    client = GateClient.__new__(GateClient)
    client._start(policy, queue, transport, SystemClock(), on_outcome)
    return client
