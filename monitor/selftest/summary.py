"""Summary of the self-test over a span, for metrics, pages and ``hopwatch doctor``."""

from __future__ import annotations

from typing import Final, NamedTuple

from hopwatch.monitor.selftest.comparison import SelftestProblem
from hopwatch.monitor.selftest.stream import SELFTEST_CONFIG
from hopwatch.monitor.texts.read_progress import MomentFormat
from hopwatch.probes.contract.limits import WINDOW_US

SUMMARY_US: Final = 3_600_000_000
"""Span of the summary: the last hour."""
OVERDUE_US: Final = SELFTEST_CONFIG.terms.final_at_us(0) + 4 * WINDOW_US
"""How old the start of the newest compared minute may be."""


class ProblemMinute(NamedTuple):
    """A minute that was not measured as it was injected; ``start_us`` is that of its window."""

    start_us: int
    problems: tuple[SelftestProblem, ...]


class SelftestSummary(NamedTuple):
    """Outcomes of some minutes: ``lost``, ``found`` and ``false`` are messages, see :class:`SelftestOutcome`.

    ``newest_us`` is the start of the newest minute that was compared, of all times; None without any. ``since_us`` is
    when the monitor began to inject, None where it never has.
    """

    minutes: int
    failed: int
    lost: int
    found: int
    false: int
    newest_us: int | None
    since_us: int | None
    problems: tuple[ProblemMinute, ...]


def is_overdue(summary: SelftestSummary, now_us: int) -> bool:
    """Return whether a minute should have been compared by now."""
    if summary.since_us is None:
        return False
    # The first minute is the one behind the start.
    return now_us > max(summary.newest_us or 0, summary.since_us + WINDOW_US) + OVERDUE_US


def describe_overdue(summary: SelftestSummary, now_us: int, moment: MomentFormat) -> str:
    """Describe that no minute was compared for too long; empty if one was."""
    if not is_overdue(summary, now_us):
        return ""
    newest = f"the newest is that of {moment(summary.newest_us)}" if summary.newest_us is not None else "there is none"
    return f"minutes are injected or compared no more, {newest}: nothing shows that what is measured is right"


def describe_problem(minute: ProblemMinute, moment: MomentFormat) -> str:
    """Describe the first problem of a minute, and how many more it has."""
    more = f", and {len(minute.problems) - 1:,} more" if len(minute.problems) > 1 else ""
    return f"{moment(minute.start_us)}: {minute.problems[0].text}{more}"


def describe_summary(summary: SelftestSummary) -> str:
    """Describe the outcomes in a sentence."""
    if not summary.minutes:
        return "no minute of the last hour is compared yet"
    lost = f"lost messages found: {summary.found:,} of {summary.lost:,}, called lost by mistake: {summary.false:,}"
    return f"{summary.minutes - summary.failed:,} of {summary.minutes:,} minutes were measured as injected; {lost}"
