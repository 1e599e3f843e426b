"""Tests of the summary of the self-test."""

from __future__ import annotations

import pytest

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.selftest.comparison import ProblemKind, SelftestProblem
from hopwatch.monitor.selftest.summary import (
    OVERDUE_US,
    ProblemMinute,
    SelftestSummary,
    describe_overdue,
    describe_problem,
    describe_summary,
)
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.windows import at


def summary(newest_us: int | None = None, since_us: int | None = at(0)) -> SelftestSummary:
    """Return the summary of an hour with two minutes that failed."""
    return SelftestSummary(60, 2, 1_700, 1_690, 1, newest_us, since_us, ())


def test_an_hour_is_said_in_a_sentence() -> None:
    """Minutes first, then messages: found, lost, and called lost by mistake."""
    assert describe_summary(summary()) == (
        "58 of 60 minutes were measured as injected; lost messages found: 1,690 of 1,700, called lost by mistake: 1"
    )
    assert describe_summary(summary()._replace(minutes=0)) == "no minute of the last hour is compared yet"


@pytest.mark.parametrize(
    ("newest_us", "since_us", "now_us", "is_late"),
    [
        (None, None, at(10_000), False),
        (None, at(0), at(0) + WINDOW_US + OVERDUE_US, False),
        (None, at(0), at(0) + WINDOW_US + OVERDUE_US + 1, True),
        (at(10), at(0), at(10) + OVERDUE_US, False),
        (at(10), at(0), at(10) + OVERDUE_US + 1, True),
        (at(10), at(1_000), at(1_000), False),
    ],
)
def test_a_minute_is_overdue_for_comparison(
    newest_us: int | None,
    since_us: int | None,
    now_us: int,
    is_late: bool,  # noqa: FBT001 - a fact
) -> None:
    """Five minutes behind the end of the newest, or of the first one behind a start; without a self-test never."""
    told = describe_overdue(summary(newest_us, since_us), now_us, format_iso)
    assert bool(told) == is_late


def test_an_overdue_comparison_names_the_newest() -> None:
    """Or says that there is none."""
    late = describe_overdue(summary(at(10)), at(100), format_iso)
    assert late == (
        f"minutes are injected or compared no more, the newest is that of {format_iso(at(10))}: "
        "nothing shows that what is measured is right"
    )
    assert "no more, there is none: " in describe_overdue(summary(), at(100), format_iso)


def test_a_problem_is_said_with_its_minute() -> None:
    """The first one, and how many more there are."""
    problems = tuple(SelftestProblem(ProblemKind.WRONG_COUNT, f"problem {number}") for number in range(3))
    assert describe_problem(ProblemMinute(at(1), problems), format_iso) == f"{format_iso(at(1))}: problem 0, and 2 more"
    assert describe_problem(ProblemMinute(at(1), problems[:1]), format_iso) == f"{format_iso(at(1))}: problem 0"
