"""A target: bytes that are said to be events, records of the gate, or batches of probes; see test_fuzz.py."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

import atheris

with atheris.instrument_imports(include=["hopwatch.probes"]):
    from hopwatch.gate import records
    from hopwatch.gate.codec import Codec, EnvelopeError, parse_fingerprint
    from hopwatch.gate.records import ENTERED_SCHEMA, REJECTED_SCHEMA, REPLAYED_SCHEMA, EnteredRecord
    from hopwatch.gate.registry.avro_schema import Schema
    from hopwatch.probes.contract import envelope

RICH: Final = b"""{"type": "record", "name": "Rich", "namespace": "com.x.v1", "fields": [
 {"name": "a", "type": ["null", "long", "string", {"type": "map", "values": "bytes"}]},
 {"name": "b", "type": {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["x", "y"]}}},
 {"name": "c", "type": {"type": "fixed", "name": "F", "size": 7}},
 {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
 {"name": "e", "type": {"type": "long", "logicalType": "timestamp-micros"}},
 {"name": "f", "type": {"type": "array", "items": {"type": "array", "items": "float"}}},
 {"name": "g", "type": ["boolean", "double", "int"]}]}"""
CODEC: Final = Codec(Schema.parse(RICH))
PREFIXES: Final = (
    CODEC.encode_value({"a": None, "b": [], "c": bytes(7), "d": bytes(1), "e": 0, "f": [], "g": ("int", 0)})[:33],
    ENTERED_SCHEMA.prefix,
    REJECTED_SCHEMA.prefix,
    REPLAYED_SCHEMA.prefix,
)


def once(data: bytes) -> None:
    """Read bytes as everything that they may be said to be."""
    with suppress(EnvelopeError):
        parse_fingerprint(data)
    body = data[1:]
    for batch in (data, b"\x81" + envelope.FINGERPRINT + body, b"\x81" + envelope.FINGERPRINT_1 + body):
        with suppress(envelope.RecordError):
            envelope.check_values(batch, envelope.read_record(batch))
    record = PREFIXES[data[0] % len(PREFIXES)] + body if data else b""
    for read in (CODEC.decode, EnteredRecord.decode, records.decode_rejected):
        with suppress(EnvelopeError):
            read(record)


if __name__ == "__main__":
    atheris.Setup(sys.argv, once)
    atheris.Fuzz()
