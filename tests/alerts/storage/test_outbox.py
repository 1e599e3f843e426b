"""Tests of the outbox: what is due when, what becomes of it, and that nothing is missed or told twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine, select

from hopwatch.alerts.decision.episode import BEGINNING_US
from hopwatch.alerts.decision.evaluation import AlertSnapshot
from hopwatch.alerts.events import AlertKind, Event
from hopwatch.alerts.storage import alert_state
from hopwatch.alerts.storage.acknowledgements import acknowledge_incident
from hopwatch.alerts.storage.history import Acknowledgement
from hopwatch.alerts.storage.outbox import (
    MAX_WAIT_US,
    ChannelBacklog,
    Delivery,
    enqueue_fallback,
    mark_dead,
    mark_failed,
    mark_sent,
    query_backlog,
    query_due,
)
from hopwatch.monitor.store import tables
from tests.support.notifications import notification
from tests.support.outbox import RESOLVED, catch_up, put, states
from tests.support.windows import at

NOW_US = at(100)


def only(engine: Engine, now_us: int = NOW_US) -> Delivery:
    """Return the one delivery that is due."""
    (delivery,) = query_due(engine, now_us)
    return delivery


def test_what_is_put_is_due_at_once_for_every_channel(engine: Engine) -> None:
    """New rows are due at once by any clock, in order of numbers and channels."""
    put(engine, notification(), notification(stream="refunds"), channels=("pager", "chat"))
    found = query_due(engine, 0)
    assert [(one.number, one.channel) for one in found] == [(1, "chat"), (1, "pager"), (2, "chat"), (2, "pager")]
    assert found[0].notification == notification()
    assert (found[0].created_us, found[0].tries, found[0].is_again) == (at(5), 0, False)
    assert len(query_due(engine, 0, most=3)) == 3


def test_what_was_sent_is_done(engine: Engine) -> None:
    """For a channel that needs to be told once."""
    put(engine, notification())
    mark_sent(engine, only(engine))
    assert query_due(engine, NOW_US) == []
    assert states(engine) == {("pager", "sent"): 1}


def test_what_stands_is_sent_again_until_its_incident_ends(engine: Engine) -> None:
    """With what it says by then; its end is sent once."""
    put(engine, notification())
    mark_sent(engine, only(engine), again_at_us=NOW_US + 60)
    assert query_due(engine, NOW_US + 59) == []
    put(engine, notification(total=7, is_news=False))
    again = only(engine, NOW_US + 60)
    assert (again.is_again, again.notification.total) == (True, 7)
    mark_sent(engine, again, again_at_us=NOW_US + 120)
    put(engine, RESOLVED)
    end = only(engine, NOW_US + 120)
    assert end.notification.event is Event.RESOLVED
    mark_sent(engine, end, again_at_us=NOW_US + 180)
    assert states(engine) == {("pager", "sent"): 2}


def test_what_is_over_when_it_is_sent_does_not_stand(engine: Engine) -> None:
    """A beginning that comes through behind its end is not sent again: it would open what is over."""
    put(engine, notification())
    mark_failed(engine, only(engine), "500", NOW_US + 10)
    put(engine, RESOLVED)
    mark_sent(engine, only(engine, NOW_US + 10), again_at_us=NOW_US + 70)
    mark_sent(engine, only(engine, NOW_US + 10), again_at_us=NOW_US + 70)
    assert query_due(engine, NOW_US + 70) == []
    assert states(engine) == {("pager", "sent"): 2}


def test_what_failed_is_tried_again_later(engine: Engine) -> None:
    """A failed delivery keeps its tries and a bounded text of the error until it is sent."""
    put(engine, notification())
    mark_failed(engine, only(engine), "503 " * 1_000, NOW_US + 10)
    assert query_due(engine, NOW_US + 9) == []
    again = only(engine, NOW_US + 10)
    assert (again.tries, again.is_again) == (1, False)
    mark_failed(engine, again, "500", NOW_US + 30)
    mark_sent(engine, only(engine, NOW_US + 30), again_at_us=NOW_US + 90)
    again = only(engine, NOW_US + 90)
    assert (again.tries, again.is_again) == (0, True)
    mark_failed(engine, again, "500", NOW_US + 100)
    assert only(engine, NOW_US + 100).is_again


def test_a_beginning_is_not_overtaken_by_its_end(engine: Engine) -> None:
    """The resolved notification waits until the firing one is sent."""
    put(engine, notification())
    mark_failed(engine, only(engine), "down", NOW_US + 600)
    put(engine, RESOLVED, notification(stream="refunds"))
    assert [one.notification.labels["stream"] for one in query_due(engine, NOW_US)] == ["refunds"]
    begun = query_due(engine, NOW_US + 600)[0]
    assert begun.notification == notification()
    mark_sent(engine, begun)
    assert [one.notification.event for one in query_due(engine, NOW_US + 600)] == [Event.RESOLVED, Event.FIRING]


def test_what_is_newer_stands_in_for_what_could_not_be_sent(engine: Engine) -> None:
    """At most two rows per key and channel wait, however often an alert fires and ends while a receiver is down."""
    for _ in range(50):
        put(engine, notification(), RESOLVED)
    put(engine, notification())
    assert states(engine) == {("pager", "waiting"): 1, ("pager", "superseded"): 100}
    assert only(engine).number == 101


def test_what_is_refused_is_given_up(engine: Engine) -> None:
    """A delivery that is given up does not block the next one."""
    put(engine, notification(), RESOLVED)
    mark_dead(engine, only(engine), "400 no such route")
    assert only(engine).notification == RESOLVED
    assert states(engine) == {("pager", "dead"): 1, ("pager", "waiting"): 1}


def test_another_channel_takes_over_once(engine: Engine) -> None:
    """A second channel takes over once, and the first one is retried on."""
    put(engine, notification())
    for _ in range(2):
        enqueue_fallback(
            engine, only(engine) if len(query_due(engine, NOW_US)) == 1 else query_due(engine, NOW_US)[1], "mail"
        )
    assert [(one.channel, one.tries) for one in query_due(engine, NOW_US)] == [("mail", 0), ("pager", 0)]


def test_an_end_that_waits_is_handed_over_with_its_beginning(engine: Engine) -> None:
    """A fallback gets the firing notification with its resolved one; superseded rows stay."""
    put(engine, notification(), RESOLVED)
    begun = only(engine)
    assert enqueue_fallback(engine, begun, "mail")
    assert not enqueue_fallback(engine, begun, "mail")
    assert states(engine) == {("pager", "waiting"): 2, ("mail", "waiting"): 2}
    put(engine, notification())
    assert enqueue_fallback(engine, begun, "chat")
    assert states(engine)["chat", "waiting"] == 1


def test_what_is_handed_over_late_opens_nothing_that_is_over(engine: Engine) -> None:
    """No growth is handed over after the end, as it would open the incident at the fallback for ever."""
    put(engine, notification())
    enqueue_fallback(engine, only(engine), "mail")
    put(engine, notification(total=7), RESOLVED)
    grown = next(one for one in query_due(engine, NOW_US) if one.channel == "pager")
    assert not enqueue_fallback(engine, grown, "mail")
    while found := query_due(engine, NOW_US, channel="mail"):
        mark_sent(engine, found[0])
    assert found == []
    with engine.begin() as connection:
        rows = connection.execute(select(tables.alert_outbox.c.number).where(tables.alert_outbox.c.channel == "mail"))
        assert sorted(rows.scalars()) == [1, 3]


def test_one_channel_may_be_asked_for(engine: Engine) -> None:
    """So that what waits for one that is down leaves room for others."""
    put(engine, *[notification(stream=f"s{number}") for number in range(5)])
    put(engine, notification(stream="late"), channels=("chat",))
    assert [one.channel for one in query_due(engine, NOW_US, most=3, channel="chat")] == ["chat"]
    found, waiting = query_backlog(engine, NOW_US)
    assert (found, waiting) == (
        {"pager", "chat"},
        {"pager": ChannelBacklog(5, at(5)), "chat": ChannelBacklog(1, at(5))},
    )


def test_what_is_due_further_away_than_any_wait_is_due(engine: Engine) -> None:
    """The clock that said so was put back since."""
    put(engine, notification())
    mark_failed(engine, only(engine), "down", NOW_US + MAX_WAIT_US + 2)
    assert query_due(engine, NOW_US + 2) == []
    assert len(query_due(engine, NOW_US + 1)) == 1


def test_who_was_told_of_a_beginning_is_told_of_its_end(engine: Engine) -> None:
    """The channel that took over, and one that the routes have no more; not those of the incident before."""
    put(engine, notification(), RESOLVED, channels=("old",))
    put(engine, notification(), channels=("pager",))
    enqueue_fallback(engine, next(one for one in query_due(engine, NOW_US) if one.channel == "pager"), "mail")
    put(engine, RESOLVED, channels=("chat",))
    for delivery in query_due(engine, NOW_US):
        mark_sent(engine, delivery)
    ends = [one for one in query_due(engine, NOW_US) if one.number == 4]
    assert sorted(one.channel for one in ends) == ["mail", "pager"]
    assert states(engine)["chat", "sent"] == 1


def test_an_end_that_was_given_up_is_told_when_its_channel_is_back(engine: Engine) -> None:
    """A resolved notification is retried at channels that had the firing one, unless a newer one exists."""
    put(engine, notification(), notification(stream="refunds"))
    begun, refused = query_due(engine, NOW_US)
    mark_sent(engine, begun)
    mark_dead(engine, refused, "400")
    put(engine, RESOLVED, notification(Event.RESOLVED, stream="refunds"))
    for end in query_due(engine, NOW_US):
        mark_dead(engine, end, "no channel of this name is configured")
    catch_up(engine, "chat")
    assert query_due(engine, NOW_US) == []
    catch_up(engine, "pager", "chat")
    assert only(engine).notification == RESOLVED
    mark_dead(engine, only(engine), "401")
    put(engine, notification())
    mark_sent(engine, only(engine))
    catch_up(engine, "pager")
    assert query_due(engine, NOW_US) == []


def test_what_was_superseded_meanwhile_stays_so(engine: Engine) -> None:
    """A sender that comes back late changes nothing of it."""
    put(engine, notification())
    late = only(engine)
    put(engine, RESOLVED, notification())
    mark_sent(engine, late, again_at_us=NOW_US)
    mark_failed(engine, late, "late", NOW_US)
    assert states(engine) == {("pager", "superseded"): 2, ("pager", "waiting"): 1}


def test_what_is_no_news_is_not_told(engine: Engine) -> None:
    """Neither in the outbox nor in the history."""
    put(engine, notification(is_news=False))
    assert query_due(engine, NOW_US) == []


def test_a_heartbeat_is_sent_again_only_when_the_monitor_has_come_further(engine: Engine) -> None:
    """A loop that goes on sending it for a monitor that stands still would lie."""
    beat = notification(kind=AlertKind.HEARTBEAT)
    put(engine, beat)
    mark_sent(engine, only(engine), again_at_us=NOW_US)
    assert query_due(engine, NOW_US) == []
    put(engine, replace(beat, at_us=at(6), is_news=False))
    assert only(engine).notification.at_us == at(6)


@pytest.mark.parametrize("taken_us", [at(5), at(4)])
def test_an_acknowledgement_is_of_one_incident(taken_us: int, engine: Engine) -> None:
    """Not of the one before under the same key."""
    put(engine, notification(at_us=taken_us))
    acknowledge_incident(engine, notification().key, Acknowledgement("me", NOW_US, ""))
    put(engine, RESOLVED)
    put(engine, notification())
    put(engine, notification(total=2))
    assert not query_due(engine, NOW_US)[0].is_acknowledged
    acknowledge_incident(engine, notification().key, Acknowledgement("me", NOW_US, ""))
    assert query_due(engine, NOW_US)[0].is_acknowledged


def test_an_empty_store_has_nothing_to_remember(engine: Engine) -> None:
    """An empty store has the empty snapshot, with which the first micro-batch begins."""
    with engine.begin() as connection:
        assert alert_state.read_snapshot(connection) == AlertSnapshot(clock_us=BEGINNING_US)
