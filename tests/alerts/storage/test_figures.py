"""Tests of what metrics show of alerts: what is open, and what waits."""

from __future__ import annotations

from sqlalchemy import Engine

from hopwatch.alerts.events import Event
from hopwatch.alerts.storage import figures, outbox
from hopwatch.monitor.metrics.snapshot import AlertFigures
from hopwatch.monitor.store import schema
from tests.support.notifications import notification
from tests.support.outbox import put
from tests.support.windows import at


def read(engine: Engine) -> AlertFigures:
    """Return the figures."""
    with schema.open_snapshot(engine) as connection:
        return figures.read_figures(connection)


def test_where_nothing_is_wrong_there_is_nothing_to_show(engine: Engine) -> None:
    """And no oldest notification."""
    assert read(engine) == AlertFigures()


def test_incidents_are_counted_by_rule_and_severity(engine: Engine) -> None:
    """Over all streams; one that is over counts no more."""
    put(engine, notification(), notification(stream="refunds"), notification(stream="a/b"))
    one = notification()
    assert read(engine).incidents == {(one.rule, one.severity.value): 3}
    put(engine, notification(Event.RESOLVED))
    assert read(engine).incidents == {(one.rule, one.severity.value): 2}


def test_the_outbox_is_counted_by_channel_and_state(engine: Engine) -> None:
    """With the moment of the oldest that waits, until none does."""
    put(engine, notification(), channels=("pager", "chat"))
    found = read(engine)
    assert found.outbox == {("chat", "waiting"): 1, ("pager", "waiting"): 1}
    assert found.oldest_waiting_us == notification().at_us == at(5)
    for delivery in outbox.query_due(engine, at(9)):
        outbox.mark_sent(engine, delivery)
    assert read(engine).oldest_waiting_us is None
