"""Tests of documents: where id and event time are found, and why they are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.documents import DocumentReader, SkippedMessage, StampableMessage, find_value, parse_path
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit

READER = DocumentReader("meta.id", "at", IdFormat.AUTO, TimeUnit.US)


def test_id_and_event_time_are_found_at_their_paths() -> None:
    """As deep as the keys go."""
    assert READER.read(b'{"meta": {"id": "a"}, "at": 5}') == StampableMessage(id_bytes("a"), 5)
    assert find_value({"a": {"b": [1]}}, ("a", "b")) == [1]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", SkippedMessage(SkipReason.NOT_JSON)),
        (b"{", SkippedMessage(SkipReason.NOT_JSON)),
        (b'{"a": 1},{"b": 2}', SkippedMessage(SkipReason.NOT_JSON)),
        (b"\xff", SkippedMessage(SkipReason.NOT_JSON)),
        (b"[" * 100_000, SkippedMessage(SkipReason.NOT_JSON)),
        (b"7", SkippedMessage(SkipReason.NO_ID)),
        (b"[]", SkippedMessage(SkipReason.NO_ID)),
        (b'{"meta": 7, "at": 5}', SkippedMessage(SkipReason.NO_ID, 5)),
        (b'{"meta": {"id": null}, "at": 5}', SkippedMessage(SkipReason.NO_ID, 5)),
        (b'{"meta": {"id": {}}, "at": 5}', SkippedMessage(SkipReason.BAD_ID, 5)),
        (b'{"meta": {"id": {}}, "at": "x"}', SkippedMessage(SkipReason.BAD_ID)),
        (b'{"meta": {"id": "a"}}', SkippedMessage(SkipReason.NO_TIME)),
        (b'{"meta": {"id": "a"}, "at": null}', SkippedMessage(SkipReason.NO_TIME)),
        (b'{"meta": {"id": "a"}, "at": -5}', SkippedMessage(SkipReason.BAD_TIME)),
        (b'{"meta": {"id": "a"}, "at": 1e400}', SkippedMessage(SkipReason.NOT_JSON)),
    ],
)
def test_what_cannot_be_stamped_has_one_reason(data: bytes, expected: SkippedMessage) -> None:
    """The id's before the time's; and the event time where it can be read all the same."""
    assert READER.read(data) == expected


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", ".".join("a" * 17)])
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    """With the form that is expected."""
    with pytest.raises(TapUsageError, match=r"a path is 1 to 16 keys with dots between, such as meta\.id; got '"):
        parse_path(path)


KEYS = st.sampled_from(["meta", "id", "at"])
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(KEYS, inner) | st.lists(inner, max_size=2)
)


@given(st.binary() | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_nothing_that_a_line_holds_can_raise(data: bytes) -> None:
    """Any value of a line can be stamped or has a reason for which it is skipped."""
    assert isinstance(READER.read(data), StampableMessage | SkippedMessage)
