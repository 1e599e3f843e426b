"""PagerDuty channel, by its Events API v2: the key of an incident is its ``dedup_key``, so a retry opens no second one.

It answers 202 to what it has taken, 400 to an event that it will never take, 429 when there are too many, and 5xx when
it is not itself. Its bounds: 255 characters of a ``dedup_key``, 1,024 of a summary, 512 KB of an event.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from hopwatch.alerts.channels import texts
from hopwatch.alerts.channels.channel import Outcome
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.events import Event, Notification, Severity
from hopwatch.alerts.figure_texts import format_figure
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings.channels import PagerDutyChannel

MAX_KEY: Final = 255
MAX_SUMMARY: Final = 1_024
MAX_DETAIL: Final = 8_000
_SEVERITIES: Final = {Severity.PAGE: "critical", Severity.TICKET: "warning"}


class PagerDuty:
    """Channel to one PagerDuty service."""

    def __init__(self, settings: PagerDutyChannel, clock: Clock | None = None) -> None:
        """Take the settings; nothing is sent yet."""
        self._url, self._routing_key = settings.url, settings.read_secret("routing_key")
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, [self._routing_key], clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Trigger the incident, or resolve it."""
        told = build_event(delivery.notification, is_acknowledged=delivery.is_acknowledged)
        body = json.dumps({"routing_key": self._routing_key} | told).encode()
        return self._poster.post(self._url, body, {"Content-Type": "application/json"}, now_us)

    def close(self) -> None:
        """Nothing is kept open."""


def build_event(notification: Notification, *, is_acknowledged: bool = False) -> dict[str, Any]:
    """Build the event that is posted to PagerDuty, without the routing key."""
    key = build_dedup_key(notification.key)
    if notification.event is Event.RESOLVED:
        return {"event_action": "resolve", "dedup_key": key}
    first = notification.alerts[0] if notification.alerts else None
    place = {"component": first.node or first.edge, "group": first.stream} if first else {}
    payload = {
        "summary": texts.shorten(texts.to_one_line(notification.summary), MAX_SUMMARY),
        "source": texts.shorten(texts.to_one_line(notification.labels.get("stream") or ""), MAX_SUMMARY) or "hopwatch",
        "severity": _SEVERITIES[notification.severity],
        "timestamp": format_iso(notification.since_us),
        "class": str(notification.kind),
        **{name: texts.shorten(texts.to_one_line(value), MAX_SUMMARY) for name, value in place.items() if value},
        "custom_details": build_details(notification, is_acknowledged=is_acknowledged),
    }
    links = _build_links(notification)
    return {"event_action": "trigger", "dedup_key": key, "client": "Hopwatch", "payload": payload, "links": links}


def build_details(notification: Notification, *, is_acknowledged: bool) -> dict[str, str]:
    """Build the details beside the summary."""
    first = notification.alerts[0] if notification.alerts else None
    said = {
        "places": texts.format_places(notification.alerts, notification.total, MAX_DETAIL),
        "observed": format_figure(first.observed, first.unit) if first and first.has_figures else "",
        "threshold": format_figure(first.threshold, first.unit) if first else "",
        "lost_ids": " ".join(first.lost_ids) if first else "",
        "acknowledged": "in Hopwatch" if is_acknowledged else "",
        **{f"label_{name}": value for name, value in notification.labels.items()},
        "key": notification.key,
    }
    return {name: texts.shorten(text, MAX_DETAIL) for name, text in said.items() if text}


def build_dedup_key(key: str) -> str:
    """Build a key that PagerDuty accepts; a key that is too long keeps its beginning and gets a digest."""
    if len(key) <= MAX_KEY:
        return key
    digest = sha256(key.encode("utf-8", "replace")).hexdigest()
    return f"{key[: MAX_KEY - len(digest) - 1]}-{digest}"


def _build_links(notification: Notification) -> list[dict[str, str]]:
    first = notification.alerts[0] if notification.alerts else None
    found = {"runbook": first.runbook, "dashboard": first.link} if first else {}
    is_url = ("http://", "https://")
    return [{"href": url, "text": name} for name, url in found.items() if url.startswith(is_url)]
