"""Model of what a monitor needs: disk, and time for a backlog, on two cores; the page on sizing is computed by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

MINUTES_PER_DAY: Final = 1_440
WIRE_BYTES: Final = 36
"""Bytes of an observation in a segment of a spool."""
TOPIC_BYTES: Final = 25
"""The same in a topic, compressed by zstd."""
NEEDED_S: Final = 150 + 30 + 3_600 + 60
"""For so long a minute's records are needed, by default: transit, settle, amend_for, and the minute itself."""
MEASURED_MESSAGES: Final = 200
"""Messages of a node's minute in the store that was measured."""
DIGEST_BYTES: Final = 425
"""Bytes of a digest of so many values, on average."""
MAX_DIGEST_BYTES: Final = 1_210
"""Bytes of a digest of millions of values; those of thousands have hardly fewer."""


class MinuteBytes(NamedTuple):
    """Bytes of a node's minute of 200 messages in a store, with its digests and without."""

    with_digests: int
    without: int

    def estimate_with_digests(self, messages: float) -> float:
        """Return the bytes of a minute of so many messages, at most, with its digests."""
        share = 1.0 if messages <= MEASURED_MESSAGES else MAX_DIGEST_BYTES / DIGEST_BYTES
        return self.without + (self.with_digests - self.without) * share


SQLITE: Final = MinuteBytes(1_619, 343)
POSTGRES: Final = MinuteBytes(1_834, 640)


class BacklogCost(NamedTuple):
    """Seconds of a backlog: to begin, for a million observations, for a window and for a batch."""

    start_s: float
    million_s: float
    window_s: float
    batch_s: float

    def estimate_s(self, observations: int, windows: int, batch: int) -> float:
        """Return the seconds of so many observations, in so many windows and in batches of one size."""
        return (
            self.start_s
            + self.million_s * observations / 1e6
            + self.window_s * windows
            + self.batch_s * observations / batch
        )


STREAM: Final = BacklogCost(2.45, 0.107, 0.011, 44e-6)
ONCE: Final = BacklogCost(0.47, 0.060, 0.0057, 44e-6)


@dataclass(frozen=True, slots=True)
class Pipelines:
    """Pipelines that are watched: their messages a second, how many nodes each passes, and nodes of all of them.

    Minutes are kept for ``days``, the digests of theirs for ``digest_days``.
    """

    messages_per_s: int
    hops: int
    nodes: int
    days: int = 30
    digest_days: int = 8

    @property
    def observations_per_s(self) -> int:
        """Messages a second at all nodes that they pass."""
        return self.messages_per_s * self.hops

    def estimate_records_bytes(self) -> float:
        """Return the bytes of the records that windows can still need, in a spool."""
        return self.observations_per_s * WIRE_BYTES * NEEDED_S

    def estimate_topic_bytes(self, hours: float = 168.0) -> float:
        """Return the bytes of a topic that keeps its records for some hours, 168 as Kafka does by default."""
        return self.observations_per_s * TOPIC_BYTES * hours * 3_600

    def estimate_store_bytes(self, minute: MinuteBytes) -> float:
        """Return the bytes of the minutes in a store."""
        recent = min(self.digest_days, self.days)
        with_digests = minute.estimate_with_digests(self.observations_per_s * 60 / self.nodes)
        node_minutes = self.nodes * MINUTES_PER_DAY
        return node_minutes * (recent * with_digests + (self.days - recent) * minute.without)
