"""Alerts and notifications as values, with their JSON; the contract between evaluation and delivery.

An :class:`Alert` is one problem at one place. A :class:`Notification` describes one incident, identified by its key,
with the alerts that belong to it. The key holds the rule, its severity and the stream, or rule and severity alone for a
storm: so many streams at once that they make one incident. The key stays the same from the beginning of the incident to
its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

VERSION: Final = 1
"""Version of the JSON; a field may be added under the same number, none is renamed or removed."""

MAX_NAMED: Final = 20
"""Most alerts that a notification lists; the others are in its total."""

MAX_LOST_IDS: Final = 5


class EventError(ValueError):
    """The text is not a notification, or has a version that this program cannot read."""


class Severity(StrEnum):
    """Urgency of an alert: a page wakes a person now, a ticket waits until the morning."""

    PAGE = "page"
    TICKET = "ticket"


class Event(StrEnum):
    """State of an incident in a notification."""

    FIRING = "firing"
    RESOLVED = "resolved"


class AlertKind(StrEnum):
    """Kind of an alert rule; each has a runbook under its name."""

    LOSS = "loss"
    LAG = "lag"
    END_TO_END_LAG = "end_to_end_lag"
    UNKNOWN = "unknown"
    SILENT = "silent"
    OUTLIER = "outlier"
    PROBE_DROPS = "probe_drops"
    CLOCK_SKEW = "clock_skew"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    DEFERRED_AGE = "deferred_age"
    FORECAST = "forecast"
    SET_ASIDE = "set_aside"
    SELFTEST = "selftest"
    BURN_RATE = "burn_rate"
    HEARTBEAT = "heartbeat"


class Word(StrEnum):
    """Problem in one word; lost, overdue, late, unknown and silent are distinct."""

    LOST = "lost"
    OVERDUE = "overdue"
    LATE = "late"
    UNKNOWN = "unknown"
    SILENT = "silent"
    ODD = "odd"
    DROPPED = "dropped"
    SKEWED = "skewed"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    SET_ASIDE = "set aside"
    SELFTEST = "self-test failed"
    ALIVE = "alive"


class Unit(StrEnum):
    """Unit of ``observed`` and ``threshold``."""

    RATIO = "ratio"
    MICROSECONDS = "us"
    MINUTES = "minutes"
    RECORDS = "records"
    SCORE = "score"
    BURN_RATE = "burn_rate"


@dataclass(frozen=True, slots=True)
class Alert:
    """One problem at one place.

    ``stream`` is empty for what is the monitor's own, ``node`` for what is a whole stream's; ``edge`` is ``a -> b``
    where messages are lost between two nodes. ``since_us`` is the start of the first bad minute, ``window_start_us``
    that of the newest. ``affected`` of ``out_of`` are messages, stamps, observations, records or minutes, as the kind
    has them; ``out_of`` is 0 where there is no whole. ``labels`` are those of the rule: team, service and so on.
    """

    rule: str
    kind: AlertKind
    severity: Severity
    word: Word
    stream: str
    node: str
    edge: str
    since_us: int
    window_start_us: int
    observed: float
    threshold: float
    unit: Unit
    affected: int
    out_of: int
    lost_ids: tuple[str, ...]
    runbook: str
    link: str
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_figures(self) -> bool:
        """True while a bad window is valid: after an amendment that withdrew it there are no figures."""
        return self.observed > 0


@dataclass(frozen=True, slots=True)
class Notification:
    """One incident at one time, as it is sent to channels.

    ``labels`` tell it from every other incident: ``rule``, ``severity`` and, unless it is a storm over many streams,
    ``stream``. ``alerts`` are the first ``MAX_NAMED`` of ``total``, the worst first; of an incident that is over,
    those that it had last. ``at_us`` is the watermark at which it was decided, ``since_us`` the start of its first bad
    minute. ``is_news`` is false when it only updates the content: receivers are not notified again.
    """

    key: str
    event: Event
    rule: str
    kind: AlertKind
    severity: Severity
    labels: Mapping[str, str]
    alerts: tuple[Alert, ...]
    total: int
    since_us: int
    at_us: int
    summary: str
    is_news: bool = True


def build_key(rule: str, severity: Severity, stream: str) -> str:
    """Build the key of an incident; a storm over many streams has no stream. At most 200 characters."""
    return f"{rule}/{severity}/{stream or '*'}"


def qualify_key(key: str, installation: str) -> str:
    """Prefix the key of an incident with the installation's name, for receivers that several installations share."""
    return f"{installation}:{key}" if installation else key


def unqualify_key(key: str, installation: str) -> str:
    """Remove the installation's name from the key of an incident, if it is there; a rule's name holds no colon."""
    return key.removeprefix(qualify_key("", installation))


def to_json(notification: Notification) -> str:
    """Return a notification as one line of JSON."""
    return json.dumps({"version": VERSION} | asdict(notification), ensure_ascii=False, sort_keys=True)


def from_json(text: str) -> Notification:
    """Return the notification that :func:`to_json` wrote; fields that a later program has added are left out.

    Raises:
        EventError: the text is none, or of a version that this program does not know.
    """
    try:
        document = json.loads(text)
        version = document["version"]
    except (ValueError, TypeError, KeyError):
        raise EventError(f"a notification is a JSON object with a version, got {text!r:.80}") from None
    if version != VERSION:
        raise EventError(f"a notification of version {version} is not known here, only {VERSION}: use a newer program")
    try:
        return _parse_notification(document)
    except (ValueError, TypeError, KeyError) as error:
        raise EventError(f"a notification of version {VERSION} lacks something: {error}; got {text!r:.80}") from None


def _parse_notification(document: Mapping[str, Any]) -> Notification:
    values = _known_fields(Notification, document)
    values |= {
        "event": Event(document["event"]),
        "kind": AlertKind(document["kind"]),
        "severity": Severity(document["severity"]),
    }
    return Notification(**values | {"alerts": tuple(_parse_alert(alert) for alert in document["alerts"])})


def _parse_alert(document: Mapping[str, Any]) -> Alert:
    values = _known_fields(Alert, document)
    values |= {"kind": AlertKind(document["kind"]), "severity": Severity(document["severity"])}
    values |= {"word": Word(document["word"]), "unit": Unit(document["unit"]), "lost_ids": tuple(document["lost_ids"])}
    return Alert(**values)


def _known_fields(record: type[Alert | Notification], document: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: document[field.name] for field in fields(record) if field.name in document}
