"""What is on record of alerts: incidents that are open, what was told and how channels took it; values only."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.events import Notification
from hopwatch.alerts.storage.outbox import DeliveryState


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Who has taken an incident on, and when by the wall clock."""

    by: str
    at_us: int
    note: str


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """An incident that is open, as it stands now."""

    notification: Notification
    opened_us: int
    taken: Acknowledgement | None


@dataclass(frozen=True, slots=True)
class UnnotifiedAlert:
    """An alert that no incident tells of: bad for too short a time yet, or another stands for it."""

    rule: str
    severity: str
    stream: str
    node: str
    since_us: int


@dataclass(frozen=True, slots=True)
class ChannelDelivery:
    """What has become of a notification at one channel; ``tries`` are those that failed since it was last sent."""

    channel: str
    fate: DeliveryState
    tries: int
    next_try_us: int
    last_error: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A notification as it was put on record, and how each channel took it."""

    number: int
    notification: Notification
    sendings: tuple[ChannelDelivery, ...]
