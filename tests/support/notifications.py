"""Notifications made to measure."""

from __future__ import annotations

from typing import Any

from hopwatch.alerts.events import Alert, AlertKind, Event, Notification, Severity, Unit, Word, build_key
from tests.support.windows import at


def alert(**fields: Any) -> Alert:  # noqa: ANN401 - the fields of an alert
    """Return an alert of a loss at one node."""
    given: dict[str, Any] = {
        "rule": "loss",
        "kind": AlertKind.LOSS,
        "severity": Severity.PAGE,
        "word": Word.LOST,
        "stream": "orders",
        "node": "b",
        "edge": "a -> b",
        "since_us": at(0),
        "window_start_us": at(1),
        "observed": 0.02,
        "threshold": 0.01,
        "unit": Unit.RATIO,
        "affected": 20,
        "out_of": 1_000,
        "lost_ids": ("00" * 16,),
        "runbook": "docs/runbooks/loss.md",
        "link": "",
        "summary": "lost: 20 of 1,000",
        "labels": {"team": "payments"},
    }
    return Alert(**given | fields)


def notification(event: Event = Event.FIRING, stream: str = "orders", **fields: Any) -> Notification:  # noqa: ANN401
    """Return a notification of one alert."""
    given: dict[str, Any] = {
        "key": build_key("loss", Severity.PAGE, stream),
        "event": event,
        "rule": "loss",
        "kind": AlertKind.LOSS,
        "severity": Severity.PAGE,
        "labels": {"rule": "loss", "severity": "page", "stream": stream},
        "alerts": (alert(stream=stream),),
        "total": 1,
        "since_us": at(0),
        "at_us": at(5),
        "summary": "lost: 20 of 1,000",
    }
    return Notification(**given | fields)
