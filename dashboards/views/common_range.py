"""Time range of the pages that show all streams; it ends where the monitor has read to."""

from __future__ import annotations

from dataclasses import replace

from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views import display_range
from hopwatch.dashboards.views.address import PageAddress
from hopwatch.dashboards.views.display_range import LENGTHS_US, MAX_POINTS, MINUTE_US, DisplayRange


def select_common_range(address: PageAddress, standing: StreamsOverview, now_us: int) -> DisplayRange:
    """Return the range that an address means; one that moves on ends with the last minute that anything is known of."""
    ends = [one.last_us + MINUTE_US for one in standing.streams if one.last_us is not None]
    # What is decided by the watermark lies behind the last window.
    reached_us = max(*ends, standing.watermark_us or 0, 0) if ends else standing.watermark_us or now_us
    end_us = -(-(reached_us + 1) // MINUTE_US) * MINUTE_US
    if address.from_us is None or address.to_us is None:
        return display_range.align_range(end_us - LENGTHS_US[address.range], end_us)
    # What is yet to come is empty; a range of nothing else is shown as it was asked for.
    to_us = max(min(address.to_us, end_us), address.from_us + MINUTE_US)
    shown = display_range.align_range(address.from_us, to_us)
    if shown.from_us <= address.from_us:
        return shown
    return replace(shown, notice=f"the range is longer than {MAX_POINTS:,} days: showing the last of them")
