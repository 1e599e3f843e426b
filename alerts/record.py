"""What is on record of alerts: incidents that are open, what was told and how channels took it; values only."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.events import Notification
from hopwatch.alerts.outbox import Fate


@dataclass(frozen=True, slots=True)
class Taken:
    """Who has taken an incident on, and when by the wall clock."""

    by: str
    at_us: int
    note: str


@dataclass(frozen=True, slots=True)
class Open:
    """An incident that is open, as it stands now."""

    notification: Notification
    opened_us: int
    taken: Taken | None


@dataclass(frozen=True, slots=True)
class Untold:
    """An alert that no incident tells of: bad for too short a time yet, or another stands for it."""

    rule: str
    severity: str
    stream: str
    node: str
    since_us: int


@dataclass(frozen=True, slots=True)
class Sending:
    """What has become of a notification at one channel; ``tries`` are those that failed since it was last sent."""

    channel: str
    fate: Fate
    tries: int
    next_try_us: int
    last_error: str


@dataclass(frozen=True, slots=True)
class Told:
    """A notification as it was put on record, and how each channel took it."""

    number: int
    notification: Notification
    sendings: tuple[Sending, ...]
