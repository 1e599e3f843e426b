"""Suggested thresholds: how often they fire in the weeks after those they were learnt from, and what they catch.

A threshold is suggested from four weeks of a healthy lag, and replayed on the next four; then on the same weeks with
half an hour in which the lag is so many times its median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from rich.table import Table

from bench.contestant import Json, run
from bench.forecasts import FIRST_SEED, HEALTHY, SERIES, WEEKS, draw_healthy
from bench.noises import WEEK, Floats
from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.alerts.decision.suggestion import replay_threshold, suggest_threshold
from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.probes.contract.limits import WINDOW_US

RULE: Final = AlertRule("lag", AlertKind.LAG, Severity.TICKET, {}, for_windows=5, keep_windows=5)
INCIDENT_WINDOWS: Final = 30
TIMES: Final = (1.5, 2.0, 3.0, 5.0)


@dataclass(frozen=True, slots=True)
class SuggestionLine:
    """Thresholds of lags of one kind, medians and means over its series.

    ``threshold`` is in medians of the lag; ``learnt`` and ``later`` count alerts in the four weeks that it was learnt
    from, and in the next; ``caught`` has the share of incidents that fired, by how many medians the lag was.
    """

    kind: str
    series: int
    threshold: float
    learnt: float
    later: float
    caught: dict[str, float]


def measure(scratch: Path, tell: Progress) -> list[SuggestionLine]:
    """Return a line of each kind of healthy lag.

    Raises:
        ContestantError: a suggestion failed.
    """
    tell(f"suggestions: {len(HEALTHY)} kinds of healthy lags, {SERIES} series of twice {WEEKS} weeks each")
    counted = run("bench.suggestions:count_alerts", scratch, series=SERIES, weeks=WEEKS).result
    return [summarize_series(kind, found) for kind, found in counted.items()]


def count_alerts(folder: Path, series: int, weeks: int) -> Json:
    """Return of each series its threshold in medians, both counts of alerts, and what was caught, by kind."""
    del folder
    seeds = range(FIRST_SEED, FIRST_SEED + series)
    return {kind: [_try_suggestion(draw_healthy(kind, seed, 2 * weeks * WEEK)) for seed in seeds] for kind in HEALTHY}


def _try_suggestion(values: Floats) -> Json:
    half = len(values) // 2
    starts_us, median = np.arange(half, dtype=np.int64) * WINDOW_US, float(np.median(values[:half]))
    found = suggest_threshold(starts_us, values[:half], RULE, 1, 0.0)
    assert found is not None  # noqa: S101 - all was observed
    later = values[half:]
    caught = {}
    for times in TIMES:
        incident = slice(half // 2, half // 2 + INCIDENT_WINDOWS)
        worse = later.copy()
        worse[incident] += (times - 1) * median
        fired = replay_threshold(starts_us, worse, RULE, found.threshold)
        begin_us, end_us = (int(starts_us[place]) for place in (incident.start, incident.stop))
        caught[f"{times:g}"] = any(one.since_us < end_us and one.until_us > begin_us for one in fired)
    alerts = replay_threshold(starts_us, later, RULE, found.threshold)
    return {
        "threshold": found.threshold / median,
        "learnt": len(found.alerts),
        "later": len(alerts),
        "caught": caught,
    }


def summarize_series(kind: str, found: Sequence[Json]) -> SuggestionLine:
    """Return the line of a kind."""
    means = {name: float(np.mean([one[name] for one in found])) for name in ("learnt", "later")}
    caught = {name: float(np.mean([one["caught"][name] for one in found])) for name in found[0]["caught"]}
    return SuggestionLine(
        kind, len(found), float(np.median([one["threshold"] for one in found])), means["learnt"], means["later"], caught
    )


def build_table(lines: Sequence[SuggestionLine]) -> Table:
    """Return the table."""
    names = ("threshold, medians", "alerts learnt", "alerts later", *(f"caught at {one:g}, %" for one in TIMES))
    table = new_table(
        "Suggested thresholds of p95 of lag, in the four weeks after those of the suggestion", ("lag",), names
    )
    for line in lines:
        counts = (format_number(one, 2) for one in (line.threshold, line.learnt, line.later))
        table.add_row(line.kind, *counts, *(format_number(100 * share, 0) for share in line.caught.values()))
    return table
