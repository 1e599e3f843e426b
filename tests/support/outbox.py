"""An outbox that holds notifications, and its rows counted by state."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Engine

from hopwatch.alerts.decision.incidents import Incident
from hopwatch.alerts.events import Event, Notification, Severity
from hopwatch.alerts.storage import alert_state, outbox
from hopwatch.alerts.storage.outbox import (
    count_by_state,
)
from tests.support.notifications import notification


def put(engine: Engine, *notifications: Notification, channels: tuple[str, ...] = ("pager",)) -> None:
    """Put notifications into the outbox, each for all channels, and keep the incidents that they leave open."""
    with engine.execution_options(writes=True).begin() as connection:
        for one in notifications:
            outbox.enqueue(connection, [one], [channels])
            before = alert_state.read_snapshot(connection)
            incidents = {key: incident for key, incident in before.incidents.items() if key != one.key}
            if one.event is Event.FIRING:
                kept = before.incidents.get(one.key)
                opened_us = kept.opened_us if kept else one.at_us
                stream = one.labels.get("stream", "")
                incidents[one.key] = Incident(one.key, one.rule, Severity.PAGE, stream, opened_us, 0, 1, one)
            alert_state.write_snapshot(connection, before, replace(before, incidents=incidents))


def states(engine: Engine) -> dict[tuple[str, str], int]:
    """Count the rows by channel and state."""
    with engine.begin() as connection:
        return count_by_state(connection)


RESOLVED = notification(Event.RESOLVED)


def catch_up(engine: Engine, *channels: str) -> None:
    """Start a monitor whose channels are these, through all of which goes everything."""
    outbox.catch_up_channels(engine, lambda _: channels, channels)
