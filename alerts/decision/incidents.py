"""Group firing alerts into incidents, and decide which incidents notify.

One incident is one rule, one severity and one stream, or, in a storm, one rule and severity over many streams.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hopwatch.alerts.decision import summaries
from hopwatch.alerts.decision.episode import AlertSeries, AlertState, Phase
from hopwatch.alerts.decision.rules import OWN_STREAM, AlertRule, AlertRules
from hopwatch.alerts.events import MAX_NAMED, AlertKind, Event, Notification, Severity, Word, build_key

STORM_STREAMS: Final = 5
"""Streams with an incident each, by the same rule within ``STORM_SPAN_US``; further ones make one storm."""
STORM_SPAN_US: Final = 600_000_000
GROWTH_EVERY_US: Final = 3_600_000_000
"""Shortest time between two notifications that an incident has grown."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An open incident; ``notified_total`` and ``notified_us`` are those of its last notification."""

    key: str
    rule: str
    severity: Severity
    stream: str
    opened_us: int
    notified_us: int
    notified_total: int
    notification: Notification | None = None


@dataclass(slots=True)
class IncidentBoard:
    """Working copy of states and incidents during an evaluation; collects the notifications in ``notifications``.

    It changes both mappings in place. ``clock_us`` is the end of the newest window, and never decreases. ``arrivals``
    says how many messages are missing still in a window whose overdue messages made an alert fire, and do no more.
    """

    rules: AlertRules
    states: dict[AlertSeries, AlertState]
    incidents: dict[str, Incident]
    now_us: int
    clock_us: int
    notifications: list[Notification]
    arrivals: dict[AlertSeries, int] = field(default_factory=dict)

    def update_incidents(self) -> None:
        """Update the incidents from the states, and collect new notifications."""
        # 1. An alert that no longer fires leaves its incident.
        for series, state in list(self.states.items()):
            if state.incident_key and state.run.phase is not Phase.FIRING:
                self.states[series] = replace(state, incident_key="")
        # 2. Pages first, so that they cover tickets; then the rules that name a place more exactly.
        waiting: dict[tuple[str, str], list[AlertState]] = {}
        for state in self.states.values():
            if state.run.phase is Phase.FIRING and not state.incident_key:
                waiting.setdefault((state.series.rule, state.series.severity), []).append(state)
        for rule in self.rules.by_priority if waiting else ():
            self._assign_alerts(
                rule, sorted(waiting.get((rule.name, rule.severity), ()), key=lambda state: state.series)
            )
        self._notify_incidents()

    def _assign_alerts(self, rule: AlertRule, newcomers: Iterable[AlertState]) -> None:
        """Assign alerts that begin to fire to an incident, unless another alert covers them."""
        covers = self._find_covers() if newcomers else {}
        alone: list[AlertState] = []
        for state in newcomers:
            stream = state.series.stream
            own, storm = build_key(rule.name, rule.severity, stream), build_key(rule.name, rule.severity, OWN_STREAM)
            # 3. An open incident of the same rule and stream takes the alert.
            if own in self.incidents:
                self._assign_alert(state, own)
            # 4. A notified alert of the same stream and subject, at least as urgent, covers it.
            elif _is_covered(rule, covers.get(stream, {})):
                self.states[state.series] = replace(state, covered_at_us=self.clock_us)
            # 5. After the covering alert has ended, it waits until its spans begin after that end.
            elif state.covered_at_us > self.clock_us - rule.memory_us:
                continue
            elif storm in self.incidents:
                self._assign_alert(state, storm)
            else:
                alone.append(state)
        self._open_incidents(rule, alone)

    def _open_incidents(self, rule: AlertRule, states: list[AlertState]) -> None:
        streams = {state.series.stream for state in states}
        recent = sum(
            incident.rule == rule.name
            and incident.severity == rule.severity
            and self.clock_us - incident.opened_us <= STORM_SPAN_US
            for incident in self.incidents.values()
        )
        # 6. Many streams at once have one cause: one incident.
        is_storm = len(streams) > 1 and len(streams) + recent > STORM_STREAMS
        is_storm = is_storm or (len(streams) == 1 and recent >= STORM_STREAMS)
        for state in states:
            stream = OWN_STREAM if is_storm else state.series.stream
            key = build_key(rule.name, rule.severity, stream)
            if key not in self.incidents:
                self.incidents[key] = Incident(key, rule.name, rule.severity, stream, self.clock_us, self.clock_us, 0)
            self._assign_alert(state, key)

    def _assign_alert(self, state: AlertState, key: str) -> None:
        self.states[state.series] = replace(state, incident_key=key)

    def _find_covers(self) -> dict[str, dict[str, Severity]]:
        """Return the most urgent severity among notified alerts, by stream and subject."""
        covers: dict[str, dict[str, Severity]] = {}
        for series, state in self.states.items():
            if state.incident_key:
                of_stream = covers.setdefault(series.stream, {})
                rule = self.rules.by_name[series.rule, series.severity]
                of_stream[rule.subject] = min(of_stream.get(rule.subject, rule.severity), rule.severity)
        return covers

    def _notify_incidents(self) -> None:
        members: dict[str, list[AlertState]] = {}
        for state in self.states.values():
            if state.incident_key:
                members.setdefault(state.incident_key, []).append(state)
        for key, incident in sorted(self.incidents.items()):
            if key in members:
                self._notify_incident(incident, members[key])
            else:
                # 7. An incident without alerts is over.
                del self.incidents[key]
                if incident.notification is not None:
                    over = replace(incident.notification, event=Event.RESOLVED, at_us=self.now_us, is_news=True)
                    missing = self._count_still_missing(over)
                    if missing is not None:
                        over = replace(over, summary=f"{over.summary}; {summaries.describe_arrival(missing)}")
                    self.notifications.append(over)

    def _count_still_missing(self, last: Notification) -> int | None:
        """Return how many messages are missing still of what the alerts of an incident called overdue.

        None where they were of anything else, or did not end by what arrived.
        """
        keys = [AlertSeries(one.rule, one.severity, one.stream, one.node) for one in last.alerts]
        if not keys or any(one.word is not Word.OVERDUE for one in last.alerts) or not set(keys) <= set(self.arrivals):
            return None
        return max(self.arrivals[key] for key in keys)

    def _notify_incident(self, incident: Incident, members: list[AlertState]) -> None:
        """Notify that an incident has begun or grown, or only update its content."""
        rule = self.rules.by_name[incident.rule, incident.severity]
        before = incident.notification
        notification = _build_notification(rule, self.rules, incident, members, self.now_us)
        # 8. Growth notifies at most once per ``GROWTH_EVERY_US``; changed figures only update the content.
        has_grown = (
            notification.total > incident.notified_total and self.clock_us - incident.notified_us >= GROWTH_EVERY_US
        )
        if before is None or has_grown:
            self.notifications.append(notification)
            incident = replace(incident, notified_us=self.clock_us, notified_total=notification.total)
        elif replace(before, at_us=notification.at_us, is_news=notification.is_news) == notification:
            return
        else:
            self.notifications.append(replace(notification, is_news=False))
        self.incidents[incident.key] = replace(incident, notification=notification)


