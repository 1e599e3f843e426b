"""Windows that a message may be of whose span did not come."""

from __future__ import annotations

from typing import Final

from hopwatch.probes.taps.otlp.event_windows import GENERATION_US, LATE_US, MAX_WINDOWS, EventWindows

MINUTE: Final = 60_000_000
NOW: Final = 10_000 * MINUTE


def test_a_message_was_on_its_way_for_its_transit() -> None:
    """And its span for a while: one that is handled now was sent at most four and a half minutes ago, by default."""
    assert EventWindows().find(NOW, NOW + 1) == range(10_000 - 5, 10_000 + 1)
    assert EventWindows(600_000_000).find(NOW, NOW) == range(10_000 - 12, 10_000 + 1)


def test_a_period_has_all_its_minutes() -> None:
    """From the first message that may be missing to the last."""
    assert EventWindows().find(NOW, NOW + 2 * MINUTE) == range(10_000 - 5, 10_000 + 3)


def test_clocks_that_are_off_and_backlogs_count() -> None:
    """Event times may lie ahead of the clock of the tap, or far behind it."""
    windows = EventWindows()
    windows.note(NOW + 4 * MINUTE, NOW)
    windows.note(NOW - 20 * MINUTE, NOW)
    assert windows.find(NOW, NOW) == range(10_000 - 23, 10_000 + 5)


def test_what_was_seen_long_ago_counts_no_more() -> None:
    """Once a backlog is worked off, and a while has passed."""
    windows = EventWindows()
    windows.note(NOW - 20 * MINUTE, NOW)
    later = NOW + GENERATION_US + 1
    windows.note(later, later)
    assert windows.find(NOW, NOW) == range(10_000 - 23, 10_000 + 1)
    later += GENERATION_US + 1
    windows.note(later - LATE_US, later)
    assert windows.find(NOW, NOW) == range(10_000 - 5, 10_000 + 1)


def test_a_message_that_may_be_of_any_window_is_of_none() -> None:
    """Clocks that are off by more than a day leave no window to count it in."""
    assert EventWindows().find(NOW, NOW + MAX_WINDOWS * MINUTE) is None
    windows = EventWindows()
    windows.note(0, NOW)
    assert windows.find(NOW, NOW) is None


def test_there_is_no_window_before_1970() -> None:
    """Clocks may say that it is earlier."""
    assert EventWindows().find(MINUTE, 2 * MINUTE) == range(3)
