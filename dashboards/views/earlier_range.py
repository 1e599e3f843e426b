"""Comparison of a range of a stream with the same range a day or a week before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

from hopwatch.dashboards.queries.models import StreamRange
from hopwatch.dashboards.views import series
from hopwatch.dashboards.views.address import ComparedPeriod
from hopwatch.dashboards.views.display_range import DAY_US, DisplayRange
from hopwatch.dashboards.views.series import ChartPoint
from hopwatch.display import loss, texts
from hopwatch.monitor.results import Quantiles, RollUp

SHIFTS_US: Final = {ComparedPeriod.DAY: DAY_US, ComparedPeriod.WEEK: 7 * DAY_US}
NAMES: Final = {ComparedPeriod.DAY: "the day before", ComparedPeriod.WEEK: "the week before"}


@dataclass(frozen=True, slots=True)
class EarlierRange:
    """Range that another one is compared with: its name in a sentence, how much earlier it is, and its steps."""

    name: str
    shift_us: int
    stream_range: StreamRange

    def build_arrival_points(self, node: str, zone: tzinfo) -> tuple[ChartPoint, ...]:
        """Return what arrived at a node at each step, or end to end, each at the step that it is compared with."""
        points = series.build_arrival_points(series.select_finished(self.stream_range), node, zone)
        return self._shift((point for point in points if point.line == "arrived"), self.name, zone)

    def build_lag_points(self, node: str, side: str, zone: tzinfo) -> tuple[ChartPoint, ...]:
        """Return the p95 of one side of a node at each step, ms, each at the step that it is compared with."""
        points = series.build_lag_points(self.stream_range, node, zone)
        return self._shift(
            (point for point in points if (point.line, point.part) == (side, "p95")), f"p95, {self.name}", zone
        )

    def _shift(self, points: Iterable[ChartPoint], line: str, zone: tzinfo) -> tuple[ChartPoint, ...]:
        return tuple(
            replace(point, start_us=at_us, moment=texts.format_moment(at_us, zone), line=line)
            for point in points
            for at_us in (point.start_us + self.shift_us,)
        )


def shift_range(shown: DisplayRange, period: ComparedPeriod) -> DisplayRange | None:
    """Return the earlier range; None where none is asked for, or where it would be a part of the later one.

    A range of 24 hours has a part of a 25th one, as its steps are whole: the earlier one ends where the later begins.
    """
    shift_us = SHIFTS_US.get(period)
    if shift_us is None or shown.to_us - shown.from_us > shift_us + shown.step_us:
        return None
    to_us = min(shown.to_us - shift_us, shown.from_us)
    return replace(shown, from_us=shown.from_us - shift_us, to_us=to_us, notice="")


def describe_difference(now: RollUp | None, before: RollUp | None, name: str) -> str:
    """Return how the final windows of a range differ from those of an earlier one.

    Messages are those of a window on average, so that ranges with as many windows or not can be compared.
    """
    if before is None or not before.windows:
        return f"Compared with {name}: no final window of it is kept."
    if now is None or not now.windows:
        return f"Compared with {name}: no window of this range is final yet."
    rates = now.known / now.windows, before.known / before.windows
    parts = (
        _describe_rates(*rates),
        f"lost {loss.format_loss_ratio(now)}, was {loss.format_loss_ratio(before)}",
        f"lag p95 end to end {_format_p95(now.lag_us)}, was {_format_p95(before.lag_us)}",
    )
    windows = "" if now.windows == before.windows else f"; {now.windows:,} final windows, were {before.windows:,}"
    return f"Compared with {name}: {'; '.join(parts)}{windows}."


def _describe_rates(now: float, before: float) -> str:
    told = f"{now:,.0f} messages a minute, were {before:,.0f}"
    if not before or now == before:
        return told
    change = texts.format_ratio(abs(now - before) / before)
    return f"{told} ({change} {'more' if now > before else 'fewer'})"


def _format_p95(lag: Quantiles | None) -> str:
    return texts.format_lag(lag.p95 if lag else None)
