"""What the page of outliers and alerts is told: what is open, what was told, what was found; values only."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.alerts.record import Open, Told, Untold
from hopwatch.monitor.outliers.series_tracker import OutlierFinding


@dataclass(frozen=True, slots=True)
class Alarms:
    """Of one stream or all; of what is ``open`` the last news with its deliveries is in ``news``.

    ``told`` is what was decided in a range, not all of it if there is much, and the ends of what outlasted it.
    ``findings`` are the newest of ``found``, each with its stream.
    """

    open: tuple[Open, ...]
    news: tuple[Told, ...]
    pending: tuple[Untold, ...]
    covered: tuple[Untold, ...]
    told: tuple[Told, ...]
    is_all_told: bool
    findings: tuple[tuple[str, OutlierFinding], ...]
    found: int
