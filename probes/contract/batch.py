"""Batch: the unit that a probe instance sends to the monitor, as WIRE.md defines it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class BatchKind(IntEnum):
    """Kind of a batch; the numbers are the positions in the wire's enum."""

    OBSERVATIONS = 0
    HEARTBEAT = 1
    BYE = 2
    METRICS = 3


class Outcome(IntEnum):
    """Outcome of a message at a node; the numbers are those on the wire."""

    PASSED = 0
    FILTERED = 1
    REJECTED = 2
    DEFERRED = 3


class WireIdKind(IntEnum):
    """Type of a message id as the service gave it; the numbers are the positions in the wire's enum."""

    BYTES = 0
    UUID = 1
    INT = 2
    TEXT = 3
    UNKNOWN = 4
    """Kind of a version 1 batch, which does not carry it; never on the wire."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Observations of one window that the probe instance had to drop since its last batch."""

    window_start_ms: int
    count: int
    cause: str


class MetricsStamp(IntEnum):
    """Stamp at which messages were counted; the numbers are the positions in the wire's enum."""

    IN = 0
    OUT = 1
    FILTERED = 2
    REJECTED = 3
    DEFERRED = 4


@dataclass(frozen=True, slots=True)
class Metrics:
    """Messages of a window that were counted at one stamp.

    ``id_xor`` and ``id_sum`` are the fingerprint of their ids, signed 64 bits each, and both 0 without one;
    ``size_bytes``, ``bytes`` on the wire, is 0 where it is not known. ``lag_histogram`` has the lags of some or all of
    them, as :mod:`hopwatch.probes.contract.lag_histograms` packs them, and is empty where none is known.
    """

    stamp: MetricsStamp
    count: int
    id_xor: int = 0
    id_sum: int = 0
    size_bytes: int = 0
    lag_histogram: bytes = b""


@dataclass(frozen=True, slots=True)
class Batch:
    """Observations of one (stream, node, window) from one probe instance, or counts, or a heartbeat, or a bye.

    The packed fields are little-endian arrays of ``count`` items: ``message_ids`` 16 bytes each, ``event_offset_us``
    uint32, ``lag_in_us`` and ``lag_out_us`` int64, ``outcome`` and ``reason`` uint8; all but the ids may be empty.
    So may those of version 2: ``id_texts`` holds the texts of the ids in UTF-8, end to end, and ``id_text_ends``,
    uint32, where each ends; ``until_us`` and ``sequence`` are int64. ``metrics`` are those of a batch of their kind.
    """

    probe: str
    epoch_us: int
    seq: int
    kind: BatchKind
    stream: str
    node: str
    window_start_ms: int
    sent_at_us: int
    complete_through_us: int
    count: int = 0
    message_ids: bytes = b""
    event_offset_us: bytes = b""
    lag_in_us: bytes = b""
    lag_out_us: bytes = b""
    outcome: bytes = b""
    reason: bytes = b""
    reasons: tuple[str, ...] = ()
    drops: tuple[Drop, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    id_kind: WireIdKind = WireIdKind.BYTES
    id_texts: bytes = b""
    id_text_ends: bytes = b""
    until_us: bytes = b""
    sequence: bytes = b""
    metrics: tuple[Metrics, ...] = ()
