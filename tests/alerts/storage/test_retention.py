"""Tests of what is old of alerts: it goes some at a time, and what is yet to be sent stays."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from hopwatch.alerts.decision.inputs import ObjectiveCounts
from hopwatch.alerts.events import Event
from hopwatch.alerts.storage import alert_state, outbox, retention
from tests.support.clock import ManualClock
from tests.support.conclusions import dump_tables
from tests.support.notifications import notification
from tests.support.windows import at


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """Return the engine of a store in which ten streams were told of, and two streams counted for a day."""
    with engine.execution_options(writes=True).begin() as connection:
        for number in range(10):
            one = notification(stream=f"s{number}", at_us=at(number))
            outbox.enqueue(connection, [one], [("pager", "chat")])
        minutes = {(name, "loss", at(minute)): ObjectiveCounts(9, 1) for name in ("a", "b") for minute in range(1_440)}
        alert_state.write_counts(connection, dict(minutes))
    for delivery in outbox.query_due(engine, 0):
        if delivery.number != 3 or delivery.channel == "chat":
            outbox.mark_sent(engine, delivery)
    return engine


def test_what_was_told_long_ago_goes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what became of it; a dry run says how much. What one channel is yet to be sent stays for all of them."""
    monkeypatch.setattr(retention, "ROWS_PER_STEP", 2)
    assert retention.count_prunable(engine, at(5)) == 4
    assert list(retention.prune_alerts(engine, at(5), at(0), ManualClock())) == [2, 2]
    assert [row[0] for row in dump_tables(engine)["alert_history"]] == [3, 6, 7, 8, 9, 10]
    assert [row[0] for row in dump_tables(engine)["alert_outbox"]] == [
        number for number in (3, 6, 7, 8, 9, 10) for _ in "12"
    ]
    assert retention.count_prunable(engine, at(5)) == 0
    assert list(retention.prune_alerts(engine, at(5), at(0), ManualClock())) == []


def test_who_was_told_of_what_lasts_is_not_forgotten(engine: Engine) -> None:
    """Deliveries of open incidents are kept, however old: each channel hears of its end, and once of its beginning."""
    from tests.support.outbox import catch_up, put  # noqa: PLC0415

    put(engine, notification(at_us=at(0)), channels=("pager",))
    begun = next(one for one in outbox.query_due(engine, 0) if one.number == 11)
    outbox.enqueue_fallback(engine, begun, "mail")
    for delivery in outbox.query_due(engine, 0):
        outbox.mark_sent(engine, delivery)
    list(retention.prune_alerts(engine, at(1_000), at(0), ManualClock()))
    catch_up(engine, "pager")
    assert outbox.query_due(engine, 0) == []
    put(engine, notification(Event.RESOLVED), channels=("pager",))
    assert [one.channel for one in outbox.query_due(engine, 0)] == ["mail", "pager"]
    for delivery in outbox.query_due(engine, 0):
        outbox.mark_sent(engine, delivery)
    list(retention.prune_alerts(engine, at(1_000), at(0), ManualClock()))
    assert dump_tables(engine)["alert_history"] == []


def test_numbers_are_not_given_twice(engine: Engine) -> None:
    """Even where the history is gone."""
    list(retention.prune_alerts(engine, at(100), at(0), ManualClock()))
    with engine.execution_options(writes=True).begin() as connection:
        outbox.enqueue(connection, [notification()], [()])
    assert [row[0] for row in dump_tables(engine)["alert_history"]] == [3, 4]


def test_minutes_go_that_no_budget_is_summed_from(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of one stream at a time; those of the moment itself stay."""
    monkeypatch.setattr(retention, "WINDOW_ROWS_PER_STEP", 500)
    clock = ManualClock()
    assert list(retention.prune_alerts(engine, at(0), at(1_400), clock)) == [0] * 6
    kept = dump_tables(engine)["objective_minutes"]
    assert [row[2] for row in kept] == [at(minute) for minute in range(1_400, 1_440)] * 2
    assert clock.monotonic_s() > 0
