"""Tests of the ids of events: read as they are written, with the time that they know."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
import uuid_utils
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import ids

MOMENT = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
MOMENT_US = int(MOMENT.timestamp()) * 1_000_000


@given(st.uuids())
def test_a_uuid_is_read_as_it_is_written(event_id: uuid.UUID) -> None:
    """In either case of letters; and written as Python writes it."""
    assert ids.parse_uuid(str(event_id)) == ids.parse_uuid(str(event_id).upper()) == event_id.bytes
    assert ids.format_uuid(event_id.bytes) == str(event_id)


@given(st.text() | st.uuids().map(lambda one: one.hex) | st.uuids().map(lambda one: f"{{{one}}}"))
def test_nothing_else_is_one(text: str) -> None:
    """Neither without dashes nor in braces, which Python would take."""
    with pytest.raises(ValueError, match="an id is a UUID such as"):
        ids.parse_uuid(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1),
        ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
    ],
)
def test_the_examples_of_the_rfc_know_their_moment(text: str, version: int) -> None:
    """RFC 9562, appendix A: all three are of one moment."""
    event_id = ids.parse_uuid(text)
    assert ids.uuid_version(event_id) == version
    assert ids.uuid_time_us(event_id) == MOMENT_US


@given(st.binary(min_size=16, max_size=16), st.sampled_from([1, 6, 7]))
def test_the_time_of_an_id_is_what_others_read_of_it(chance: bytes, version: int) -> None:
    """To the millisecond, whatever the rest of it is."""
    made = bytearray(chance)
    made[6], made[8] = version << 4 | made[6] & 0x0F, 0x80 | made[8] & 0x3F
    found = ids.uuid_time_us(bytes(made))
    if found is not None and found >= 0:
        assert found // 1_000 == uuid_utils.UUID(bytes=bytes(made)).timestamp


@given(st.uuids(version=4) | st.uuids(version=5) | st.just(uuid.UUID(int=0)) | st.just(uuid.UUID(int=2**128 - 1)))
def test_others_know_none(event_id: uuid.UUID) -> None:
    """Chance and names have no time, nor have nil and max."""
    assert ids.uuid_time_us(event_id.bytes) is None
    assert ids.uuid_version(event_id.bytes) in {0, 4, 5}
