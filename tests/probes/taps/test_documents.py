"""Tests of documents: where id and event time are found, and why they are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.documents import DocumentReader, Seen, Unseen, find, path_keys
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import Bad, IdKind, TimeUnit

READER = DocumentReader("meta.id", "at", IdKind.AUTO, TimeUnit.US)


def test_id_and_event_time_are_found_at_their_paths() -> None:
    """As deep as the keys go."""
    assert READER.read(b'{"meta": {"id": "a"}, "at": 5}') == Seen(id_bytes("a"), 5)
    assert find({"a": {"b": [1]}}, ("a", "b")) == [1]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Unseen(Bad.NOT_JSON)),
        (b"{", Unseen(Bad.NOT_JSON)),
        (b'{"a": 1},{"b": 2}', Unseen(Bad.NOT_JSON)),
        (b"\xff", Unseen(Bad.NOT_JSON)),
        (b"[" * 100_000, Unseen(Bad.NOT_JSON)),
        (b"7", Unseen(Bad.NO_ID)),
        (b"[]", Unseen(Bad.NO_ID)),
        (b'{"meta": 7, "at": 5}', Unseen(Bad.NO_ID, 5)),
        (b'{"meta": {"id": null}, "at": 5}', Unseen(Bad.NO_ID, 5)),
        (b'{"meta": {"id": {}}, "at": 5}', Unseen(Bad.BAD_ID, 5)),
        (b'{"meta": {"id": {}}, "at": "x"}', Unseen(Bad.BAD_ID)),
        (b'{"meta": {"id": "a"}}', Unseen(Bad.NO_TIME)),
        (b'{"meta": {"id": "a"}, "at": null}', Unseen(Bad.NO_TIME)),
        (b'{"meta": {"id": "a"}, "at": -5}', Unseen(Bad.BAD_TIME)),
        (b'{"meta": {"id": "a"}, "at": 1e400}', Unseen(Bad.NOT_JSON)),
    ],
)
def test_what_cannot_be_stamped_has_one_reason(data: bytes, expected: Unseen) -> None:
    """The id's before the time's; and the event time where it can be read all the same."""
    assert READER.read(data) == expected


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", ".".join("a" * 17)])
def test_a_path_that_cannot_be_is_refused(path: str) -> None:
    """With the form that is expected."""
    with pytest.raises(TapUsageError, match=r"a path is 1 to 16 keys with dots between, such as meta\.id; got '"):
        path_keys(path)


KEYS = st.sampled_from(["meta", "id", "at"])
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(KEYS, inner) | st.lists(inner, max_size=2)
)


@given(st.binary() | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_nothing_that_a_line_holds_can_raise(data: bytes) -> None:
    """It can be stamped, or has a reason."""
    assert isinstance(READER.read(data), Seen | Unseen)
