"""Check of the self-test at the end of a micro-batch: windows that are final are compared with what was injected."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from hopwatch.monitor.selftest.comparison import SelftestOutcome, compare_minute
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.selftest.stream import SELFTEST_CONFIG, SELFTEST_STREAM
from hopwatch.monitor.store import reader, selftest

GRACE_US: Final = 60_000_000
"""How long after a window is final a difference may go away: an account that comes late amends it."""


def check_minutes(connection: Connection, watermark_us: int) -> None:
    """Compare the minutes whose windows are final by now: at once where all is as injected, else after a grace."""
    final_after_us = SELFTEST_CONFIG.terms.final_at_us(0)
    for injected in selftest.read_unchecked(connection, watermark_us - final_after_us):
        outcome = _compare(connection, injected)
        is_over = injected.start_us + final_after_us + GRACE_US <= watermark_us
        if is_over or not outcome.problems:
            selftest.write_outcome(connection, injected.start_us, outcome, watermark_us)


def _compare(connection: Connection, injected: InjectedMinute) -> SelftestOutcome:
    result = reader.read_window(connection, SELFTEST_STREAM, injected.start_us)
    listed = reader.read_window_lost_ids(connection, SELFTEST_STREAM, injected.start_us)
    return compare_minute(injected, result if result is not None and result.status.is_final else None, listed)
