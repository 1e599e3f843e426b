"""Tests of framing: it is detected by the first byte, or checked against the configured one."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.framing import ValueFraming, parse_frame
from hopwatch.probes.avro_reader import FramedValue

ENVELOPE = b"\x81" + bytes(range(32)) + b"body"
CONFLUENT = b"\x00\x00\x00\x01\x02body"


@pytest.mark.parametrize(
    ("value", "framing", "found"),
    [
        (ENVELOPE, ValueFraming.FINGERPRINT, FramedValue(bytes(range(32)), 33)),
        (CONFLUENT, ValueFraming.CONFLUENT, FramedValue(258, 5)),
        (b'{"a":1}', ValueFraming.JSON, None),
    ],
)
def test_the_first_byte_tells(value: bytes, framing: ValueFraming, found: FramedValue | None) -> None:
    """As well as a flag does."""
    assert parse_frame(value, framing) == parse_frame(value, ValueFraming.AUTO) == found


@pytest.mark.parametrize(
    ("value", "framing", "told"),
    [
        (ENVELOPE, ValueFraming.CONFLUENT, "a value begins with 00 and the number of a schema, got 8100010203"),
        (CONFLUENT[:4], ValueFraming.AUTO, "a value begins with 00 and the number of a schema, got 00000001"),
        (b"{}", ValueFraming.FINGERPRINT, "a value begins with 81 and a fingerprint, got 7b7d"),
        (ENVELOPE[:32], ValueFraming.AUTO, "a value begins with 81 and a fingerprint, got 8100"),
        (b"", ValueFraming.FINGERPRINT, "a value begins with 81 and a fingerprint, got $"),
    ],
)
def test_what_is_framed_otherwise_is_refused(value: bytes, framing: ValueFraming, told: str) -> None:
    """With what was got."""
    with pytest.raises(ValueError, match=told):
        parse_frame(value, framing)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_no_json_is_taken_for_anything_else(value: object) -> None:
    """JSON of any content is not taken for another framing."""
    try:
        said = orjson.dumps(value)
    except TypeError:  # a number that is too long
        return
    assert parse_frame(said, ValueFraming.AUTO) is None
