"""Values of the alert history: open incidents, sent notifications and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.events import AlertKind, Notification
from hopwatch.alerts.storage.outbox import DeliveryState


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Acknowledgement of an incident: by whom, and when by the wall clock."""

    by: str
    at_us: int
    note: str


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """An open incident with its current content."""

    notification: Notification
    opened_us: int
    acknowledgement: Acknowledgement | None

    @property
    def is_heartbeat(self) -> bool:
        """Return whether it is the heartbeat, which stands while all is well and is no incident."""
        return self.notification.kind is AlertKind.HEARTBEAT


@dataclass(frozen=True, slots=True)
class UnnotifiedAlert:
    """An alert without an incident: bad for too short a time yet, or covered by another alert."""

    rule: str
    severity: str
    stream: str
    node: str
    since_us: int


@dataclass(frozen=True, slots=True)
class ChannelDelivery:
    """Delivery of a notification at one channel; ``tries`` counts the failures since it was last sent."""

    channel: str
    state: DeliveryState
    tries: int
    next_try_us: int
    last_error: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A notification of the history, and its delivery at each channel."""

    number: int
    notification: Notification
    deliveries: tuple[ChannelDelivery, ...]
