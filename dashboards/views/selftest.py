"""Lines and rows of the self-test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo

from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.display import texts
from hopwatch.monitor.selftest.summary import SelftestSummary, describe_overdue, describe_summary


@dataclass(frozen=True, slots=True)
class SelftestLine:
    """A sentence on the self-test, and whether it is bad."""

    words: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class SelftestRow:
    """A minute that failed: its start, also in words, and its problems."""

    start_us: int
    moment: str
    problems: tuple[str, ...]


def build_lines(standing: StreamsOverview, now_us: int, zone: tzinfo) -> tuple[SelftestLine, ...]:
    """Return what there is to say of the last hour; nothing where there is no self-test."""
    summary = standing.selftest
    if summary is None:
        return ()
    lines = [SelftestLine(f"{describe_summary(summary)}.", bool(summary.failed or summary.false))]
    is_running = standing.reached.stopped_us is None and not standing.reached.is_once
    late = describe_overdue(summary, now_us, lambda at_us: texts.format_moment(at_us, zone, "%H:%M"))
    return (*lines, SelftestLine(f"{late}.", is_bad=True)) if is_running and late else tuple(lines)


def build_rows(summary: SelftestSummary, zone: tzinfo) -> Iterator[SelftestRow]:
    """Yield the minutes of the last hour that failed, the newest first."""
    for minute in summary.problems:
        moment = texts.format_moment(minute.start_us, zone, "%H:%M")
        yield SelftestRow(minute.start_us, moment, tuple(problem.text for problem in minute.problems))
