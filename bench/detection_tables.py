"""Tables of the figures of detectors and alerts; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.alert_cost import AlertCost, BudgetCost
from bench.nab import MarkedSeries, Profile
from bench.noise import GOAL_PER_WEEK, STATIONARY, FalseOutliers
from bench.outliers import GOAL_BYTES, GOAL_MINUTE_S, GOAL_POINT_US, PEER_SERIES, SERIES, Detector
from bench.series_cost import RIVER, SeriesCost, WarmUp
from bench.table_style import format_number, format_ratio, new_table


def outliers(lines: Sequence[Detector]) -> Group:
    """Return what each detector costs and what it includes."""
    table = new_table(
        f"Outliers: one series in batch, a minute of {SERIES:,} series, 2 cores",
        ("detector",),
        ("µs a point", "s a minute", "timed with, series", "bytes a series"),
    )
    for line in lines:
        numbers = (format_number(line.point_us, 1), format_number(line.minute_s, 2))
        table.add_row(line.who, *numbers, f"{line.timed_series:,}", format_number(line.state_bytes, 0))
    goals = (format_number(GOAL_POINT_US, 1), format_number(GOAL_MINUTE_S, 2))
    table.add_row("goal", *goals, f"{SERIES:,}", format_number(GOAL_BYTES, 0))
    return Group(table, *(Text(f"{line.who}: {line.includes}") for line in lines))


def watch(lines: Sequence[SeriesCost | WarmUp]) -> Group:
    """Return what following costs; of a ratio over 1 Hopwatch is ahead."""
    table = new_table(
        "Watch: six series a node, every window in a transaction; ms",
        ("who",),
        ("nodes", "streams", "next window", "this / Hopwatch", "amended, all series", "amended, one node",
         "memory of an hour", "MB"),
    )  # fmt: skip
    for line in (one for one in lines if isinstance(one, SeriesCost)):
        table.add_row(
            line.who,
            f"{line.streams * line.nodes:,}",
            f"{line.streams:,}",
            format_number(line.next_ms, 1),
            format_number(line.over_ours, 2),
            *(format_number(span_ms, 1) for span_ms in (line.all_ms, line.node_ms, line.hour_ms)),
            format_number(format_ratio(line.memory_bytes, 1e6), 1),
        )
    warm = [
        Text(
            f"The first value of a process: {one.compiled_s:.1f} s with compiling, {one.kept_s:.1f} s once that is kept"
        )
        for one in lines
        if isinstance(one, WarmUp)
    ]
    timed = Text(f"{RIVER}: timed with {PEER_SERIES} series, and multiplied")
    return Group(table, timed, *warm)


def nab(lines: Sequence[Profile | MarkedSeries]) -> Group:
    """Return the scores of each profile, and what was found of the labelled windows."""
    table = new_table(
        "Labelled series: 0 for a detector that says nothing, 100 for a perfect one",
        ("profile",),
        ("best threshold", "score", "a notice", "score", "left-out folders, thresholds", "score"),
    )
    for line in (one for one in lines if isinstance(one, Profile)):
        table.add_row(
            line.profile,
            *(f"{line.best_threshold:.4g}", format_number(line.best, 1)),
            *(f"{line.shipped_threshold:.4g}", format_number(line.shipped, 1)),
            *(f"{line.least_threshold:.4g} to {line.most_threshold:.4g}", format_number(line.left_out, 1)),
        )
    marks = [
        Text(f"{one.mark}: in {one.found} of {one.windows} labelled windows, {one.outside} outside of them")
        for one in lines
        if isinstance(one, MarkedSeries)
    ]
    return Group(table, *marks)


def noise(lines: Sequence[FalseOutliers]) -> Table:
    """Return what is called odd where nothing is."""
    table = new_table(
        "Noise: what is called odd of a series in which nothing is, at one minute",
        ("series", "of"),
        ("notices a day", "outliers a week", "goal, a week", "rolling z-score, a day", "series", "weeks"),
    )
    for line in lines:
        goal = GOAL_PER_WEEK if line.kind == STATIONARY else None
        numbers = (format_number(line.notices_a_day, 2), format_number(line.outliers_a_week, 2), format_number(goal, 0))
        table.add_row(
            line.name, line.kind, *numbers, format_number(line.rolling_a_day, 1), f"{line.series}", f"{line.weeks}"
        )
    return table


def alerts(lines: Sequence[AlertCost | BudgetCost]) -> Group:
    """Return what deciding costs beside writing, and what a sum does."""
    table = new_table(
        "Alerts: a micro-batch with a window of each stream, default rules; ms",
        ("",),
        ("streams", "nodes", "windows written", "decided", "commit", "pages"),
    )
    for line in (one for one in lines if isinstance(one, AlertCost)):
        spans = (format_number(span_ms, 1) for span_ms in (line.write_ms, line.follow_ms, line.commit_ms))
        table.add_row(line.what, f"{line.streams:,}", f"{line.streams * line.nodes:,}", *spans, f"{line.pages}")
    sums = new_table("Sums of an objective's minutes", ("over",), ("rows", "of", "ms"))
    for one in (one for one in lines if isinstance(one, BudgetCost)):
        sums.add_row(one.span, f"{one.rows:,}", f"{one.rows_in_store:,}", format_number(one.sum_ms, 2))
    return Group(table, sums)
