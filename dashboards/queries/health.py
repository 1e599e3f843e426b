"""Queries of the pages of probes, alerts and quality."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select

from hopwatch.alerts.events import Notification
from hopwatch.alerts.storage import history_queries
from hopwatch.alerts.storage.history import HistoryEntry
from hopwatch.alerts.storage.silences import query_silences
from hopwatch.dashboards.queries.alert_models import AlertsInRange
from hopwatch.monitor.accounting.instances import InstancePage
from hopwatch.monitor.accounting.quality import Quality
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store import instances, outliers, quality
from hopwatch.monitor.store.instances import InstanceFilter

MAX_ROWS: Final = 200
"""Rows of a list at most; of instances there are pages of so many."""
MAX_OPEN: Final = 100
"""Incidents of which the deliveries are read; a storm is one."""
MAX_NOTIFICATIONS: Final = 500


@dataclass(frozen=True, slots=True)
class ProbesQuery:
    """Query of the probe instances, the ``part``-th page of them."""

    stream: str
    search: str
    part: int
    is_all: bool

    def run(self, connection: Connection) -> InstancePage:
        """Return it; a page behind the last is empty."""
        asked = InstanceFilter(self.stream, self.search, self.is_all)
        return instances.query_instances(connection, asked, (self.part - 1) * MAX_ROWS, MAX_ROWS)


@dataclass(frozen=True, slots=True)
class AlertsQuery:
    """Query of open incidents, and of notifications and findings in ``[from_us, to_us)``."""

    stream: str
    from_us: int
    to_us: int
    is_all: bool

    def run(self, connection: Connection) -> AlertsInRange:
        """Return it."""
        lasting = [
            one for one in history_queries.query_open_incidents(connection) if self._is_about_stream(one.notification)
        ]
        keys = [one.notification.key for one in lasting[:MAX_OPEN]]
        lately = self._query_notifications(
            connection, history_queries.select_in_range(self.from_us, self.to_us, MAX_NOTIFICATIONS)
        )
        later = self._query_notifications(connection, history_queries.select_ends_after(self.to_us, MAX_NOTIFICATIONS))
        over = [one for one in later if one.notification.since_us < self.to_us]
        span_us = self.from_us, self.to_us
        found, findings = outliers.read_newest_findings(
            connection, self.stream or None, span_us, MAX_ROWS, is_all=self.is_all
        )
        return AlertsInRange(
            tuple(lasting),
            tuple(history_queries.query_history(connection, history_queries.select_beginnings(keys))),
            tuple(one for one in history_queries.query_pending(connection) if self.stream in {"", one.stream}),
            tuple(one for one in history_queries.query_covered(connection) if self.stream in {"", one.stream}),
            self._select_stream((*over, *lately)),
            len(lately) < MAX_NOTIFICATIONS and len(later) < MAX_NOTIFICATIONS,
            tuple(findings),
            found,
            tuple(query_silences(connection, self.from_us)),
        )

    def _query_notifications(self, connection: Connection, wanted: Select[Any]) -> list[HistoryEntry]:
        return history_queries.query_history(connection, history_queries.filter_by_stream(wanted, self.stream))

    def _select_stream(self, told: Iterable[HistoryEntry]) -> tuple[HistoryEntry, ...]:
        return tuple(one for one in told if self._is_about_stream(one.notification))

    def _is_about_stream(self, notification: Notification) -> bool:
        return not self.stream or any(alert.stream == self.stream for alert in notification.alerts)


@dataclass(frozen=True, slots=True)
class QualityQuery:
    """Query of messages stopped in ``[from_us, to_us)``, and of records set aside up to ``arrived_us``."""

    stream: str
    from_us: int
    to_us: int
    step_us: int
    arrived_us: int

    def run(self, connection: Connection) -> Quality:
        """Return it."""
        summed = quality.sum_stopped(connection, self.stream, self.from_us, self.to_us, self.step_us)
        # What the self-test filters and rejects is of no concern among all streams.
        summed = [one for one in summed if one.stream != SELFTEST_STREAM or self.stream]
        return quality.read_quality(connection, summed, self.from_us, self.arrived_us, MAX_ROWS)
