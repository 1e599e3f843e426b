"""Figures for the monitor's metrics: open incidents, and the backlog of the outbox."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from hopwatch.alerts.storage import outbox
from hopwatch.alerts.storage.outbox import DeliveryState
from hopwatch.monitor.metrics.snapshot import AlertFigures
from hopwatch.monitor.store import tables

_incidents, _outbox = tables.alert_incidents.c, tables.alert_outbox.c


def read_figures(connection: Connection) -> AlertFigures:
    """Read the number of open incidents and the backlog of the outbox."""
    incidents: dict[tuple[str, str], int] = {}
    for key in connection.execute(select(_incidents.key)).scalars():
        # RULE/SEVERITY/STREAM, or RULE/SEVERITY/* for a storm; a rule's name holds no slash.
        rule, severity, _ = key.split("/", 2)
        incidents[rule, severity] = incidents.get((rule, severity), 0) + 1
    oldest = select(func.min(_outbox.created_us)).where(_outbox.state == DeliveryState.WAITING.value)
    return AlertFigures(incidents, outbox.count_by_state(connection), connection.execute(oldest).scalar())
