"""Rate of false forecasts on lags that stay healthy, and how long before a broken target a true one comes.

A healthy lag never reaches its threshold, 1.5 times the most it ever is. A lag that grows is a healthy one on which
a straight line is added, from no lag to the threshold within so many hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from rich.table import Table

from bench import made_series
from bench.contestant import Json, run
from bench.noises import DAY, WEEK, Floats, drawn
from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.alerts.decision.forecast import SPAN_US, forecast_lag
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.probes.contract.limits import WINDOW_US

SERIES: Final = 10
WEEKS: Final = 4
FIRST_SEED: Final = 1_000
HORIZON_WINDOWS: Final = 60
FOR_WINDOWS: Final = 5
HEADROOM: Final = 1.5
HOURS: Final = (1, 2, 4, 8)
HEALTHY: Final = ("a pipeline that is well", "autoregressive, 0.9", "autoregressive, 0.99", "daily sine", "normal")
BASE: Final = 100.0
"""Added to noise, so that it is a lag."""


@dataclass(frozen=True, slots=True)
class ForecastLine:
    """Forecasts of lags of one kind.

    Of healthy ones ``alarms_a_week`` counts alarms of a series; of those that grow ``told`` is the share that was told
    of before the threshold, and the leads are minutes from the alarm to the threshold.
    """

    kind: str
    series: int
    alarms_a_week: float | None = None
    told: float | None = None
    lead_p50_min: float | None = None
    lead_least_min: float | None = None


def measure(scratch: Path, tell: Progress) -> list[ForecastLine]:
    """Return a line of each kind of healthy lag, and of each growth.

    Raises:
        ContestantError: the forecast failed.
    """
    tell(f"forecasts: {len(HEALTHY)} kinds of healthy lags, {SERIES} series of {WEEKS} weeks each")
    counted = run("bench.forecasts:count_false", scratch, series=SERIES, weeks=WEEKS).result
    tell(f"forecasts: lags that grow for {', '.join(map(str, HOURS))} hours")
    leads = run("bench.forecasts:find_leads", scratch, series=SERIES, hours=list(HOURS)).result
    lines = [ForecastLine(kind, SERIES, alarms_a_week=count) for kind, count in counted.items()]
    return [*lines, *(summarize_leads(f"grows for {hours} h", found) for hours, found in leads.items())]


def count_false(folder: Path, series: int, weeks: int) -> Json:
    """Return the alarms a series and a week, by the kind of healthy lags."""
    del folder
    found = {}
    for kind in HEALTHY:
        many = [draw_healthy(kind, seed, weeks * WEEK) for seed in range(FIRST_SEED, FIRST_SEED + series)]
        alarms = sum(len(list(find_alarms(values, HEADROOM * float(values.max())))) for values in many)
        found[kind] = alarms / series / weeks
    return found


def find_leads(folder: Path, series: int, hours: Sequence[int]) -> Json:
    """Return for each series that grows the minutes from its alarm to the threshold, None without an alarm."""
    del folder
    leads: dict[str, list[float | None]] = {}
    for span_h in hours:
        for seed in range(FIRST_SEED, FIRST_SEED + series):
            values = draw_healthy(HEALTHY[0], seed, DAY + span_h * 60)
            threshold = HEADROOM * float(values.max())
            values[DAY:] += np.linspace(0, threshold, span_h * 60)
            broken = int(np.argmax(values > threshold))
            alarm = next((at for at in find_alarms(values, threshold, DAY) if at < broken), None)
            leads.setdefault(str(span_h), []).append(None if alarm is None else broken - alarm)
    return leads


def find_alarms(values: Floats, threshold: float, begin: int = 0) -> Iterator[int]:
    """Yield the windows at which an alarm begins: the fifth in a row with a forecast, after one without."""
    count, span = 0, SPAN_US // WINDOW_US
    for at in range(max(begin, span), len(values)):
        points = [(place * WINDOW_US, value) for place, value in enumerate(values[at - span + 1 : at + 1].tolist())]
        found = forecast_lag(points, threshold, HORIZON_WINDOWS * WINDOW_US)
        is_bad = found is not None and found.latest_us <= HORIZON_WINDOWS * WINDOW_US
        count = count + 1 if is_bad else 0
        if count == FOR_WINDOWS:
            yield at


def draw_healthy(kind: str, seed: int, count: int) -> Floats:
    """Return a healthy lag of one kind, a value a minute."""
    if kind == HEALTHY[0]:
        return np.asarray(made_series.SERIES[Quantity.LAG_IN_P95_US](made_series.node(seed, count)), np.float64)
    values = drawn(kind, seed, count)
    return np.asarray(values - values.min() + BASE, np.float64)


def summarize_leads(kind: str, found: Sequence[float | None]) -> ForecastLine:
    """Return the line of lags that grow."""
    told = [lead for lead in found if lead is not None]
    spread = (float(np.median(told)), float(min(told))) if told else (None, None)
    return ForecastLine(kind, len(found), None, len(told) / len(found), *spread)


def build_table(lines: Sequence[ForecastLine]) -> Table:
    """Return the table."""
    names = ("alarms a week", "told before, %", "lead p50, min", "lead least, min", "series")
    table = new_table("Forecasts of p95 of lag: false ones on healthy lags, and the lead of true ones", ("lag",), names)
    for line in lines:
        told = None if line.told is None else 100 * line.told
        values = format_number(line.alarms_a_week, 2), format_number(told, 0)
        leads = (format_number(one, 0) for one in (line.lead_p50_min, line.lead_least_min))
        table.add_row(line.kind, *values, *leads, f"{line.series}")
    return table
