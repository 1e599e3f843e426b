"""Text of an alert's figure with its unit, the same in notifications and on pages."""

from __future__ import annotations

from hopwatch.alerts.events import Unit
from hopwatch.display import texts


def format_figure(value: float, unit: Unit) -> str:
    """Return a figure of an alert with its unit."""
    match unit:
        case Unit.RATIO:
            return texts.format_ratio(value)
        case Unit.MICROSECONDS:
            return texts.format_lag(value)
        case Unit.MINUTES:
            return texts.format_minutes(value)
        case Unit.RECORDS:
            return f"{value:,.0f} {'record' if value == 1 else 'records'}"
        case Unit.SCORE:
            return f"score {value:,.1f}"
        case Unit.BURN_RATE:
            return texts.format_burn_rate(value)
