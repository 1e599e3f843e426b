"""Sender of events to the gate, for producers: batches, retries with the same ids, bounded memory, a spool of its own.

``from hopwatch.client import GateClient``, or :class:`AsyncGateClient` in an event loop. It needs no extra.
"""

from hopwatch.client.async_client import AsyncGateClient
from hopwatch.client.errors import ClientClosedError, ClientError, ClientSpoolError, QueueFullError
from hopwatch.client.gate_client import GateClient
from hopwatch.client.outcomes import ClientCounts, OutcomeResult, SendOutcome
from hopwatch.client.policy import ClientPolicy

__all__ = [
    "AsyncGateClient",
    "ClientClosedError",
    "ClientCounts",
    "ClientError",
    "ClientPolicy",
    "ClientSpoolError",
    "GateClient",
    "OutcomeResult",
    "QueueFullError",
    "SendOutcome",
]
