"""Sinks: transports for records, behind one narrow interface; ``send(record)`` accepts or refuses it quickly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.segment import SCHEME as SPOOL
from hopwatch.probes.kafka.client import read_access
from hopwatch.probes.sinks.kafka import KafkaSink
from hopwatch.probes.sinks.spool import SpoolSink


class Sink(Protocol):
    """Interface of a transport."""

    def send(self, record: bytes) -> bool:
        """Accept a record; False if the sink refuses it, and then keeps nothing of it."""

    def failed(self) -> Sequence[bytes]:
        """Return, once, the accepted records whose delivery has failed for good."""

    def tick(self) -> None:
        """Do periodic work, such as closing a segment."""

    def settle(self, patience_s: float) -> bool:
        """Make all accepted records durable and visible to a monitor; False if some are not within this time."""

    def close(self, patience_s: float = 0.0) -> None:
        """Settle within this time, as far as possible, and release all resources."""


def open_sink(url: str, instance: str, clock: Clock | None = None, environ: Mapping[str, str] = os.environ) -> Sink:
    """Open the sink of a URL for one probe instance; Kafka credentials are read from the environment.

    Raises:
        ValueError: the scheme is unknown, or a part of the URL or of the credentials is invalid.
        OSError: a file with a secret cannot be read.
    """
    if url.startswith(SPOOL) and url != SPOOL:
        # A host may change its working directory later; the spool stays in its folder.
        return SpoolSink(Path(url.removeprefix(SPOOL)).absolute(), instance, clock)
    if url.startswith(KAFKA):
        return KafkaSink(KafkaPlace.parse(url), instance, clock, access=read_access(environ))
    raise ValueError(f"a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got {url[:80]!r}")
