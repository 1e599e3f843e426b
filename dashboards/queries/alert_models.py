"""Result type of the alerts query: open incidents, notifications and findings."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.storage.history import HistoryEntry, OpenIncident, UnnotifiedAlert
from hopwatch.alerts.storage.silences import Silence
from hopwatch.monitor.outliers.findings import OutlierFinding


@dataclass(frozen=True, slots=True)
class AlertsInRange:
    """Of one stream or all; of what is ``open`` the last news with its deliveries is in ``news``.

    ``told`` is what was decided in a range, not all of it if there is much, and the ends of what outlasted it.
    ``findings`` are the newest of ``found``, each with its stream. ``silences`` are of all streams; they end in the
    range or later.
    """

    open_incidents: tuple[OpenIncident, ...]
    latest_notifications: tuple[HistoryEntry, ...]
    pending: tuple[UnnotifiedAlert, ...]
    covered: tuple[UnnotifiedAlert, ...]
    notifications: tuple[HistoryEntry, ...]
    is_complete: bool
    findings: tuple[tuple[str, OutlierFinding], ...]
    finding_count: int
    silences: tuple[Silence, ...] = ()
