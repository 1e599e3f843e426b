"""Interface of a notification channel: send a delivery, return its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hopwatch.alerts.storage.outbox import Delivery


@dataclass(frozen=True, slots=True)
class Accepted:
    """The receiver accepted the notification.

    ``again_after_s``: interval at which it has to be sent again while the incident lasts; None for never.
    """

    again_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The receiver did not accept it, or did not answer.

    ``why`` holds no secret. ``is_for_good``: a retry cannot succeed. ``wait_s``: the wait that the receiver
    asks for, if any. ``within_s``: the longest wait before a retry of a standing alert, so that it does not
    expire at the receiver.
    """

    why: str
    is_for_good: bool = False
    wait_s: float | None = None
    within_s: float | None = None


Outcome = Accepted | Failure


class Channel(Protocol):
    """One configured notification channel."""

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Send one notification; ``now_us`` is the wall clock, µs since 1970. Never raises, ends within its deadline.

        The same notification may come twice; its key identifies it, so that no second incident opens.
        """

    def close(self) -> None:
        """Close the connections; never raises."""
