"""HTTP responses of receivers, parsed into outcomes: accepted, retryable or permanently refused. Pure."""

from __future__ import annotations

from typing import Final

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.probes.http import retry_after as retry_after_header

MAX_WAIT_S: Final = 600.0
"""Longest wait that a receiver may ask for: a page is useless a day later."""
RETRYABLE: Final = frozenset({401, 403, 404, 405, 407, 408, 425, 429})
"""4xx status codes about keys, addresses and rates, which a person can fix, not about the notification."""


def parse_response(who: str, status: int, reason: str, retry_after: str = "", now_us: int = 0) -> Outcome:
    """Parse the response of a receiver into an outcome.

    ``who`` is asked, ``said`` are words of the answer, ``retry_after`` its header, either seconds or a date.
    """
    # 1. 2xx: it is there.
    if status // 100 == 2:  # noqa: PLR2004 - the class of an HTTP status is its first digit
        return Accepted()
    words = f": {reason}" if reason else ""
    # 2. 3xx: a redirect may lead anywhere, and the notification holds what is meant for one address.
    if status // 100 == 3:  # noqa: PLR2004
        advice = "redirects are not followed: name the URL that it leads to"
        return Failure(f"{who} answered {status}; {advice}")
    # 3. What can be fixed at the receiver, or passes by itself, is tried again.
    if status in RETRYABLE or status // 100 == 5:  # noqa: PLR2004
        return Failure(f"{who} answered {status}{words}", wait_s=parse_retry_after_s(retry_after, now_us))
    # 4. Every other response is about the request itself, and would be the same again.
    return Failure(f"{who} answered {status}{words}", is_for_good=True)


def parse_retry_after_s(retry_after: str, now_us: int) -> float | None:
    """Parse a ``Retry-After`` header into seconds, at most ``MAX_WAIT_S``; none if it cannot be parsed."""
    wait_s = retry_after_header.parse_retry_after_s(retry_after, now_us)
    return None if wait_s is None else min(wait_s, MAX_WAIT_S)
