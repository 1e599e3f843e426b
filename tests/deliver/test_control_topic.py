"""Tests of the records that pause deliveries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.control_topic import Pause, decode_pause, encode_pause


@given(st.integers(0, 2**62))
def test_a_pause_comes_back(since_us: int) -> None:
    """With its moment."""
    assert decode_pause(encode_pause(Pause(since_us))) == Pause(since_us)


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"state":"running"}', b'{"state":"paused"}', b"\xff"])
def test_anything_else_is_no_pause(value: bytes | None) -> None:
    """A record without a value ends one, and so does one that cannot be read."""
    assert decode_pause(value) is None
