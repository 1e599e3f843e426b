"""Kinds of rows that the job hands to a micro-batch, by the name in the column ``kind``."""

from __future__ import annotations

from typing import Final

CLAIMS_ROW: Final = "claims"
"""Claim checks on batches of one window: for the window shard that the row names."""
FACTS_ROW: Final = "facts"
"""Facts for the books, of the batches of one segment."""
SET_ASIDE_ROW: Final = "set_aside"
"""A record that cannot be counted."""
OFFSETS_ROW: Final = "offsets"
"""A run of records that was read from one partition of a topic."""
RECENT_ROW: Final = "recent"
"""Stamps by second of arrival, of the records that a task has read."""
CLOCK_ROW: Final = "clock"
"""The latest arrival that a task has read; the only rows with a value in the watermark's column."""
TALLY_ROW: Final = "tally"
"""A window shard, tallied."""
TICK_ROW: Final = "tick"
"""Nothing but the watermark."""
