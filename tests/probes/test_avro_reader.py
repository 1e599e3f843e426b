"""Tests of reading a value in Avro from behind its prefix: all of it, and nothing more."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.avro_reader import CONFLUENT_BYTES, PREFIX_BYTES, read_value

SCHEMA = fastavro.parse_schema({"type": "array", "items": "string"})


@given(prefix=st.binary(max_size=PREFIX_BYTES), value=st.lists(st.text(max_size=5), max_size=5))
def test_a_value_is_read_from_behind_its_prefix_to_its_end(prefix: bytes, value: list[str]) -> None:
    """A byte less or more is an error, whose text says what was to be there."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, SCHEMA, value)
    data = prefix + body.getvalue()
    assert read_value(data, len(prefix), SCHEMA, "a list", "list") == value
    with pytest.raises(ValueError, match=r"^1 bytes follow the list$"):
        read_value(data + b"x", len(prefix), SCHEMA, "a list", "list")
    with pytest.raises(ValueError, match=r"^a list was expected: "):
        read_value(data[:-1], len(prefix), SCHEMA, "a list", "list")


def test_prefixes_are_as_long_as_those_who_write_them_say() -> None:
    """One marker and a SHA-256; a zero and the number of a schema."""
    assert (PREFIX_BYTES, CONFLUENT_BYTES) == (33, 5)
