"""Outlets for events behind one narrow interface: a record reported as written is stored durably by the transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.segment import SCHEME as SPOOL

MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of the records that wait for a transport."""


class OutletError(Exception):
    """Transport that cannot take records now; the message says why."""


class OutgoingRecord(NamedTuple):
    """Record to be written: the id of its event, as 16 bytes, its two times in µs, and its bytes."""

    event_id: bytes
    event_us: int
    arrived_us: int
    record: bytes


WriteCallback = Callable[[frozenset[bytes]], object]
"""Called once, from any thread, with the ids of the records that were not written."""


class Outlet(Protocol):
    """Transport to which the gate writes records."""

    def write(self, leaving: Sequence[OutgoingRecord], done: WriteCallback) -> None:
        """Accept records, and call ``done`` once the transport has them.

        Raises:
            OutletError: too much is waiting; none of them is taken.
        """

    def check(self) -> None:
        """Check that the transport can be written to.

        Raises:
            OutletError: it cannot.
        """

    def close(self) -> None:
        """Wait for pending records, as long as the transport may take, and release all resources."""


def open_outlet(url: str, stream: str, access: KafkaAccess, clock: Clock) -> Outlet:
    """Return the outlet to a topic or a spool; nothing is connected or created yet.

    Raises:
        ValueError: the URL is invalid.
    """
    if url.startswith(KAFKA):
        from hopwatch.gate.outlets.kafka import KafkaOutlet  # noqa: PLC0415 - a spool does not need its client

        return KafkaOutlet(KafkaPlace.parse(url), access)
    if url.startswith(SPOOL) and url != SPOOL:
        from hopwatch.gate.outlets.spool import SpoolOutlet  # noqa: PLC0415 - as above

        return SpoolOutlet(Path(url.removeprefix(SPOOL)).absolute(), stream, clock)
    raise ValueError(f"events go to spool:FOLDER or kafka://HOST:PORT/TOPIC, got {url[:80]!r}")
