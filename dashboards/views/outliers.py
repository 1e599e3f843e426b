"""Rows of the outlier table: observed and expected value, level and reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.display import texts
from hopwatch.display.colours import Mark
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity

OUTLIER: Final = Mark("OUTLIER", "◆", "rare enough to alert on", "unknown")
NOTICE: Final = Mark("NOTICE", "◇", "noticed, but not rare enough to alert on", "idle")
RUNBOOK: Final = "docs/runbooks/outlier.md"
_QUANTITY_NAMES: Final = {
    Quantity.LAG_IN_P95_US: "lag in p95",
    Quantity.LAG_OUT_P95_US: "lag out p95",
    Quantity.INSIDE_P95_US: "time inside p95",
    Quantity.LOSS_RATIO: "loss",
    Quantity.MESSAGES: "messages",
    Quantity.DUPLICATES: "duplicates",
    Quantity.VALUE: "value",
}
_LAGS: Final = frozenset({Quantity.LAG_IN_P95_US, Quantity.LAG_OUT_P95_US, Quantity.INSIDE_P95_US})


@dataclass(frozen=True, slots=True)
class OutlierRow:
    """A window in which an episode of a series begins, or becomes an outlier."""

    mark: Mark
    stream: str
    node: str
    window_us: int
    at: str
    since: str
    quantity: str
    observed: str
    expected: str
    why: tuple[str, ...]


def build_rows(findings: Iterable[tuple[str, OutlierFinding]], zone: tzinfo) -> tuple[OutlierRow, ...]:
    """Return the rows in the order of the findings."""
    return tuple(_build_row(stream, found, zone) for stream, found in findings)


def _build_row(stream: str, found: OutlierFinding, zone: tzinfo) -> OutlierRow:
    why = found.why
    is_expected = why.low is not None and why.high is not None
    since = f"since {texts.format_moment(why.since_us, zone)}" if why.since_us != found.window_start_us else ""
    return OutlierRow(
        OUTLIER if found.is_outlier else NOTICE,
        stream,
        found.node,
        found.window_start_us,
        texts.format_moment(found.window_start_us, zone),
        since,
        _QUANTITY_NAMES[why.quantity],
        format_figure(why.quantity, why.observed),
        f"{format_figure(why.quantity, why.low)} to {format_figure(why.quantity, why.high)}"
        if is_expected
        else texts.UNKNOWN,
        tuple(f"{reason.words} ({reason.rarity})" for reason in why.reasons) or ("nothing is known of it yet",),
    )


def format_figure(quantity: Quantity, number: float | None) -> str:
    """Return a figure of a series in the unit that a person would choose."""
    if number is None:
        return texts.UNKNOWN
    if quantity in _LAGS:
        return texts.format_lag(number)
    if quantity is Quantity.LOSS_RATIO:
        return texts.format_ratio(number)
    return f"{number:.4g}" if quantity is Quantity.VALUE else f"{number:,.0f}"