def _is_covered(rule: AlertRule, covers: Mapping[str, Severity]) -> bool:
    # "page" sorts before "ticket". An outlier is only a hint: any notified alert of the stream covers it.
    by = covers.values() if rule.kind is AlertKind.OUTLIER else [covers[rule.subject]] if rule.subject in covers else []
    return any(severity <= rule.severity for severity in by)


def _build_notification(
    rule: AlertRule, rules: AlertRules, incident: Incident, members: list[AlertState], now_us: int
) -> Notification:
    # Where nodes are named, the loss of the whole stream is what they lost.
    named = {state.series.stream for state in members if state.series.node}
    places = [state for state in members if state.series.node or state.series.stream not in named]
    alerts = tuple(
        summaries.build_alert(rule, rules, state) for state in heapq.nsmallest(MAX_NAMED, places, key=_sort_key)
    )
    stream = {"stream": incident.stream} if incident.stream else {}
    streams = len({state.series.stream for state in places})
    return Notification(
        key=incident.key,
        event=Event.FIRING,
        rule=rule.name,
        kind=rule.kind,
        severity=rule.severity,
        labels=rules.merge_labels(rule, incident.stream) | {"rule": rule.name, "severity": str(rule.severity)} | stream,
        alerts=alerts,
        total=len(places),
        since_us=min(state.run.since_us for state in places),
        at_us=now_us,
        summary=alerts[0].summary if len(places) == 1 else summaries.describe_storm(alerts[0], len(places), streams),
    )


def _sort_key(state: AlertState) -> tuple[float, AlertSeries]:
    return -state.worst.observed, state.series
