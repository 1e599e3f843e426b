"""Tests of ids and event times: whatever other programs write is the value of a probe, or refused."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import WireIdKind as WireKind
from hopwatch.probes.contract.ids import encode_id, id_bytes
from hopwatch.probes.values import MAX_ID_CHARS, IdFormat, TimeUnit, build_id_reader, build_time_reader

MESSAGE = uuid.UUID("0190e5a3-1c00-7000-8000-00000000000a")
MOMENT_US = 1_700_000_000_123_456
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.uuids(), st.datetimes(),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (IdFormat.AUTO, str(MESSAGE), MESSAGE),
        (IdFormat.AUTO, str(MESSAGE).upper().encode(), MESSAGE),
        (IdFormat.AUTO, MESSAGE, MESSAGE),
        (IdFormat.AUTO, "order 7", "order 7"),
        (IdFormat.AUTO, b"order 7", "order 7"),
        (IdFormat.AUTO, "7", "7"),
        (IdFormat.AUTO, 7, 7),
        (IdFormat.AUTO, MESSAGE.hex, MESSAGE.hex),
        (IdFormat.AUTO, "0190e5a3-1c00-7000-8000-00000000000x", "0190e5a3-1c00-7000-8000-00000000000x"),
        (IdFormat.AUTO, "0190e5a3-1c00-7000-8000-0000000000 0", "0190e5a3-1c00-7000-8000-0000000000 0"),
        (IdFormat.UUID, str(MESSAGE), MESSAGE),
        (IdFormat.TEXT, str(MESSAGE), str(MESSAGE)),
        (IdFormat.TEXT, 7, "7"),
        (IdFormat.INT, "7", 7),
        (IdFormat.INT, b"7", 7),
        (IdFormat.INT, str(2**128 - 1), 2**128 - 1),
        (IdFormat.BYTES, MESSAGE.bytes, MESSAGE),
    ],
)
def test_an_id_is_the_one_that_a_probe_makes_of_the_same_value(
    kind: IdFormat, value: object, expected: uuid.UUID | int | str
) -> None:
    """So that a tap and a service that embeds a probe speak of one message."""
    assert build_id_reader(kind)(value) == id_bytes(expected)


@pytest.mark.parametrize(
    ("kind", "value", "wire_kind", "text"),
    [
        (IdFormat.AUTO, str(MESSAGE), WireKind.UUID, None),
        (IdFormat.UUID, str(MESSAGE), WireKind.UUID, None),
        (IdFormat.AUTO, 7, WireKind.INT, None),
        (IdFormat.INT, b"7", WireKind.INT, None),
        (IdFormat.AUTO, "7", WireKind.TEXT, b"7"),
        (IdFormat.AUTO, b"gr\xc3\xb6\xc3\x9fe", WireKind.TEXT, "größe".encode()),
        (IdFormat.TEXT, 7, WireKind.TEXT, b"7"),
        (IdFormat.BYTES, MESSAGE.bytes, WireKind.BYTES, None),
    ],
)
def test_an_id_that_was_read_knows_what_it_was(
    kind: IdFormat, value: object, wire_kind: WireKind, text: bytes | None
) -> None:
    """So that what a tap stamps is shown as its owners gave it."""
    assert encode_id(build_id_reader(kind)(value))[1:] == (wire_kind, text)


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (IdFormat.AUTO, "", "an id is a text of 1 to 1024 characters, got ''"),
        (IdFormat.AUTO, "x" * (MAX_ID_CHARS + 1), "an id is a text of 1 to 1024 characters, got 'xxx"),
        (IdFormat.AUTO, 1.5, "an id is a whole number, got 1.5"),
        (IdFormat.AUTO, True, "an id is a whole number, got True"),
        (IdFormat.AUTO, -1, "an integer message id lies in 0 … 2^128 - 1, got -1"),
        (IdFormat.AUTO, b"\xff", "'utf-8' codec can't decode byte 0xff"),
        (IdFormat.UUID, "order 7", "an id is a UUID in text, got 'order 7'"),
        (IdFormat.UUID, 7, "an id is a UUID in text, got 7"),
        (IdFormat.INT, "x", "an id is a whole number, got 'x'"),
        (IdFormat.INT, "9" * 40, "an id is a whole number, got '999"),
        (IdFormat.BYTES, "0123456789abcdef", "an id is 16 bytes, got '0123456789abcdef'"),
    ],
)
def test_an_id_that_cannot_be_is_refused(kind: IdFormat, value: object, told: str) -> None:
    """With what was expected, and what was got."""
    with pytest.raises(ValueError, match=re.escape(told)):
        build_id_reader(kind)(value)


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        (TimeUnit.US, MOMENT_US),
        (TimeUnit.US, str(MOMENT_US)),
        (TimeUnit.US, str(MOMENT_US).encode()),
        (TimeUnit.NS, MOMENT_US * 1_000 + 999),
        (TimeUnit.NS, str(MOMENT_US * 1_000)),
        (TimeUnit.MS, 1_700_000_000_123.456),
        (TimeUnit.S, 1_700_000_000.123456),
        (TimeUnit.S, "1700000000.123456"),
        (TimeUnit.ISO, "2023-11-14T22:13:20.123456Z"),
        (TimeUnit.ISO, b"2023-11-14T23:13:20.123456789+01:00"),
        (TimeUnit.ISO, datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)),
    ],
)
def test_an_event_time_is_read_to_the_microsecond(unit: TimeUnit, value: object) -> None:
    """In every unit, as a number, as text, and as a calendar has it."""
    assert build_time_reader(unit)(value) == MOMENT_US


@pytest.mark.parametrize(
    ("unit", "value", "told"),
    [
        (TimeUnit.US, -1, "an event time lies between 1970 and 2255, got -1 µs since 1970"),
        (TimeUnit.S, 10**30, "an event time lies between 1970 and 2255, got 100000000000000000000000"),
        (TimeUnit.US, True, "an event time is a number, got True"),
        (TimeUnit.US, None, "an event time is a number, got None"),
        (TimeUnit.S, float("nan"), "an event time lies between 1970 and 2255, got -1"),
        (TimeUnit.S, "1e999", "an event time lies between 1970 and 2255, got -1"),
        (TimeUnit.S, "yesterday", "an event time is a number, got 'yesterday'"),
        (TimeUnit.ISO, "2023-11-14T22:13:20", "an event time has a zone, such as Z; got '2023-11-14T22:13:20'"),
        (TimeUnit.ISO, 1_700_000_000, "an event time is ISO 8601 text, got 1700000000"),
        (TimeUnit.ISO, "soon", "Invalid isoformat string: 'soon'"),
    ],
)
def test_an_event_time_that_cannot_be_is_refused(unit: TimeUnit, value: object, told: str) -> None:
    """With what was expected, and what was got."""
    with pytest.raises(ValueError, match=re.escape(told)):
        build_time_reader(unit)(value)


@given(st.sampled_from(IdFormat), ANYTHING)
def test_anything_is_an_id_or_a_value_error(kind: IdFormat, value: object) -> None:
    """Nothing else is raised, and what is returned fits the wire."""
    with suppress(ValueError):
        assert len(build_id_reader(kind)(value)) == 16


@given(st.sampled_from(TimeUnit), ANYTHING | st.from_regex(r"[0-9.eE+-]{1,40}", fullmatch=True))
def test_anything_is_an_event_time_or_a_value_error(unit: TimeUnit, value: object) -> None:
    """Nothing else is raised, and what is returned a window can hold."""
    with suppress(ValueError):
        assert 0 <= build_time_reader(unit)(value) < 2**53
