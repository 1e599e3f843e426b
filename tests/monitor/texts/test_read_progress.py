"""Tests of what is said of a store whose monitor has read no more for a while."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.texts.read_progress import BEHIND_US, Notice, ReadProgress, iso_second
from tests.support.spool import at_us

SECOND_US = 1_000_000
NOW_US = at_us(600)


def notice(reached: ReadProgress) -> Notice | None:
    """Return what is said ten minutes after the first window began."""
    return reached.notice(NOW_US, iso_second)


TOLD = {
    "fresh": (ReadProgress(NOW_US - 5 * SECOND_US), None),
    "at the bound": (ReadProgress(NOW_US - 60 * SECOND_US), None),
    "behind": (
        ReadProgress(NOW_US - 90 * SECOND_US),
        Notice(
            "The monitor is 1 min 30 s behind the clock: it is slow, or has just stopped. What is shown is as of "
            "2026-01-01T00:08:30Z.",
            is_grave=False,
        ),
    ),
    "still": (
        ReadProgress(NOW_US - 400 * SECOND_US + 1),
        Notice(
            "The monitor has read nothing that came after 2026-01-01T00:03:20Z (6 min 39 s ago): it does not run, is "
            "stuck, or has a backlog. What is shown is as of then.",
            is_grave=True,
        ),
    ),
    "before the first batch": (
        ReadProgress(0),
        Notice("The monitor has not finished its first batch yet.", is_grave=False),
    ),
    "stopped": (
        ReadProgress(NOW_US - 32 * SECOND_US, stopped_us=NOW_US - 30 * SECOND_US),
        Notice(
            "The monitor was stopped at 2026-01-01T00:09:30Z (30 s ago). What is shown is as of 2026-01-01T00:09:28Z.",
            is_grave=False,
        ),
    ),
    "stopped for long": (
        ReadProgress(NOW_US - 3_602 * SECOND_US, stopped_us=NOW_US - 3_601 * SECOND_US),
        Notice(
            "The monitor was stopped at 2025-12-31T23:09:59Z (1 h 0 min ago). What is shown is as of "
            "2025-12-31T23:09:58Z.",
            is_grave=True,
        ),
    ),
    "stopped before the first batch": (
        ReadProgress(0, stopped_us=NOW_US - 30 * SECOND_US),
        Notice(
            "The monitor was stopped at 2026-01-01T00:09:30Z (30 s ago), before it had finished its first batch.",
            is_grave=False,
        ),
    ),
    "filled once": (ReadProgress(NOW_US - 4_000 * SECOND_US, is_once=True), None),
    "filled once, where a monitor was stopped before": (ReadProgress(0, is_once=True, stopped_us=1), None),
    "ahead of the clock": (ReadProgress(NOW_US + 4_000 * SECOND_US), None),
}


@pytest.mark.parametrize(("reached", "told"), TOLD.values(), ids=TOLD)
def test_a_monitor_that_reads_no_more_is_told_with_the_moment(reached: ReadProgress, told: Notice | None) -> None:
    """In a sentence; one that was stopped by somebody is no failure, and a store that was filled once has none."""
    assert notice(reached) == told


@given(st.integers(0, 2**50), st.integers(1, 2**50))
def test_nothing_is_said_of_what_is_fresh_and_something_of_what_is_not(now_us: int, through_us: int) -> None:
    """A notice appears exactly when the store is behind."""
    assert (ReadProgress(through_us).notice(now_us, iso_second) is None) == (now_us - through_us <= BEHIND_US)


@pytest.mark.parametrize(
    ("reached", "told"),
    [
        (ReadProgress(at_us(400), is_once=True), "a store that was filled once, as of 2026-01-01T00:06:40Z"),
        (ReadProgress(0, is_once=True), "a store that was filled once"),
        (ReadProgress(at_us(400)), ""),
    ],
)
def test_a_store_that_was_filled_once_is_as_of_its_newest_record(reached: ReadProgress, told: str) -> None:
    """Calmly: nothing moves it, and nothing should."""
    assert reached.once(iso_second) == told
