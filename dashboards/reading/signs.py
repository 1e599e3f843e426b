"""What the pages of probes, alerts and quality ask; each is one question, answered at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select

from hopwatch.alerts import recorded
from hopwatch.alerts.events import Notification
from hopwatch.alerts.record import Told
from hopwatch.dashboards.reading.alarms import Alarms
from hopwatch.monitor.instances import Roll
from hopwatch.monitor.quality import Quality
from hopwatch.monitor.store import instances, outliers, quality
from hopwatch.monitor.store.instances import InstanceFilter

ROWS: Final = 200
"""Rows of a list at most; of instances there are pages of so many."""
MOST_OPEN: Final = 100
"""Incidents of which the deliveries are read; a storm is one."""
MOST_TOLD: Final = 500


@dataclass(frozen=True, slots=True)
class HowProbesStand:
    """How do the probe instances stand, from the ``part``-th page of them?"""

    stream: str
    search: str
    part: int
    is_all: bool

    def read(self, connection: Connection) -> Roll:
        """Return it; a page behind the last is empty."""
        asked = InstanceFilter(self.stream, self.search, self.is_all)
        return instances.query_instances(connection, asked, (self.part - 1) * ROWS, ROWS)


@dataclass(frozen=True, slots=True)
class WhatIsWrong:
    """What fires, what was told in ``[from_us, to_us)``, and what is odd in its windows?"""

    stream: str
    from_us: int
    to_us: int
    is_all: bool

    def read(self, connection: Connection) -> Alarms:
        """Return it."""
        lasting = [one for one in recorded.open_incidents(connection) if self._concerns(one.notification)]
        keys = [one.notification.key for one in lasting[:MOST_OPEN]]
        lately = self._told(connection, recorded.in_range(self.from_us, self.to_us, MOST_TOLD))
        later = self._told(connection, recorded.ends_after(self.to_us, MOST_TOLD))
        over = [one for one in later if one.notification.since_us < self.to_us]
        span_us = self.from_us, self.to_us
        found, findings = outliers.read_newest_findings(
            connection, self.stream or None, span_us, ROWS, is_all=self.is_all
        )
        return Alarms(
            tuple(lasting),
            tuple(recorded.told(connection, recorded.beginnings(keys))),
            tuple(one for one in recorded.pending(connection) if self.stream in {"", one.stream}),
            tuple(one for one in recorded.covered(connection) if self.stream in {"", one.stream}),
            self._of_stream((*over, *lately)),
            len(lately) < MOST_TOLD and len(later) < MOST_TOLD,
            tuple(findings),
            found,
        )

    def _told(self, connection: Connection, wanted: Select[Any]) -> list[Told]:
        return recorded.told(connection, recorded.of_stream(wanted, self.stream))

    def _of_stream(self, told: Iterable[Told]) -> tuple[Told, ...]:
        return tuple(one for one in told if self._concerns(one.notification))

    def _concerns(self, notification: Notification) -> bool:
        return not self.stream or any(alert.stream == self.stream for alert in notification.alerts)


@dataclass(frozen=True, slots=True)
class WhatWasSetAside:
    """What did nodes stop in windows of ``[from_us, to_us)``, and what was set aside up to ``arrived_us``?"""

    stream: str
    from_us: int
    to_us: int
    step_us: int
    arrived_us: int

    def read(self, connection: Connection) -> Quality:
        """Return it."""
        summed = quality.sum_stopped(connection, self.stream, self.from_us, self.to_us, self.step_us)
        return quality.read_quality(connection, summed, self.from_us, self.arrived_us, ROWS)
