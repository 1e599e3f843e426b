"""Channel that pauses a delivery while an incident lasts, and resumes it at its end.

The pause carries the keys of the incidents that hold it: it ends with the last of them. One that a person made stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import structlog

from hopwatch.alerts.channels.action_guard import ActionGuard
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.events import Event, Notification
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.deliver.control_topic import Pause, read_pauses, write_pause
from hopwatch.monitor.settings.channels import PauseChannel
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.taps.errors import TapSourceError

_log = structlog.get_logger("hopwatch")


class DeliveryBrokers(NamedTuple):
    """Brokers that keep the pauses: of each delivery by name, and the access to all of them."""

    by_delivery: Mapping[str, str]
    access: KafkaAccess


class DeliveryPause:
    """A channel that pauses one delivery."""

    def __init__(self, name: str, settings: PauseChannel, brokers: DeliveryBrokers) -> None:
        """Take the settings; nothing is connected yet."""
        self._name, self._settings, self._access = name, settings, brokers.access
        self._brokers = brokers.by_delivery[settings.delivery]
        self._guard = ActionGuard(settings.most, settings.within_us)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Pause the delivery or resume it."""
        notification = delivery.notification
        if notification.rule not in self._settings.rules:
            return Accepted()  # a test of the channels pauses nothing
        try:
            found = self._read_pause()
            if notification.event is Event.FIRING:
                return self._pause(notification, found, now_us)
            return self._resume(notification, found)
        except TapSourceError as error:
            return Failure(str(error))

    def close(self) -> None:
        """Nothing is kept open."""

    def _pause(self, notification: Notification, found: Pause | None, now_us: int) -> Outcome:
        key = notification.key
        if found is not None and (not found.by or key in found.by):
            self._log("the delivery is paused already", notification)
            return Accepted()
        if found is not None:
            self._write("the delivery stays paused for this incident, too", notification, found.hold(key))
            return Accepted()
        if (refusal := self._guard.check(now_us)) is not None:
            return refusal
        self._write("the delivery is paused", notification, Pause(now_us, (key,)))
        self._guard.note(now_us)
        return Accepted()

    def _resume(self, notification: Notification, found: Pause | None) -> Outcome:
        if found is None or notification.key not in found.by:
            self._log("the delivery was not paused by this incident, and is left as it is", notification)
            return Accepted()
        left = found.release(notification.key)
        what = "the delivery is resumed" if left is None else "the delivery stays paused for other incidents"
        self._write(what, notification, left)
        return Accepted()

    def _read_pause(self) -> Pause | None:
        pauses = read_pauses(self._brokers, self._access, lambda what: _log.warning(what, channel=self._name))
        return pauses.get(self._settings.delivery)

    def _write(self, what: str, notification: Notification, pause: Pause | None) -> None:
        if not self._settings.dry_run:
            write_pause(self._brokers, self._access, self._settings.delivery, pause)
        self._log(what, notification)

    def _log(self, what: str, notification: Notification) -> None:
        named = {"channel": self._name, "delivery": self._settings.delivery, "incident": notification.key}
        _log.warning(what, **named, is_dry_run=self._settings.dry_run)
