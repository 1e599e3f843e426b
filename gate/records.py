"""Record formats of the gate: an event in a spool, which has no headers, a rejected event, and a replayed one.

All are in the envelope of WIRE.md, so that the first 33 bytes of any record identify its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import fastavro
import orjson

from hopwatch.gate.codec import EnvelopeError, decode_envelope, encode_envelope
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.probes.avro_reader import FINGERPRINT_BYTES, PREFIX_BYTES
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.http.problems import Fault

_ENTERED_AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "EnteredEvent",
    "namespace": "hopwatch.gate.v1",
    "fields": [
        {"name": "stream", "type": "string"},
        {"name": "id", "type": {"type": "fixed", "name": "EventId", "size": 16}},
        {"name": "event_time_us", "type": "long"},
        {"name": "arrived_us", "type": "long"},
        {"name": "event", "type": "bytes"},
    ],
}
_REJECTED_AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "RejectedEvent",
    "namespace": "hopwatch.gate.v1",
    "fields": [
        {"name": "stream", "type": "string"},
        {"name": "id", "type": {"type": "fixed", "name": "EventId", "size": 16}},
        {"name": "owns_id", "type": "boolean"},
        {"name": "event_time_us", "type": ["null", "long"]},
        {"name": "arrived_us", "type": "long"},
        {"name": "producer", "type": "string"},
        {"name": "is_held", "type": "boolean"},
        {
            "name": "reasons",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Reason",
                    "fields": [{"name": "place", "type": "string"}, {"name": "detail", "type": "string"}],
                },
            },
        },
        {"name": "data", "type": "bytes"},
    ],
}
_REPLAYED_AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "ReplayedEvent",
    "namespace": "hopwatch.gate.v1",
    "fields": [
        {"name": "id", "type": {"type": "fixed", "name": "EventId", "size": 16}},
        {"name": "replayed_us", "type": "long"},
    ],
}


class _RecordSchema:
    """Schema of one of the gate's own record types."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.schema = Schema.parse(orjson.dumps(said))
        self.prefix = bytes([MARKER]) + self.schema.fingerprint
        self._avro: Any = fastavro.parse_schema(said)

    def encode(self, value: dict[str, Any]) -> bytes:
        return encode_envelope(self.prefix, self._avro, value)

    def decode(self, record: bytes) -> dict[str, Any]:
        return dict(decode_envelope(record, self._avro, "a record of the gate", "record"))


ENTERED_SCHEMA: Final = _RecordSchema(_ENTERED_AVRO)
REJECTED_SCHEMA: Final = _RecordSchema(_REJECTED_AVRO)
REPLAYED_SCHEMA: Final = _RecordSchema(_REPLAYED_AVRO)


@dataclass(frozen=True, slots=True)
class EnteredRecord:
    """Accepted event in a spool: ``event`` is its envelope, the id has 16 bytes, times are µs since 1970."""

    stream: str
    event_id: bytes
    event_us: int
    arrived_us: int
    event: bytes

    def encode(self) -> bytes:
        """Return the record in its envelope, as it is written to a spool."""
        return ENTERED_SCHEMA.encode(
            {
                "stream": self.stream,
                "id": self.event_id,
                "event_time_us": self.event_us,
                "arrived_us": self.arrived_us,
                "event": self.event,
            }
        )

    @classmethod
    def decode(cls, record: bytes) -> EnteredRecord:
        """Return the accepted event in a record of a spool.

        Raises:
            EnvelopeError: it is not such a record.
        """
        _check_prefix(record, ENTERED_SCHEMA, "an event that entered")
        found = ENTERED_SCHEMA.decode(record)
        return cls(found["stream"], found["id"], found["event_time_us"], found["arrived_us"], found["event"])


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """Rejected event with its data as it was sent, cut if it is too long.

    ``event_us`` is the stated event time, None if it states none that can be read. Without ``owns_id`` the id is a hash
    of its bytes, or another event's id.
    ``is_held`` marks an event that a rule holds for review, and its sender got 202; the others were refused.
    """

    stream: str
    event_id: bytes
    event_us: int | None
    arrived_us: int
    producer: str
    data: bytes
    reasons: tuple[Fault, ...] = ()
    is_held: bool = False
    owns_id: bool = True

    def encode(self) -> bytes:
        """Return the record in its envelope, as it is written to topics and spools."""
        return REJECTED_SCHEMA.encode(
            {
                "stream": self.stream,
                "id": self.event_id,
                "owns_id": self.owns_id,
                "event_time_us": self.event_us,
                "arrived_us": self.arrived_us,
                "producer": self.producer,
                "is_held": self.is_held,
                "reasons": [{"place": one.place, "detail": one.detail} for one in self.reasons],
                "data": self.data,
            }
        )


@dataclass(frozen=True, slots=True)
class ReplayedRecord:
    """Marker of a rejected event that was replayed, with the time of the replay."""

    event_id: bytes
    replayed_us: int

    def encode(self) -> bytes:
        """Return the marker in its envelope, as it is written beside the rejected events."""
        return REPLAYED_SCHEMA.encode({"id": self.event_id, "replayed_us": self.replayed_us})


def decode_rejected(record: bytes) -> RejectedRecord | ReplayedRecord:
    """Return the rejected event or the replay marker in a record.

    Raises:
        EnvelopeError: it is neither of the two.
    """
    if record.startswith(REPLAYED_SCHEMA.prefix):
        found = REPLAYED_SCHEMA.decode(record)
        return ReplayedRecord(found["id"], found["replayed_us"])
    _check_prefix(record, REJECTED_SCHEMA, "an event that was rejected")
    found = REJECTED_SCHEMA.decode(record)
    reasons = tuple(Fault(one["place"], one["detail"]) for one in found["reasons"])
    times = found["event_time_us"], found["arrived_us"]
    return RejectedRecord(
        found["stream"],
        found["id"],
        *times,
        found["producer"],
        found["data"],
        reasons,
        is_held=found["is_held"],
        owns_id=found["owns_id"],
    )


def _check_prefix(record: bytes, form: _RecordSchema, what: str) -> None:
    if not record.startswith(form.prefix):
        got = record[:PREFIX_BYTES].hex()
        raise EnvelopeError(f"{what} begins with {MARKER:02x} and {FINGERPRINT_BYTES} bytes of fingerprint, got {got}")
