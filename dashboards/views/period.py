"""Which range the pages of all streams show: as the page of a stream has it, and up to what the monitor has read."""

from __future__ import annotations

from dashboards.reading.told import Standing
from dashboards.views import span
from dashboards.views.address import Address
from dashboards.views.span import LENGTHS_US, MINUTE_US, Span


def of(address: Address, standing: Standing, now_us: int) -> Span:
    """Return the range that an address means; one that moves on ends with the last minute that anything is known of."""
    if address.from_us is not None and address.to_us is not None:
        return span.stepped(max(0, address.from_us), max(MINUTE_US, address.to_us))
    ends = [one.last_us + MINUTE_US for one in standing.streams if one.last_us is not None]
    # What is decided by the watermark lies behind the last window.
    reached_us = max(*ends, standing.watermark_us or 0, 0) if ends else standing.watermark_us or now_us
    to_us = -(-(reached_us + 1) // MINUTE_US) * MINUTE_US
    return span.stepped(to_us - LENGTHS_US[address.range], to_us)
