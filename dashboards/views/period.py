"""Which range the pages of all streams show: as the page of a stream has it, and up to what the monitor has read."""

from __future__ import annotations

from dataclasses import replace

from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import span
from hopwatch.dashboards.views.address import Address
from hopwatch.dashboards.views.span import LENGTHS_US, MINUTE_US, MOST_POINTS, Span


def of(address: Address, standing: Standing, now_us: int) -> Span:
    """Return the range that an address means; one that moves on ends with the last minute that anything is known of."""
    ends = [one.last_us + MINUTE_US for one in standing.streams if one.last_us is not None]
    # What is decided by the watermark lies behind the last window.
    reached_us = max(*ends, standing.watermark_us or 0, 0) if ends else standing.watermark_us or now_us
    end_us = -(-(reached_us + 1) // MINUTE_US) * MINUTE_US
    if address.from_us is None or address.to_us is None:
        return span.stepped(end_us - LENGTHS_US[address.range], end_us)
    # What is yet to come is empty; a range of nothing else is shown as it was asked for.
    to_us = max(min(address.to_us, end_us), address.from_us + MINUTE_US)
    shown = span.stepped(address.from_us, to_us)
    if shown.from_us <= address.from_us:
        return shown
    return replace(shown, complaint=f"the range is longer than {MOST_POINTS:,} days: showing the last of them")
