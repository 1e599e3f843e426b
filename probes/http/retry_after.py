"""The header ``Retry-After`` of HTTP answers, parsed. Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime


def parse_retry_after_s(retry_after: str, now_us: int) -> float | None:
    """Parse a ``Retry-After`` header, seconds or a date, into seconds from now; None if it cannot be parsed."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # Only the first digits count: int() of a very long text is slow, and refused.
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(when.timestamp() - now_us / 1e6, 0.0)
