"""Avro object container files, as a library writes them and by hand."""

from __future__ import annotations

import io
import zlib
from typing import Any

import fastavro

NUMBERS: Any = {"type": "record", "name": "Number", "fields": [{"name": "a", "type": "int"}]}
SYNC = bytes(range(16))


def container(values: list[Any], schema: Any = NUMBERS, **how: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return a file as a library writes it."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), values, **how)
    return out.getvalue()


def number(value: int) -> bytes:
    """Return a long as Avro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def text(value: bytes) -> bytes:
    """Return bytes with their length."""
    return number(len(value)) + value


def by_hand(*blocks: tuple[int, bytes], codec: bytes = b"null", schema: bytes = b'"int"') -> bytes:
    """Return a file of blocks as they are given, each with a count."""
    header = b"Obj\x01" + number(2) + text(b"avro.schema") + text(schema) + text(b"avro.codec") + text(codec)
    return header + b"\0" + SYNC + b"".join(number(count) + text(data) + SYNC for count, data in blocks)


def deflated(data: bytes) -> bytes:
    """Return bytes packed as Avro has it."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packing.compress(data) + packing.flush()
