"""Incident history: the notifications of a range, folded into one row per incident."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import tzinfo

from hopwatch.alerts.events import AlertKind, Event, Notification
from hopwatch.alerts.storage.history import HistoryEntry
from hopwatch.dashboards.queries.alert_models import AlertsInRange
from hopwatch.dashboards.views import incidents as shown
from hopwatch.dashboards.views.incidents import SEVERITIES, AlertPlace, DeliveryView
from hopwatch.display import texts
from hopwatch.display.colours import Mark


@dataclass(frozen=True, slots=True)
class IncidentHistoryRow:
    """An incident from its beginning to its end; of what had begun before the range its first deliveries are not known.

    ``until`` is empty while it lasts. ``place`` is the worst one, and ``more`` places were hit.
    """

    mark: Mark
    rule: str
    runbook: str
    summary: str
    since_us: int
    since: str
    until: str
    duration: str
    worst_place: AlertPlace | None
    more_places: int
    start_deliveries: tuple[DeliveryView, ...]
    end_deliveries: tuple[DeliveryView, ...]


def build_history(alarms: AlertsInRange, now_us: int, zone: tzinfo) -> tuple[IncidentHistoryRow, ...]:
    """Return the incidents of a range, the latest first; heartbeats are none."""
    lasting = {one.notification.key: one.notification for one in alarms.open_incidents}
    by_key: dict[str, list[HistoryEntry]] = defaultdict(list)
    for one in sorted(alarms.notifications, key=lambda told: told.number):
        by_key[one.notification.key].append(one)
    found = []
    for key in by_key.keys() | lasting.keys():
        parts = _pair_notifications(by_key.get(key, []))
        if key in lasting:
            begun, _ = parts.pop() if parts and parts[-1][1] is None else (None, None)
            found.append(_build_row(lasting[key], begun, None, now_us, zone))
        for begun, end in parts:
            last = end or begun
            if last is not None:
                found.append(_build_row(last.notification, begun, end, now_us, zone))
    kept = [one for one in found if one is not None]
    return tuple(sorted(kept, key=lambda one: (-one.since_us, one.mark.word, one.rule, one.summary)))


NotificationPair = tuple[HistoryEntry | None, HistoryEntry | None]
"""The last news of an incident but its end, and its end, as far as they are known."""


def _pair_notifications(told: list[HistoryEntry]) -> list[NotificationPair]:
    """Return the incidents of one key, in order: each ends with an end."""
    parts: list[NotificationPair] = []
    begun: HistoryEntry | None = None
    for one in told:
        if one.notification.event is Event.RESOLVED:
            parts.append((begun, one))
            begun = None
        else:
            begun = one
    return [*parts, (begun, None)] if begun else parts


def _build_row(
    said: Notification, begun: HistoryEntry | None, end: HistoryEntry | None, now_us: int, zone: tzinfo
) -> IncidentHistoryRow | None:
    if said.kind is AlertKind.HEARTBEAT:
        return None
    ended_us = end.notification.at_us if end else None
    return IncidentHistoryRow(
        SEVERITIES[said.severity],
        said.rule,
        shown.find_runbook(said),
        said.summary,
        said.since_us,
        texts.format_moment(said.since_us, zone),
        "" if ended_us is None else texts.format_moment(ended_us, zone),
        texts.format_age((now_us if ended_us is None else ended_us) - said.since_us),
        shown.build_place(said.alerts[0], zone) if said.alerts else None,
        max(0, said.total - 1),
        shown.build_deliveries(begun.deliveries if begun else (), now_us),
        shown.build_deliveries(end.deliveries if end else (), now_us),
    )
