"""A channel with whoever listens behind it, on the clock of a test."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.events import Event
from hopwatch.alerts.storage.outbox import Delivery
from tests.support.clock import ManualClock

REFUSED: Final = Failure("connection refused")
ERROR: Final = Failure("HTTP 500")
TIMEOUT: Final = Failure("no answer within 10 s")
TLS: Final = Failure("the certificate is not to be trusted")
BUSY: Final = Failure("HTTP 429", wait_s=45.0)
WRONG: Final = Failure("HTTP 400", is_for_good=True)


class Spell(NamedTuple):
    """Period of answers: the answer from one moment to another, its delay, and whether the message arrives anyway."""

    from_us: int
    until_us: int
    outcome: Outcome
    takes_s: float = 0.0
    is_heard: bool = False


@dataclass
class Receiver:
    """Keeps incidents as Alertmanager and PagerDuty do: what has the key of an open one opens no other.

    ``asked`` is every delivery that was sent, ``heard`` what came through, ``told`` what a person got to know.
    """

    clock: ManualClock
    again_after_s: float | None = None
    spells: list[Spell] = field(default_factory=list)
    asked: list[tuple[int, Delivery]] = field(default_factory=list)
    heard: list[tuple[int, Delivery]] = field(default_factory=list)
    told: list[tuple[int, Delivery]] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    open: set[str] = field(default_factory=set)
    ends_of_nothing: int = 0
    is_closed: bool = False

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Hear it, unless it is not a good time."""
        self.asked.append((now_us, delivery))
        spell = next((one for one in self.spells if one.from_us <= now_us < one.until_us), None)
        if spell is None:
            self.hear(delivery, now_us)
            return Accepted(self.again_after_s)
        self.clock.advance(spell.takes_s)
        if spell.is_heard:
            self.hear(delivery, now_us)
        return spell.outcome

    def hear(self, delivery: Delivery, now_us: int) -> None:
        """Open an incident, or close it, unless that is so already."""
        key = delivery.notification.key
        self.heard.append((now_us, delivery))
        if delivery.notification.event is Event.FIRING and key not in self.open:
            self.open.add(key)
            self.opened[key] += 1
            self.told.append((now_us, delivery))
        elif delivery.notification.event is Event.RESOLVED and key in self.open:
            self.open.remove(key)
            self.told.append((now_us, delivery))
        else:
            self.ends_of_nothing += delivery.notification.event is Event.RESOLVED

    def close(self) -> None:
        """Note that it was let go of."""
        self.is_closed = True
