"""What the page of outliers and alerts is told: what is open, what was told, what was found; values only."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.storage.history import HistoryEntry, OpenIncident, UnnotifiedAlert
from hopwatch.monitor.watch import Finding


@dataclass(frozen=True, slots=True)
class Alarms:
    """Of one stream or all; of what is ``open`` the last news with its deliveries is in ``news``.

    ``told`` is what was decided in a range, not all of it if there is much, and the ends of what outlasted it.
    ``findings`` are the newest of ``found``, each with its stream.
    """

    open: tuple[OpenIncident, ...]
    news: tuple[HistoryEntry, ...]
    pending: tuple[UnnotifiedAlert, ...]
    covered: tuple[UnnotifiedAlert, ...]
    told: tuple[HistoryEntry, ...]
    is_all_told: bool
    findings: tuple[tuple[str, Finding], ...]
    found: int
