"""Sender of events to the gate, for producers: batches, retries with the same ids, bounded memory, a spool of its own.

``from hopwatch.client import GateClient``, or :class:`AsyncGateClient` in an event loop. :class:`ResultsClient` reads
the query API. None needs an extra.
"""

from hopwatch.client.async_client import AsyncGateClient
from hopwatch.client.errors import ClientClosedError, ClientError, ClientSpoolError, QueueFullError, ResultsError
from hopwatch.client.gate_client import GateClient
from hopwatch.client.outcomes import ClientCounts, OutcomeResult, SendOutcome
from hopwatch.client.policy import ClientPolicy
from hopwatch.client.results_client import ResultsClient

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
    "ResultsClient",
    "ResultsError",
    "SendOutcome",
]
