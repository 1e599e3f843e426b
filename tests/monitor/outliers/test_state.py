"""Tests of the detector's memory: its size, and bytes that are none."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.state import StateError


def test_a_series_takes_at_most_8_kib_and_every_byte_has_a_name() -> None:
    """Padding would be left to chance, and the same memory would not be the same bytes."""
    sizes = [state.STATE[name].itemsize for name in state.STATE.names or ()]
    assert sum(sizes) == state.STATE.itemsize <= 8_192


def test_its_size_does_not_grow_with_age() -> None:
    """The size of the state does not grow with the number of values."""
    count = 5_000
    after, _ = detector.score_values(
        state.new_states(1),
        np.zeros(count, np.int64),
        60_000_000 * np.arange(count),
        np.random.default_rng(1).random(count),
    )
    assert len(state.to_bytes(after)) == len(state.to_bytes(state.new_states(1)))


def test_records_are_taken_and_joined_as_arrays_are() -> None:
    """The bytes of many series are those of each, one after the other, behind one header."""
    after, _ = detector.score_values(
        state.new_states(3), np.arange(3), np.zeros(3, np.int64), np.array([1.0, 2.0, 3.0])
    )
    parts = [state.from_bytes(state.to_bytes(after[[row]])) for row in range(3)]
    assert state.to_bytes(np.concatenate(parts)) == state.to_bytes(after)


GOOD = state.to_bytes(state.new_states(2))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "The bytes of an outlier state begin with b'HWOD'; got b''."),
        (b"PK34" + GOOD[4:], "The bytes of an outlier state begin with b'HWOD'; got b'PK34'."),
        (
            GOOD[:4] + struct.pack("<H", 9) + GOOD[6:],
            "An outlier state of version 9 cannot be read, only 1: score the past anew.",
        ),
        (GOOD[:-1], f"An outlier state of 2 series has {len(GOOD):,} bytes; got {len(GOOD) - 1:,}."),
        (GOOD + b"x", f"An outlier state of 2 series has {len(GOOD):,} bytes; got {len(GOOD) + 1:,}."),
    ],
)
def test_other_bytes_are_refused(data: bytes, told: str) -> None:
    """Foreign, of another version, cut off, too long: with what was got and what to do."""
    with pytest.raises(StateError) as refused:
        state.from_bytes(data)
    assert str(refused.value) == told
