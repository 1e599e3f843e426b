"""Rows of open incidents and pending alerts, with the delivery status of each channel."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.alerts.events import Alert, AlertKind, Notification, Severity, Unit
from hopwatch.alerts.figure_texts import format_figure
from hopwatch.alerts.storage.history import ChannelDelivery, OpenIncident, UnnotifiedAlert
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.alerts.storage.silences import EVERYTHING, Silence, find_silence
from hopwatch.dashboards.queries.alert_models import AlertsInRange
from hopwatch.display import texts
from hopwatch.display.colours import Mark

SEVERITIES: Final = {
    Severity.PAGE: Mark("PAGE", "▲", "a person is paged now", "lossy"),
    Severity.TICKET: Mark("TICKET", "■", "waits until the morning", "unknown"),
}
FATES: Final = {
    DeliveryState.WAITING: Mark(
        "waiting", "…", "to be sent yet, or again where the channel did not take it", "pending"
    ),
    DeliveryState.STANDING: Mark("standing", "↻", "sent, and sent again for as long as the incident lasts", "clean"),
    DeliveryState.SENT: Mark("sent", "✓", "the channel has taken it", "clean"),
    DeliveryState.SUPERSEDED: Mark(
        "superseded", "→", "something newer of the same incident was sent in its place", "idle"
    ),
    DeliveryState.SILENCED: Mark("silenced", "◌", "not sent, as its incident began and ended within a silence", "idle"),
    DeliveryState.DEAD: Mark("given up", "✕", "the channel does not take it, and is not asked again", "lossy"),
}
_AFFECTED_UNITS: Final = {
    AlertKind.LOSS: "messages",
    AlertKind.LAG: "stamps",
    AlertKind.END_TO_END_LAG: "messages",
    AlertKind.PROBE_DROPS: "observations",
    AlertKind.CLOCK_SKEW: "stamps",
    AlertKind.REJECTED: "messages",
    AlertKind.DEFERRED: "messages",
    AlertKind.DEFERRED_AGE: "messages",
    AlertKind.SET_ASIDE: "records",
    AlertKind.BURN_RATE: "messages",
}


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Delivery of a notification to one channel; the note has its failures."""

    channel: str
    mark: Mark
    note: str


@dataclass(frozen=True, slots=True)
class AlertPlace:
    """One thing that is wrong at one place; without a stream it is the monitor's own."""

    stream: str
    node: str
    edge: str
    window_us: int
    since: str
    observed: str
    expected: str
    affected: str
    summary: str


@dataclass(frozen=True, slots=True)
class IncidentView:
    """An incident that is open; ``more`` places than those that it names are hit."""

    mark: Mark
    key: str
    rule: str
    runbook: str
    summary: str
    since: str
    duration: str
    acknowledged: str
    silenced: str
    commands: tuple[str, ...]
    places: tuple[AlertPlace, ...]
    more_places: int
    deliveries: tuple[DeliveryView, ...]


def build_incidents(alarms: AlertsInRange, now_us: int, zone: tzinfo) -> tuple[IncidentView, ...]:
    """Return what is open, pages first, then the oldest; a heartbeat is none."""
    news = {one.notification.key: one.deliveries for one in alarms.latest_notifications}
    lasting = [one for one in alarms.open_incidents if not one.is_heartbeat]
    ordered = sorted(lasting, key=lambda one: (one.notification.severity, one.notification.since_us))
    return tuple(
        _build_incident(
            one,
            news.get(one.notification.key, ()),
            find_silence(alarms.silences, one.notification.key, now_us),
            now_us,
            zone,
        )
        for one in ordered
    )


def format_silences(alarms: AlertsInRange, now_us: int, zone: tzinfo) -> dict[int, str]:
    """Return a line for each silence that lasts or is to come, by its number."""
    lasting = [one for one in alarms.silences if one.until_us > now_us]
    return {one.number: f"{one.number}: {_format_silence(one, now_us, zone)}" for one in lasting}


def _format_silence(one: Silence, now_us: int, zone: tzinfo) -> str:
    target = "all incidents" if one.target == EVERYTHING else one.target
    begins = "" if one.from_us <= now_us else f"from {texts.format_moment(one.from_us, zone)} "
    return f"{target}, {begins}until {texts.format_moment(one.until_us, zone)}, by {one.by}: {one.why}"


