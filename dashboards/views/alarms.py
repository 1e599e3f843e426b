"""Alerts as the page tells them: what fires, where, over what, and how each channel took it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.alerts.events import Alert, AlertKind, Notification, Severity, Unit
from hopwatch.alerts.storage.history import ChannelDelivery, OpenIncident, UnnotifiedAlert
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.dashboards.reading.alarms import Alarms
from hopwatch.dashboards.views import texts
from hopwatch.dashboards.views.colours import Mark

SEVERITIES: Final = {
    Severity.PAGE: Mark("PAGE", "▲", "somebody is called now", "lossy"),
    Severity.TICKET: Mark("TICKET", "■", "nobody is called before the morning", "unknown"),
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
    DeliveryState.DEAD: Mark("given up", "✕", "the channel does not take it, and is not asked again", "lossy"),
}
_UNITS: Final = {
    AlertKind.LOSS: "messages",
    AlertKind.LAG: "stamps",
    AlertKind.END_TO_END_LAG: "messages",
    AlertKind.PROBE_DROPS: "observations",
    AlertKind.CLOCK_SKEW: "stamps",
    AlertKind.REJECTED: "messages",
    AlertKind.SET_ASIDE: "records",
    AlertKind.BURN_RATE: "messages",
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a notification at one channel; the note has its failures."""

    channel: str
    mark: Mark
    note: str


@dataclass(frozen=True, slots=True)
class Place:
    """One thing that is wrong at one place; without a stream it is the monitor's own."""

    stream: str
    node: str
    edge: str
    window_us: int
    since: str
    observed: str
    expected: str
    affected: str
    words: str


@dataclass(frozen=True, slots=True)
class Firing:
    """An incident that is open; ``more`` places than those that it names are hit."""

    mark: Mark
    key: str
    rule: str
    runbook: str
    summary: str
    since: str
    lasts: str
    taken: str
    places: tuple[Place, ...]
    more: int
    deliveries: tuple[Delivery, ...]


def firing(alarms: Alarms, now_us: int, zone: tzinfo) -> tuple[Firing, ...]:
    """Return what is open, pages first, then the oldest; a heartbeat is none."""
    news = {one.notification.key: one.sendings for one in alarms.news}
    lasting = [one for one in alarms.open if one.notification.kind is not AlertKind.HEARTBEAT]
    ordered = sorted(lasting, key=lambda one: (one.notification.severity, one.notification.since_us))
    return tuple(_firing(one, news.get(one.notification.key, ()), now_us, zone) for one in ordered)


def _firing(one: OpenIncident, sendings: Iterable[ChannelDelivery], now_us: int, zone: tzinfo) -> Firing:
    notification = one.notification
    taken = one.taken
    note = f": {taken.note}" if taken and taken.note else ""
    return Firing(
        SEVERITIES[notification.severity],
        notification.key,
        notification.rule,
        runbook(notification),
        notification.summary,
        texts.moment(notification.since_us, zone),
        texts.age(now_us - notification.since_us),
        f"taken on by {taken.by} {texts.age(now_us - taken.at_us)} ago{note}" if taken else "",
        tuple(place(alert, zone) for alert in notification.alerts),
        notification.total - len(notification.alerts),
        deliveries(sendings, now_us),
    )


def heartbeat(alarms: Alarms, now_us: int) -> str:
    """Return how the dead-man's switch stands, which fires as long as all is well."""
    found = next((one for one in alarms.open if one.notification.kind is AlertKind.HEARTBEAT), None)
    if found is None:
        return "No heartbeat stands: its rule is off, or the monitor has not decided about alerts yet."
    told = next((one for one in alarms.news if one.notification.key == found.notification.key), None)
    named = [f"{one.channel} ({one.mark.word})" for one in deliveries(told.sendings if told else (), now_us)]
    ways = ", ".join(named) or "no channel hears it"
    return f"The heartbeat stands, as it does while the monitor decides: {ways}."


def untold(found: Iterable[UnnotifiedAlert], now_us: int) -> tuple[tuple[Mark, str, str], ...]:
    """Return alerts that no incident tells of: severity, rule and place, and for how long they have been bad."""
    return tuple(
        (
            SEVERITIES[Severity(one.severity)],
            f"{one.rule}: {' '.join(part for part in (one.stream, one.node) if part) or 'the monitor itself'}",
            f"for {texts.age(now_us - one.since_us)}",
        )
        for one in found
    )


def runbook(notification: Notification) -> str:
    """Return where it stands what to do."""
    return next((alert.runbook for alert in notification.alerts if alert.runbook), "")


def place(alert: Alert, zone: tzinfo) -> Place:
    """Return one alert: what was observed, and what is allowed."""
    whole = f"{texts.count(alert.affected)} of {texts.count(alert.out_of)}" if alert.out_of else ""
    whole = whole or (texts.count(alert.affected) if alert.affected else "")
    return Place(
        alert.stream,
        alert.node,
        alert.edge,
        alert.window_start_us,
        texts.moment(alert.since_us, zone),
        quantity(alert.observed, alert.unit) if alert.has_figures else "",
        _expected(alert),
        f"{whole} {_UNITS.get(alert.kind, '')}".strip() if whole else "",
        alert.summary,
    )


def deliveries(sendings: Iterable[ChannelDelivery], now_us: int) -> tuple[Delivery, ...]:
    """Return how each channel took a notification, with its failures and when it is tried again."""
    return tuple(Delivery(one.channel, FATES[one.fate], _failures(one, now_us)) for one in sendings)


def quantity(number: float, unit: Unit) -> str:
    """Return a figure of an alert with its unit."""
    match unit:
        case Unit.RATIO:
            return texts.ratio(number)
        case Unit.MICROSECONDS:
            return texts.span(round(number))
        case Unit.MINUTES:
            return f"{number:,.0f} min"
        case Unit.RECORDS:
            return f"{number:,.0f} {'record' if number == 1 else 'records'}"
        case Unit.SCORE:
            return f"score {number:,.1f}"
        case Unit.BURN_RATE:
            return f"{number:,.1f} times the budget"


def _expected(alert: Alert) -> str:
    # What is counted in minutes fires when it has lasted so long; a score is explained in words.
    if alert.unit is Unit.SCORE:
        return texts.NONE
    told = quantity(alert.threshold, alert.unit)
    return f"less than {told}" if alert.unit is Unit.MINUTES else f"at most {told}"


def _failures(one: ChannelDelivery, now_us: int) -> str:
    if not one.tries:
        return ""
    told = f"{texts.count(one.tries)} {'failure' if one.tries == 1 else 'failures'}, the last: {one.last_error}"
    is_open = one.fate in {DeliveryState.WAITING, DeliveryState.STANDING} and one.next_try_us > now_us
    return f"{told}; tried again in {texts.age(one.next_try_us - now_us)}" if is_open else told
