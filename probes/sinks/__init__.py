"""Where records go, through one narrow seam: ``send(record)`` says whether it was taken, and never waits for long."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.segment import SCHEME as SPOOL
from hopwatch.probes.sinks.kafka import KafkaSink, read_access
from hopwatch.probes.sinks.spool import SpoolSink


class Sink(Protocol):
    """What a sender needs of a transport."""

    def send(self, record: bytes) -> bool:
        """Take a record; False when it cannot, and then it is as if it had never been given."""

    def failed(self) -> Sequence[bytes]:
        """Return, once, the records that were taken and have failed since: for good, whatever is tried."""

    def tick(self) -> None:
        """Do what time alone makes due."""

    def settle(self, patience_s: float) -> bool:
        """Make what was taken durable, where a monitor finds it; whether all of it is, after this time at most."""

    def close(self, patience_s: float = 0.0) -> None:
        """Settle as far as this time allows, and let go of everything."""


def open_sink(url: str, instance: str, clock: Clock | None = None, environ: Mapping[str, str] = os.environ) -> Sink:
    """Return the sink behind a URL for one probe instance; how Kafka lets it in stands in the environment.

    Raises:
        ValueError: the scheme is not known, or what it needs cannot be.
        OSError: a file with a secret cannot be read.
    """
    if url.startswith(SPOOL) and url != SPOOL:
        # A host may change its working directory later; the spool stays where it was named.
        return SpoolSink(Path(url.removeprefix(SPOOL)).absolute(), instance, clock)
    if url.startswith(KAFKA):
        return KafkaSink(KafkaPlace.parse(url), instance, clock, access=read_access(environ))
    raise ValueError(f"a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got {url[:80]!r}")
