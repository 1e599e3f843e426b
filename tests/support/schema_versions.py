"""Versions of a schema, one of which breaks its readers."""

from __future__ import annotations

from tests.support.schemas import record, schema

FIRST = schema(record({"name": "a", "type": "int"}))
SECOND = schema(record({"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}))
BROKEN = schema(record({"name": "a", "type": "int"}, {"name": "c", "type": "int"}))
