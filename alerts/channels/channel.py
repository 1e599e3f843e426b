"""The seam between the outbox and whoever carries a notification: send it, and say what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hopwatch.alerts.storage.outbox import Delivery


@dataclass(frozen=True, slots=True)
class Accepted:
    """The other side has it. ``again_after_s``: when it wants it again for as long as the incident lasts, if ever."""

    again_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The other side has it not, or has not said so.

    ``why`` names no secret. ``is_for_good``: it is refused for what it is, and trying again is in vain. ``wait_s``: how
    long the other side asks to be left alone, if it does. ``within_s``: after how long at most it has to be tried again
    what stands, so that it does not run out over there.
    """

    why: str
    is_for_good: bool = False
    wait_s: float | None = None
    within_s: float | None = None


Outcome = Accepted | Failure


class Channel(Protocol):
    """One configured way to people."""

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Send one notification; ``now_us`` is the wall clock, µs since 1970. Never raises, ends within its deadline.

        The same notification may come twice: what tells it from others is its key, so that no second incident opens.
        """

    def close(self) -> None:
        """Let go of connections; never raises."""
