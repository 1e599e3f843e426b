"""Where records go, through one narrow seam: ``send(record)`` says whether it was taken, and never waits for long."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from probes.clock import Clock
from probes.sinks.spool import SpoolSink

SPOOL: Final = "spool:"


class Sink(Protocol):
    """What a sender needs of a transport."""

    def send(self, record: bytes) -> bool:
        """Take a record; False when it cannot, and then it is as if it had never been given."""

    def tick(self) -> None:
        """Do what time alone makes due."""

    def settle(self, patience_s: float) -> bool:
        """Make what was taken durable, where a monitor finds it; whether all of it is, after this time at most."""

    def close(self) -> None:
        """Let go of everything; what was taken stays taken."""


def open_sink(url: str, instance: str, clock: Clock | None = None) -> Sink:
    """Return the sink behind a URL for one probe instance.

    Raises:
        ValueError: the scheme is not known.
    """
    if url.startswith(SPOOL) and url != SPOOL:
        # A host may change its working directory later; the spool stays where it was named.
        return SpoolSink(Path(url.removeprefix(SPOOL)).absolute(), instance, clock)
    raise ValueError(f"a sink is spool:FOLDER, got {url[:80]!r}")
