"""Tests of the pace: never faster than the rate, whatever the moments at which it is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.redrive.pace import MAX_BEHIND_S, Pace

STEPS = st.lists(st.floats(0, 2), min_size=1, max_size=50)


@given(st.floats(0.1, 10_000), STEPS, st.integers(1, 1_000))
def test_no_span_has_more_than_the_rate(rate_per_s: float, steps_s: list[float], most: int) -> None:
    """From each moment to each later one: the rate's share, what may be caught up with, and the one that is due."""
    pace, now_s = Pace(rate_per_s, 0.0), 0.0
    sent: list[tuple[float, int]] = []
    for step_s in steps_s:
        now_s += step_s
        due = pace.take_due(now_s, most)
        assert 0 <= due <= most
        sent.append((now_s, due))
    for place, (begin_s, _) in enumerate(sent):
        total = 0
        for at_s, due in sent[place:]:
            total += due
            assert total <= (at_s - begin_s + MAX_BEHIND_S) * rate_per_s + 1 + 1e-6 * total


def test_messages_are_even() -> None:
    """At 10 a second one is due each 0.1 s, and the time that remains is told."""
    pace = Pace(10, 5.0)
    assert pace.take_due(5.0, 100) == 1
    assert pace.remaining_s(5.04) == pytest.approx(0.06)
    assert [pace.take_due(now_s, 100) for now_s in (5.05, 5.11, 5.15, 5.32)] == [0, 1, 0, 2]
    assert pace.remaining_s(9.0) == 0.0
