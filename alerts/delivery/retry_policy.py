"""Retry policy of a notification channel: exponential backoff, fallback after some tries, and giving up. Pure.

The policy counts tries and reads no clock: moving the clock forward gives nothing up, and a monitor that was stopped
for a week continues where it was. The waits double from ``MIN_WAIT_S`` and stay below ``MAX_WAIT_S``; each notification
and channel has its own jitter of up to a fifth, so that not all retry at once.

=====  ==========  ========================================================================
tries  after       what happens
=====  ==========  ========================================================================
1 …    5 s …       tried again, after twice as long each time, 5 min at most
5      75 to 90 s  the fallback is notified as well; at once after a permanent failure,
                   or if the receiver asks to wait for longer than ``PATIENCE_S``
352    24 to 29 h  given up; at once after a permanent failure
=====  ==========  ========================================================================

Waits that the receiver asks for, and its deadlines, come on top. An alert that stands at an Alertmanager is tried more
often.
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
"""Longest wait that a receiver may ask for."""
PATIENCE_S: Final = 120.0
FALLBACK_TRIES: Final = 5
MAX_TRIES: Final = 352
"""This many tries take at least one day."""
MIN_RESEND_S: Final = 1.0
MAX_RESEND_S: Final = 3_600.0
"""Bounds of the interval at which a channel may have a standing notification sent again."""

_DOUBLINGS: Final = 16
_HASH_RANGE: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """Decision about a failed delivery: retry after ``wait_s``, or give up if that is none; use the fallback or not."""

    wait_s: float | None
    is_handed_over: bool


def decide_retry(delivery: Delivery, failure: Failure) -> RetryDecision:
    """Decide about a failed delivery, whose ``tries`` does not count this failure yet.

    1. A heartbeat is never given up and never sent to the fallback: its absence is its message.
    2. A permanent failure is given up at once. A standing notification was accepted once, and is given up for no
       other reason.
    3. A firing notification goes to the fallback, unless the incident is acknowledged. A resolved one does not: it
       goes to the channels that had the firing one.
    """
    tries = delivery.tries + 1
    wait_s = max(min(backoff_s(delivery, tries), _max_wait_s(delivery, failure)), requested_wait_s(failure))
    if delivery.notification.kind is AlertKind.HEARTBEAT:
        return RetryDecision(wait_s, is_handed_over=False)
    is_over = failure.is_for_good or (tries >= MAX_TRIES and not delivery.is_again)
    is_overdue = not delivery.is_again and (tries >= FALLBACK_TRIES or requested_wait_s(failure) > PATIENCE_S)
    is_notified = delivery.notification.event is Event.FIRING and not delivery.is_acknowledged
    return RetryDecision(
        None if is_over else wait_s, is_handed_over=is_notified and (failure.is_for_good or is_overdue)
    )


def backoff_s(delivery: Delivery, tries: int) -> float:
    """Return the backoff after so many tries: it doubles, with a jitter that depends on number and channel alone."""
    spread = 1 + SPREAD * _hash_ratio(f"{delivery.number} {delivery.channel}")
    return spread * min(MAX_WAIT_S / (1 + SPREAD), MIN_WAIT_S * 2.0 ** min(tries - 1, _DOUBLINGS))


def _max_wait_s(delivery: Delivery, failure: Failure) -> float:
    """Return the longest wait before a retry: a standing alert may expire at the receiver."""
    return MAX_WAIT_S if failure.within_s is None or not delivery.is_again else max(failure.within_s, MIN_RESEND_S)


def requested_wait_s(failure: Failure) -> float:
    """Return the wait that the receiver asks for, within bounds; 0 if it asks for none."""
    return min(failure.wait_s, MAX_RETRY_AFTER_S) if failure.wait_s and failure.wait_s > 0 else 0.0


def resend_interval_s(asked_after_s: float) -> float:
    """Return the interval at which a standing notification is sent again, within bounds."""
    return min(asked_after_s, MAX_RESEND_S) if asked_after_s > MIN_RESEND_S else MIN_RESEND_S


def sort_key(delivery: Delivery) -> tuple[bool, int, float, int]:
    """Return the sort key of a due delivery of one channel: new ones first, then those with the fewest tries.

    Deliveries with equally many tries are shuffled anew at each try, so that a few that always fail block no others.
    """
    shuffled = _hash_ratio(f"{delivery.number} {delivery.tries}") if delivery.tries else 0.0
    return delivery.is_again, delivery.tries, shuffled, delivery.number


def _hash_ratio(text: str) -> float:
    """Hash a text to a number from 0 to 1."""
    return zlib.crc32(text.encode()) / _HASH_RANGE
