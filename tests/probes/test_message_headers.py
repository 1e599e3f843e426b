"""Tests of the marks of a message: made once, read at every hop, never guessed."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes import message_headers
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US

MESSAGE = uuid.UUID(int=7)
AT = ("hopwatch-time", b"%d" % EPOCH_US)


def test_new_marks_are_read_as_what_they_are() -> None:
    """From the headers, as a client takes them and as it gives them."""
    made, headers = message_headers.build_headers(EPOCH_US)
    assert message_headers.parse_headers(headers) == made
    assert message_headers.parse_headers(dict(headers)) == made
    assert message_headers.parse_headers([(name, value.decode()) for name, value in headers]) == made
    assert made.event_us == EPOCH_US


@given(st.integers(0, 2**53 - 1))
def test_a_new_id_is_a_uuid_of_version_7(now_us: int) -> None:
    """A new id is a UUID of version 7 with the current millisecond, and ids are unique."""
    made = [uuid.UUID(bytes=message_headers.generate_id(now_us)) for _ in range(10)]
    assert {(one.version, one.variant, one.int >> 80) for one in made} == {(7, uuid.RFC_4122, now_us // 1_000)}
    assert len(set(made)) == 10


@pytest.mark.parametrize(
    ("value", "message_id"), [(str(MESSAGE).encode(), MESSAGE), (b"order 7", "order 7"), ("order 7", "order 7")]
)
def test_an_id_may_be_a_text_of_the_team_s_own(value: bytes | str, message_id: uuid.UUID | str) -> None:
    """A UUID in its usual form is a UUID; anything else is what a probe makes of the same text."""
    assert message_headers.parse_headers([("hopwatch-id", value), AT]) == message_headers.MessageIdentity(
        id_bytes(message_id), EPOCH_US
    )


@pytest.mark.parametrize("headers", [None, [], {}, [("trace", b"1"), ("trace", None)]])
def test_a_message_without_marks_has_none(headers: message_headers.HeadersLike | None) -> None:
    """A message with other headers alone has no marks."""
    assert message_headers.parse_headers(headers) is None


def test_the_last_of_two_marks_counts() -> None:
    """Of two marks the last one counts, as the message was marked anew."""
    found = message_headers.parse_headers([("hopwatch-id", b"old"), AT, ("hopwatch-id", b"new")])
    assert found == message_headers.MessageIdentity(id_bytes("new"), EPOCH_US)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([AT], "a message is marked by hopwatch-id and hopwatch-time, got hopwatch-time alone"),
        ([("hopwatch-id", b"a")], "a message is marked by hopwatch-id and hopwatch-time, got hopwatch-id alone"),
        ([("hopwatch-id", b""), AT], "an id is a text of 1 to 1024 characters, got ''"),
        ([("hopwatch-id", None), AT], "an id is a whole number, got None"),
        ([("hopwatch-id", b"a"), ("hopwatch-time", b"now")], "an event time is a number, got 'now'"),
    ],
)
def test_marks_that_cannot_be_read_are_refused(headers: message_headers.HeadersLike, told: str) -> None:
    """Marks that cannot be read are refused, as other nodes may have read them."""
    with pytest.raises(ValueError, match=re.escape(told)):
        message_headers.parse_headers(headers)


@given(st.lists(st.tuples(st.sampled_from(["hopwatch-id", "hopwatch-time", "x"]), st.none() | st.binary() | st.text())))
def test_no_headers_raise_anything_else(headers: list[tuple[str, object]]) -> None:
    """Any headers are parsed or raise a ValueError."""
    with suppress(ValueError):
        message_headers.parse_headers(headers)
