"""Alertmanager, by its API v2: one alert an incident, posted to every instance, again and again until it ends.

To Alertmanager an alert is its labels: other labels, other alert. So the labels are what is the same from the beginning
of an incident to its end, and all that changes (places, figures, lost ids, the acknowledgement) is in the
annotations. An alert ends when its ``endsAt`` has passed: while it fires that is ``STANDS_FOR`` resends ahead, as with
Prometheus, so that a monitor that dies leaves no alert behind for ever; at its end it is now.

It answers 200 to what it has taken, 400 to what it will never take, and 5xx when it is not itself. Instances share
alerts with each other only while they are connected, so each of them gets the post; the notification is accepted when
one of them has it.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from hopwatch.alerts.channels import http, texts
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.events import Alert, AlertKind, Event, Notification
from hopwatch.alerts.figure_texts import format_figure
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings.channels import AlertmanagerChannel

RESENDS_UNTIL_END: Final = 4
"""Resend intervals after which Alertmanager ends an alert that is not sent again; as many as Prometheus uses."""
TRIES_PER_RESEND: Final = 4
"""Fewest tries per resend interval while Alertmanager fails: a late try would find the alert expired."""
MAX_ANNOTATION: Final = 4_000
PATH: Final = "/api/v2/alerts"

_log = structlog.get_logger("hopwatch")


class Alertmanager:
    """A channel to all instances of one Alertmanager."""

    def __init__(self, name: str, settings: AlertmanagerChannel, clock: Clock | None = None) -> None:
        """Take the settings; nothing is sent yet."""
        self._name, self._labels = name, dict(settings.labels)
        self._resend_us = settings.resend_us
        token, password = settings.read_secret("bearer_token"), settings.read_secret("password")
        authorization = _authorization(settings.username, password, token)
        self._headers = {"Content-Type": "application/json", **authorization}
        self._urls = [url.rstrip("/") + PATH for url in settings.urls]
        secrets = (token, password, *(value.partition(" ")[2] for value in authorization.values()))
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, secrets, clock)
        self._failing: set[str] = set()

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post to all instances at once."""
        body = json.dumps([build_alert(delivery, now_us, self._resend_us, self._labels)]).encode()
        outcomes = self._post_to_all(body, now_us)
        self._log_changes(outcomes)
        failures = [outcome for outcome in outcomes.values() if isinstance(outcome, Failure)]
        if len(failures) == len(outcomes):
            return replace(merge_failures(failures), within_s=self._resend_us / 1e6 / TRIES_PER_RESEND)
        # An instance that misses the end needs no retry: its alert expires by itself.
        return Accepted() if delivery.notification.event is Event.RESOLVED else Accepted(self._resend_us / 1e6)

    def close(self) -> None:
        """Nothing is kept open."""

    def _post_to_all(self, body: bytes, now_us: int) -> Mapping[str, Outcome]:
        """Post to all instances at once, and return the outcome of each."""
        outcomes: dict[str, Outcome] = {}

        def post(url: str) -> None:
            outcomes[url] = self._poster.post(url, body, self._headers, now_us)

        # No thread pool: a process that ends would wait for its threads as long as an instance hangs.
        threads = [
            threading.Thread(target=post, args=(url,), name="hopwatch-alertmanager", daemon=True) for url in self._urls
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lost = Failure("a fault of Hopwatch's own: an instance was not asked")
        return {url: outcomes.get(url, lost) for url in self._urls}

    def _log_changes(self, outcomes: Mapping[str, Outcome]) -> None:
        """Log once that an instance fails, and once that it is back, not at every resend."""
        for url, outcome in outcomes.items():
            if isinstance(outcome, Failure) and url not in self._failing:
                self._failing.add(url)
                _log.warning("an Alertmanager fails", channel=self._name, why=outcome.why)
            elif isinstance(outcome, Accepted) and url in self._failing:
                self._failing.remove(url)
                _log.info("an Alertmanager is back", channel=self._name, place=http.redact_url(url))


def merge_failures(failures: Sequence[Failure]) -> Failure:
    """Merge the failures of all instances: permanent if each one is, else with the shortest wait that one asks for."""
    waits = [failure.wait_s for failure in failures if failure.wait_s is not None and not failure.is_for_good]
    return Failure(
        "; ".join(dict.fromkeys(failure.why for failure in failures)),
        is_for_good=all(failure.is_for_good for failure in failures),
        wait_s=min(waits, default=None),
    )


def build_alert(delivery: Delivery, now_us: int, resend_us: int, more: Mapping[str, str]) -> dict[str, Any]:
    """Build the alert that is posted to Alertmanager; ``more`` are labels that all alerts of the channel have."""
    notification = delivery.notification
    starts_us = min(notification.since_us, now_us)
    is_over = notification.event is Event.RESOLVED
    alert: dict[str, Any] = {
        "labels": build_labels(notification, more),
        "annotations": build_annotations(notification, is_acknowledged=delivery.is_acknowledged),
        "startsAt": _format_time(starts_us),
        "endsAt": _format_time(now_us if is_over else now_us + RESENDS_UNTIL_END * resend_us),
    }
    link = notification.alerts[0].link if notification.alerts else ""
    return alert | ({"generatorURL": link} if link.startswith(("http://", "https://")) else {})


def build_labels(notification: Notification, more: Mapping[str, str]) -> dict[str, str]:
    """Build the labels that identify an incident; they stay the same from its beginning to its end."""
    name = "Hopwatch" + "".join(part.capitalize() for part in notification.kind.split("_"))
    labels = {**more, **notification.labels, "alertname": name, "kind": str(notification.kind)}
    return {key: texts.to_one_line(value) for key, value in labels.items() if texts.to_one_line(value)}


def build_annotations(notification: Notification, *, is_acknowledged: bool) -> dict[str, str]:
    """Build the annotations: all content that may change while the incident lasts."""
    first = notification.alerts[0] if notification.alerts else None
    annotations = {
        "summary": texts.to_one_line(notification.summary),
        "description": texts.format_places(notification.alerts, notification.total, MAX_ANNOTATION),
        "places": f"{notification.total:,}",
        "key": notification.key,
        "acknowledged": "yes" if is_acknowledged else "",
        **(_build_figures(first) if first and first.kind is not AlertKind.HEARTBEAT else {}),
    }
    return {name: texts.shorten(text, MAX_ANNOTATION) for name, text in annotations.items() if text}


def _build_figures(worst: Alert) -> dict[str, str]:
    runbook = "runbook_url" if worst.runbook.startswith(("http://", "https://")) else "runbook"
    figures = {
        "word": str(worst.word),
        "node": worst.node,
        "edge": worst.edge,
        "since": format_iso(worst.since_us),
        "window": format_iso(worst.window_start_us),
        "observed": format_figure(worst.observed, worst.unit) if worst.has_figures else "",
        "threshold": format_figure(worst.threshold, worst.unit),
        "affected": texts.format_affected(worst) if worst.has_figures else "",
        "lost_ids": " ".join(worst.lost_ids),
        runbook: worst.runbook,
        "dashboard": worst.link,
    }
    return {name: texts.to_one_line(text) for name, text in figures.items()}


def _authorization(username: str, password: str, token: str) -> dict[str, str]:
    if token:
        return {"Authorization": f"Bearer {token}"}
    if username:
        return {"Authorization": "Basic " + b64encode(f"{username}:{password}".encode()).decode()}
    return {}


def _format_time(at_us: int) -> str:
    """Format a time as Alertmanager reads it; the zone is part of it."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
