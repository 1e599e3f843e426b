"""Tests of the count of late messages while a step is under way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.rate.late_counter import LateCounter

spans = st.lists(st.floats(0, 2), max_size=30)


@given(spans, st.data(), spans)
def test_looks_in_between_change_no_count(between_s: list[float], data: st.DataObject, looks_s: list[float]) -> None:
    """At each look those are late whose bound has passed without their arrival, whenever was looked before."""
    due_s = np.cumsum([*between_s, 0.5])
    lags_s = np.array(data.draw(st.lists(st.floats(0, 3) | st.just(np.inf), min_size=len(due_s), max_size=len(due_s))))
    counter = LateCounter(due_s, 1.0)
    for moment_s in np.cumsum([0.0, *looks_s]):
        arrived_s = np.where(due_s + lags_s <= moment_s, due_s + lags_s, np.inf)
        late = (due_s < moment_s - 1.0) & (arrived_s - due_s > 1.0)
        assert counter.count_late(moment_s, lambda start, stop: arrived_s[start:stop]) == late.sum()  # noqa: B023 - at once


def test_a_look_reads_only_messages_that_were_not_judged_before() -> None:
    """A step of millions of messages costs its sender no time."""
    read: list[tuple[int, int]] = []

    def read_arrivals(start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        read.append((start, stop))
        return np.full(stop - start, np.inf)

    counter = LateCounter(np.arange(10.0), 0.5)
    assert [counter.count_late(moment_s, read_arrivals) for moment_s in (0.2, 3.0, 3.1, 20.0)] == [0, 3, 3, 10]
    assert read == [(0, 3), (3, 10)]
