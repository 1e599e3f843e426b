"""Tests of event times in another unit, or of another day: they are no observations, and hide no loss."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch import Probe
from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.event_times import MAX_AHEAD_US, describe_fault, guess_moments_us, is_plausible
from hopwatch.probes.recorder import refuse_array, refuse_stamp
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations
from tests.support.drops import drops

MINUTE_MS = EPOCH_US // 1_000
DAY_US = 86_400_000_000
NOW = datetime(2023, 11, 14, 22, 14, tzinfo=UTC)
BEGINNING = "a probe of orders at router drops observations: an event time"


def singly(probe: Probe, event_time: datetime | int) -> None:
    """Stamp a message by itself."""
    probe.arrived(1, event_time)


def in_an_array(probe: Probe, event_time: datetime | int) -> None:
    """Stamp a message in an array of one."""
    event_us = event_time if isinstance(event_time, int) else int(event_time.timestamp() * 1e6)
    probe.arrived_many([1], [event_us])


def stamped(
    call: Callable[[Probe, datetime | int], None],
    event_time: datetime | int,
    *,
    later_s: float = 0,
) -> tuple[MemorySink, int]:
    """Return what is sent of a message that is stamped so long after the start of the minute; and what was dropped."""
    sink, clock = MemorySink(), ManualClock()
    probe = Probe("orders", "router", sink, clock=clock)
    clock.advance(later_s)
    call(probe, event_time)
    probe.close()
    return sink, probe.dropped


@pytest.mark.parametrize("call", [singly, in_an_array])
@pytest.mark.parametrize(
    ("event_time", "words"),
    [
        (EPOCH_US // 1_000_000, "as an int is µs since 1970, got 1700000040, which looks like seconds"),
        (EPOCH_US // 1_000, "as an int is µs since 1970, got 1700000040000, which looks like milliseconds"),
    ],
)
def test_another_unit_is_a_drop_of_this_minute(
    call: Callable[[Probe, datetime | int], None], event_time: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing goes out with a date of 1970; the log has the value and its likely unit, once."""
    sink, dropped = stamped(call, event_time, later_s=5)
    assert (observations(sink), dropped) == ([], 1)
    assert drops(sink.records) == [Drop(MINUTE_MS, 1, "implausible event time")]
    assert [message.startswith(f"{BEGINNING} {words}") for message in caplog.messages] == [True]


@pytest.mark.parametrize("call", [singly, in_an_array])
def test_nanoseconds_are_a_drop_of_this_minute(
    call: Callable[[Probe, datetime | int], None], caplog: pytest.LogCaptureFixture
) -> None:
    """An event time in ns is a drop of this minute, and the log says what it looks like."""
    sink, dropped = stamped(call, EPOCH_US * 1_000)
    words = f"as an int is µs since 1970, got {EPOCH_US}000, which looks like nanoseconds: divide it by 1,000"
    assert caplog.messages == [f"{BEGINNING} {words}"]
    assert (drops(sink.records), dropped) == ([Drop(MINUTE_MS, 1, "bad event time")], 1)


