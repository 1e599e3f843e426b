"""Tests of messages without an event time: whichever minute they are of, it is among those that they count in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
from hopwatch.probes.taps.untimed_messages import MAX_WINDOWS_APART, WINDOWS_APART, UntimedMessages
from hopwatch.probes.values import SkipReason
from hopwatch.testing import EPOCH_US
from tests.support.drops import drops
from tests.support.tap_bench import Place

MINUTE_US = 60_000_000
HOUR_AGO_US = EPOCH_US - 60 * MINUTE_US
DAY_AGO_US = EPOCH_US - 1_440 * MINUTE_US


def minutes(untimed: UntimedMessages, *said: int | None, now_us: int = EPOCH_US) -> Counter[int]:
    """Return in how many minutes before the manual clock's beginning bad messages count; ``None`` is a bad one."""
    found: Counter[int] = Counter()
    for event_us in said:
        if event_us is None:
            untimed.add_bad(SkipReason.NO_TIME, 1)
        else:
            found.update(
                {(EPOCH_US - one.window_start_us) // MINUTE_US: one.number for one in untimed.add_good(event_us)}
            )
    found.update({(EPOCH_US - one.window_start_us) // MINUTE_US: one.number for one in untimed.flush(now_us)})
    return found


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((HOUR_AGO_US, None, HOUR_AGO_US), range(57, 64)),
        ((HOUR_AGO_US, None, HOUR_AGO_US + 20 * MINUTE_US), range(37, 64)),
        ((HOUR_AGO_US, None), [*range(57, 64), 0, 1, 2, 3]),
        ((None,), range(4)),
        ((HOUR_AGO_US,), ()),
    ],
)
def test_neighbours_say_where_a_message_belongs(said: tuple[int | None, ...], expected: Sequence[int]) -> None:
    """The minutes between them and near them; where none is behind it, it may be of now too."""
    assert minutes(UntimedMessages(), *said) == dict.fromkeys(expected, 1)


def test_the_next_good_one_says_more() -> None:
    """A later good message tells the minutes of earlier bad ones, and minutes near it count too."""
    untimed = UntimedMessages()
    assert set(minutes(untimed, HOUR_AGO_US, None, None)) == {*range(57, 64), 0, 1, 2, 3}
    assert minutes(untimed, HOUR_AGO_US + 2 * MINUTE_US) == {55: 2, 56: 2}
    assert minutes(untimed, HOUR_AGO_US) == {}


def test_neighbours_that_are_far_apart_fill_no_days() -> None:
    """Neighbours far apart count for the minutes near each alone, and for none before 1970."""
    far_us = HOUR_AGO_US + (MAX_WINDOWS_APART + 1) * MINUTE_US
    assert len(minutes(UntimedMessages(), HOUR_AGO_US, None, far_us)) == 2 * (2 * WINDOWS_APART + 1)
    assert len(minutes(UntimedMessages(), 0, None, 0)) == WINDOWS_APART + 1


ARRIVALS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, WINDOWS_APART), st.booleans()), max_size=30).map(
    sorted
)


@given(ARRIVALS, st.integers(1, 7))
def test_a_message_counts_in_its_minute_whatever_else_is_read(arrivals: list[tuple[int, int, bool]], look: int) -> None:
    """Read in order of arrival, some minutes after its event, by a tap that is far behind, some at a time.

    Of what came before the first one that can be read, nothing is known.
    """
    place = Place()
    found = [
        StampableMessage(bytes(16), DAY_AGO_US + (arrived - lag) * MINUTE_US)
        if is_good
        else SkippedMessage(SkipReason.NOT_JSON)
        for arrived, lag, is_good in arrivals
    ]
    for first in range(0, len(found), look):
        place.stamping.stamp_messages(found[first : first + look])
    place.probe.flush()
    told: Counter[int] = Counter()
    for drop in drops(place.sink.records):
        told[(drop.window_start_ms * 1_000 - DAY_AGO_US) // MINUTE_US] += drop.count
    goods = [place for place, (*_, is_good) in enumerate(arrivals) if is_good]
    between = arrivals[goods[0] : goods[-1]] if goods else []
    bad = Counter(arrived - lag for arrived, lag, is_good in between if not is_good)
    assert all(told[minute] >= count for minute, count in bad.items())
    assert place.stamping.tally.bad.total() == len(arrivals) - len(goods)
