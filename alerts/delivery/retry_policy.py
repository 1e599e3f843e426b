"""When a channel that failed is tried again, when another one is told as well, and when it is given up. Pure.

Time is counted in tries, not by a clock: a clock that is put forward gives nothing up, and a monitor that was stopped
for a week goes on where it was. The waits double from ``FLOOR_S`` and stay below ``CEILING_S``; each notification and
channel has a spread of its own, up to a fifth more, so that not all come back at once.

=====  ==========  ========================================================================
tries  after       what happens
=====  ==========  ========================================================================
1 …    5 s …       tried again, after twice as long each time, 5 min at most
5      75 to 90 s     handed over: the fallback is told as well; at once if it is refused for good,
                   or if the other side asks to be left alone for longer than ``PATIENCE_S``
352    24 to 29 h     given up; at once if it is refused for good
=====  ==========  ========================================================================

Waits that the other side asks for, and its deadlines, come on top. What stands at an Alertmanager is tried more often.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from hopwatch.alerts.channels.channel import Failure
from hopwatch.alerts.events import AlertKind, Event
from hopwatch.alerts.storage.outbox import Delivery

MIN_WAIT_S: Final = 5.0
MAX_WAIT_S: Final = 300.0
SPREAD: Final = 0.2
MAX_RETRY_AFTER_S: Final = 600.0
"""For how long at most a channel is left alone because the other side asks for it."""
PATIENCE_S: Final = 120.0
FALLBACK_TRIES: Final = 5
MAX_TRIES: Final = 352
"""So many take a day at least."""
MIN_RESEND_S: Final = 1.0
MAX_RESEND_S: Final = 3_600.0
"""How soon and how late at most a channel may have a standing notification sent again."""

_DOUBLINGS: Final = 16
_HASH_RANGE: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What is done about a failure: tried again after ``wait_s``, given up if that is none; handed over, or not."""

    wait_s: float | None
    is_handed_over: bool


def decide_retry(delivery: Delivery, failure: Failure) -> RetryDecision:
    """Return what is done about the failure of a delivery whose ``tries`` does not count it yet.

    1. A heartbeat is never given up and never handed over: that it is missing is what it says.
    2. What is refused for good is given up at once. What stands was taken once, and is given up for nothing else.
    3. A beginning is handed over, unless somebody has taken the incident on. An end is not: it goes where its
       beginning went.
    """
    tries = delivery.tries + 1
    wait_s = max(min(backoff_s(delivery, tries), _max_wait_s(delivery, failure)), requested_wait_s(failure))
    if delivery.notification.kind is AlertKind.HEARTBEAT:
        return RetryDecision(wait_s, is_handed_over=False)
    is_over = failure.is_for_good or (tries >= MAX_TRIES and not delivery.is_again)
    is_overdue = not delivery.is_again and (tries >= FALLBACK_TRIES or requested_wait_s(failure) > PATIENCE_S)
    is_told = delivery.notification.event is Event.FIRING and not delivery.is_acknowledged
    return RetryDecision(None if is_over else wait_s, is_handed_over=is_told and (failure.is_for_good or is_overdue))


def backoff_s(delivery: Delivery, tries: int) -> float:
    """Return how long to wait after so many tries: it doubles, and is spread by number and channel, not by chance."""
    spread = 1 + SPREAD * _hash_ratio(f"{delivery.number} {delivery.channel}")
    return spread * min(MAX_WAIT_S / (1 + SPREAD), MIN_WAIT_S * 2.0 ** min(tries - 1, _DOUBLINGS))


def _max_wait_s(delivery: Delivery, failure: Failure) -> float:
    """Return after how long at most a delivery is tried again: what stands over there may run out."""
    return MAX_WAIT_S if failure.within_s is None or not delivery.is_again else max(failure.within_s, MIN_RESEND_S)


def requested_wait_s(failure: Failure) -> float:
    """Return for how long the other side is left alone because it asks for it."""
    return min(failure.wait_s, MAX_RETRY_AFTER_S) if failure.wait_s and failure.wait_s > 0 else 0.0


def resend_interval_s(asked_after_s: float) -> float:
    """Return after how long a standing notification is sent again."""
    return min(asked_after_s, MAX_RESEND_S) if asked_after_s > MIN_RESEND_S else MIN_RESEND_S


def sort_key(delivery: Delivery) -> tuple[bool, int, float, int]:
    """Return a key to sort by what is due for one channel: the news first, and of it what has failed least.

    What has failed equally often is shuffled anew with each try, so that a few that always fail stand in nobody's way.
    """
    shuffled = _hash_ratio(f"{delivery.number} {delivery.tries}") if delivery.tries else 0.0
    return delivery.is_again, delivery.tries, shuffled, delivery.number


def _hash_ratio(text: str) -> float:
    """Return a number from 0 to 1 that depends on the text alone."""
    return zlib.crc32(text.encode()) / _HASH_RANGE
