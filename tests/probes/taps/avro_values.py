"""A schema of orders, a value of it, and its bytes."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import fastavro

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "price", "type": ["null", "double"]}]}}},
        {"name": "last", "type": ["null", "Line"]},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
    ],
}  # fmt: skip
VALUE = {
    "id": "0190e5a3-1c00-7000-8000-00000000000a", "at": datetime(2023, 11, 14, tzinfo=UTC), "lines": [{"price": 1.5}],
    "last": None, "tags": {"a": "b"}, "kind": "B", "mark": b"xy",
}  # fmt: skip


def body(value: dict[str, Any] = VALUE, schema: dict[str, Any] = ORDER) -> bytes:
    """Return a value without framing."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()
