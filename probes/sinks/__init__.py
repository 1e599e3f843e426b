"""Sinks: transports for records, behind one narrow interface; ``send(record)`` accepts or refuses it quickly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.segment import SCHEME as SPOOL
from hopwatch.probes.environment import read_variables
from hopwatch.probes.kafka.client import read_access
from hopwatch.probes.sinks.kafka import KafkaSink
from hopwatch.probes.sinks.spool import SpoolSink


class Sink(Protocol):
    """Interface of a transport.

    A sink may have more: ``check()``, which raises an OSError if records cannot be written (:func:`check_sink`), and
    ``loses_unsettled = True``, if records that it cannot settle are lost (:func:`loses_unsettled`).
    """

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


class SinkOpener(NamedTuple):
    """Opener of the sink of a probe, which it calls with the name of its instance: a spool has its folder by it."""

    open: Callable[[str], Sink]


def check_sink(sink: Sink) -> None:
    """Check that records can be written to a sink; one without ``check()`` counts as fine.

    Raises:
        OSError: they cannot.
    """
    check = getattr(sink, "check", None)
    if callable(check):
        check()


def loses_unsettled(sink: Sink) -> bool:
    """Return whether records that a sink could not settle are lost; otherwise they are only late."""
    return bool(getattr(sink, "loses_unsettled", False))


def open_sink(url: str, instance: str, clock: Clock | None = None) -> Sink:
    """Open the sink of a URL for one probe instance; Kafka credentials are read from the environment.

    Raises:
        ValueError: the scheme is unknown, or a part of the URL or of the credentials is invalid.
        OSError: a file with a secret cannot be read.
    """
    if url.startswith(SPOOL) and url != SPOOL:
        # A host may change its working directory later; the spool stays in its folder.
        return SpoolSink(Path(url.removeprefix(SPOOL)).absolute(), instance, clock)
    if url.startswith(KAFKA):
        return KafkaSink(KafkaPlace.parse(url), instance, clock, access=read_access(read_variables()))
    raise ValueError(f"a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got {url[:80]!r}")