@pytest.mark.parametrize("call", [singly, in_an_array])
def test_a_unit_that_is_wrong_spares_no_minute_that_it_may_mean(call: Callable[[Probe, datetime | int], None]) -> None:
    """A message of three minutes ago is missing in that minute, too; it is one drop all the same."""
    sink, dropped = stamped(call, EPOCH_US // 1_000_000, later_s=180)
    assert dropped == 1
    assert drops(sink.records) == [
        Drop(MINUTE_MS, 1, "implausible event time, perhaps of this minute"),
        Drop(MINUTE_MS + 180_000, 1, "implausible event time"),
    ]


@pytest.mark.parametrize("call", [singly, in_an_array])
@pytest.mark.parametrize(
    ("away", "is_good"),
    [
        (timedelta(hours=-24), True),
        (timedelta(hours=-24, microseconds=-1), False),
        (timedelta(minutes=5), True),
        (timedelta(minutes=5, microseconds=1), False),
    ],
)
def test_an_event_time_of_another_day_is_refused(
    call: Callable[[Probe, datetime | int], None], away: timedelta, *, is_good: bool
) -> None:
    """The bounds are those of a monitor; whose clock is wrong nobody knows, so it counts in both minutes."""
    sink, dropped = stamped(call, NOW + away)
    assert len(observations(sink)) == is_good
    assert dropped == (not is_good)
    other_ms = (EPOCH_US + away // timedelta(microseconds=1)) // 60_000_000 * 60_000
    assert {drop.window_start_ms for drop in drops(sink.records)} == (set() if is_good else {MINUTE_MS, other_ms})


@pytest.mark.parametrize("call", [singly, in_an_array])
@pytest.mark.parametrize("max_age_s", [None, float("inf")])
def test_whoever_reads_what_is_old_takes_any_age(
    call: Callable[[Probe, datetime | int], None], max_age_s: float | None
) -> None:
    """An import of old files is no mistake."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock(), max_age_s=max_age_s) as probe:
        call(probe, NOW - timedelta(days=3_650))
    assert (len(observations(sink)), drops(sink.records)) == (1, [])


def test_a_full_queue_counts_what_is_implausible_under_now() -> None:
    """A drop with an implausible event time counts under the current minute, whatever its cause."""
    sink, clock = MemorySink(), ManualClock()
    with Probe("orders", "router", sink, clock=clock, most_stamps=1) as probe:
        probe.arrived(1, EPOCH_US)
        probe.arrived(2, EPOCH_US // 1_000)
        probe.arrived_many([3, 4, 5], np.full(3, EPOCH_US // 1_000_000))
        probe.missed("unread", EPOCH_US // 1_000)
    assert {drop.window_start_ms for drop in drops(sink.records)} == {MINUTE_MS}


def test_good_stamps_beside_implausible_ones_are_sent() -> None:
    """Singly and in arrays."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        for number in range(4):
            probe.arrived(number, EPOCH_US // (1, 1_000)[number % 2])
        probe.departed_many(np.arange(10, 14), np.array([EPOCH_US, EPOCH_US // 1_000] * 2))
    assert {row.message_id for row in observations(sink)} == {id_bytes(number) for number in (0, 2, 10, 12)}
    assert probe.dropped == 4


MOMENTS = st.integers(EPOCH_US, EPOCH_US + 10 * 365 * DAY_US)


@given(MOMENTS, st.sampled_from([1, 1_000, 1_000_000]))
def test_a_moment_is_known_in_any_unit(moment_us: int, divisor: int) -> None:
    """A moment in µs is taken as it is, and one in ms, s or ns stands for the same moment."""
    assert guess_moments_us(np.array([moment_us // divisor])).tolist() == [moment_us // divisor * divisor]
    assert guess_moments_us(np.array([moment_us * 1_000])).tolist() == [moment_us]
    assert (describe_fault(moment_us // divisor, moment_us, DAY_US) is None) == (divisor == 1)


@given(st.integers(0, 2**53), MOMENTS, st.sampled_from([None, DAY_US]))
def test_one_that_is_refused_counts_as_an_array_of_one(event_us: int, at_us: int, max_age_us: int | None) -> None:
    """In a full queue, singly or not: the same minutes."""
    alone = refuse_stamp(event_us, at_us * 1_000, "full", max_age_us)
    assert alone == refuse_array(np.array([event_us]), at_us * 1_000, "full", max_age_us)


@given(st.integers(0, 2**53), MOMENTS, st.integers(1, 2**53))
def test_the_words_and_the_arrays_agree(event_us: int, at_us: int, max_age_us: int) -> None:
    """A time has an error text if, and only if, an array refuses it."""
    is_taken = bool(is_plausible(np.array([event_us]), np.array([at_us]), max_age_us)[0])
    assert is_taken == (at_us - max_age_us <= event_us <= at_us + MAX_AHEAD_US)
    assert is_taken == (describe_fault(event_us, at_us, max_age_us, is_number=False) is None)
