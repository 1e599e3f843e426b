"""What an answer by HTTP means for a notification: taken, to be tried again, or refused for good. Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome

MAX_WAIT_S: Final = 600.0
"""However long the other side asks to be left alone: a page is no use the day after."""
RETRYABLE: Final = frozenset({401, 403, 404, 405, 407, 408, 425, 429})
"""Of 4xx those that say nothing against the notification: keys, places and rates, which somebody can mend."""


def parse_response(who: str, status: int, said: str, retry_after: str = "", now_us: int = 0) -> Outcome:
    """Return what an answer means.

    ``who`` is asked, ``said`` are words of the answer, ``retry_after`` its header, either seconds or a date.
    """
    # 1. 2xx: it is there.
    if status // 100 == 2:  # noqa: PLR2004 - the class of an HTTP status is its first digit
        return Accepted()
    words = f": {said}" if said else ""
    # 2. 3xx: whoever answers so may point anywhere, and with it goes what was meant for one place alone.
    if status // 100 == 3:  # noqa: PLR2004
        advice = "redirects are not followed: name the URL that it leads to"
        return Failure(f"{who} answered {status}; {advice}")
    # 3. What is mended elsewhere, or passes by itself, is tried again.
    if status in RETRYABLE or status // 100 == 5:  # noqa: PLR2004
        return Failure(f"{who} answered {status}{words}", wait_s=parse_retry_after_s(retry_after, now_us))
    # 4. Every other answer is about what was sent, and would be the same again.
    return Failure(f"{who} answered {status}{words}", is_for_good=True)


def parse_retry_after_s(retry_after: str, now_us: int) -> float | None:
    """Return how long a ``Retry-After`` asks to wait, up to ``MOST_WAIT_S``; none where it cannot be read."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # Only the first digits count: int() of a very long text is slow, and refused.
        return min(float(text[:9]), MAX_WAIT_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return min(max(when.timestamp() - now_us / 1e6, 0.0), MAX_WAIT_S)