def _build_commands(key: str) -> tuple[str, ...]:
    return (
        f'hopwatch alerts ack {shlex.quote(key)} --note "…"',
        f'hopwatch alerts silence {shlex.quote(key)} --for 2h --why "…"',
    )


def _build_incident(
    one: OpenIncident, sendings: Iterable[ChannelDelivery], silence: Silence | None, now_us: int, zone: tzinfo
) -> IncidentView:
    notification = one.notification
    taken = one.acknowledgement
    note = f": {taken.note}" if taken and taken.note else ""
    return IncidentView(
        SEVERITIES[notification.severity],
        notification.key,
        notification.rule,
        find_runbook(notification),
        notification.summary,
        texts.format_moment(notification.since_us, zone),
        texts.format_age(now_us - notification.since_us),
        f"acknowledged by {taken.by} {texts.format_age(now_us - taken.at_us)} ago{note}" if taken else "",
        f"silenced until {texts.format_moment(silence.until_us, zone)}: {silence.why}" if silence else "",
        _build_commands(notification.key),
        tuple(build_place(alert, zone) for alert in notification.alerts),
        notification.total - len(notification.alerts),
        build_deliveries(sendings, now_us),
    )


def format_heartbeat(alarms: AlertsInRange, now_us: int) -> str:
    """Return the state of the heartbeat, which fires as long as the monitor evaluates alerts."""
    found = next((one for one in alarms.open_incidents if one.is_heartbeat), None)
    if found is None:
        return "No heartbeat is firing: its rule is off, or the monitor has not evaluated alerts yet."
    told = next((one for one in alarms.latest_notifications if one.notification.key == found.notification.key), None)
    named = [f"{one.channel} ({one.mark.word})" for one in build_deliveries(told.deliveries if told else (), now_us)]
    ways = ", ".join(named) or "sent to no channel"
    return f"The heartbeat is firing, as it does while the monitor evaluates alerts: {ways}."


def build_pending_rows(found: Iterable[UnnotifiedAlert], now_us: int) -> tuple[tuple[Mark, str, str], ...]:
    """Return alerts without an incident: severity, rule and place, and for how long they have been bad."""
    return tuple(
        (
            SEVERITIES[Severity(one.severity)],
            f"{one.rule}: {' '.join(part for part in (one.stream, one.node) if part) or 'the monitor itself'}",
            f"for {texts.format_age(now_us - one.since_us)}",
        )
        for one in found
    )


def find_runbook(notification: Notification) -> str:
    """Return the URL of the runbook."""
    return next((alert.runbook for alert in notification.alerts if alert.runbook), "")


def build_place(alert: Alert, zone: tzinfo) -> AlertPlace:
    """Return one alert: what was observed, and what is allowed."""
    whole = f"{texts.format_count(alert.affected)} of {texts.format_count(alert.out_of)}" if alert.out_of else ""
    whole = whole or (texts.format_count(alert.affected) if alert.affected else "")
    return AlertPlace(
        alert.stream,
        alert.node,
        alert.edge,
        alert.window_start_us,
        texts.format_moment(alert.since_us, zone),
        format_figure(alert.observed, alert.unit) if alert.has_figures else "",
        _format_expected(alert),
        f"{whole} {_AFFECTED_UNITS.get(alert.kind, '')}".strip() if whole else "",
        alert.summary,
    )


def build_deliveries(sendings: Iterable[ChannelDelivery], now_us: int) -> tuple[DeliveryView, ...]:
    """Return how each channel took a notification, with its failures and when it is tried again."""
    return tuple(DeliveryView(one.channel, FATES[one.state], _format_failures(one, now_us)) for one in sendings)


def _format_expected(alert: Alert) -> str:
    # What is counted in minutes fires when it has lasted so long; a score is explained in words.
    if alert.unit is Unit.SCORE:
        return texts.NONE
    told = format_figure(alert.threshold, alert.unit)
    return f"less than {told}" if alert.unit is Unit.MINUTES else f"at most {told}"


def _format_failures(one: ChannelDelivery, now_us: int) -> str:
    if not one.tries:
        return ""
    told = f"{texts.format_count(one.tries)} {'failure' if one.tries == 1 else 'failures'}, the last: {one.last_error}"
    is_open = one.state in {DeliveryState.WAITING, DeliveryState.STANDING} and one.next_try_us > now_us
    return f"{told}; tried again in {texts.format_age(one.next_try_us - now_us)}" if is_open else told
