"""Tests of silences: what they hold back, what goes on, and that nobody is left with what is not so."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.events import AlertKind, Event
from hopwatch.alerts.storage.outbox import query_backlog, query_due
from hopwatch.alerts.storage.retention import prune_alerts
from hopwatch.alerts.storage.silences import EVERYTHING, Silence, add_silence, end_silence, find_silence, query_silences
from hopwatch.monitor.store import dialect, schema, tables
from tests.support.channel import ERROR, Receiver, Spell
from tests.support.clock import ManualClock
from tests.support.notifications import notification
from tests.support.outbox import RESOLVED, put, states
from tests.support.windows import at

NOW_US: Final = at(100)
HOUR_US: Final = 3_600_000_000
KEY: Final = notification().key
HEARTBEAT: Final = notification(key="heartbeat/page/*", kind=AlertKind.HEARTBEAT, labels={"rule": "heartbeat"})
STREAMS: Final = ("orders", "Orders", "orders_eu")


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that stands at a moment after all that was put."""
    return ManualClock(NOW_US)


@pytest.fixture
def pager(clock: ManualClock) -> Receiver:
    """Return a receiver that takes all."""
    return Receiver(clock)


@pytest.fixture
def dispatcher(engine: Engine, clock: ManualClock, pager: Receiver) -> Dispatcher:
    """Return a dispatcher to it."""
    return Dispatcher(engine, Routing({"pager": pager}), clock)


def silence(engine: Engine, target: str = "orders", from_us: int = NOW_US, span_us: int = HOUR_US) -> int:
    """Silence a target."""
    return add_silence(engine, Silence(target, from_us, from_us + span_us, "ada", "upgrade"))


@pytest.mark.parametrize("target", ["orders", KEY, EVERYTHING])
def test_what_still_fires_at_the_end_is_sent_then(
    engine: Engine, clock: ManualClock, pager: Receiver, dispatcher: Dispatcher, target: str
) -> None:
    """With what it says by then; nothing of it waits meanwhile, so that no backlog is told of."""
    silence(engine, target)
    put(engine, notification())
    assert dispatcher.deliver_due() == []
    assert query_backlog(engine, clock.now_us()) == (set(), {})
    put(engine, notification(summary="lost: 30 of 1,000", is_news=False))
    clock.advance(3_600)
    dispatcher.deliver_due()
    assert [delivery.notification.summary for _, delivery in pager.heard] == ["lost: 30 of 1,000"]


def test_what_began_and_ended_within_is_not_sent(engine: Engine, clock: ManualClock, dispatcher: Dispatcher) -> None:
    """Neither its beginning nor its end, then and later; its fate says so."""
    silence(engine)
    put(engine, notification(), RESOLVED)
    dispatcher.deliver_due()
    clock.advance(7_200)
    assert dispatcher.deliver_due() == []
    assert states(engine) == {("pager", "silenced"): 2}


def test_what_was_sent_before_goes_on(
    engine: Engine, clock: ManualClock, pager: Receiver, dispatcher: Dispatcher
) -> None:
    """A standing alert is sent again, and its end is sent: an Alertmanager would close it, a pager would not."""
    pager.again_after_s = 60.0
    put(engine, notification())
    dispatcher.deliver_due()
    silence(engine)
    clock.advance(61)
    assert len(dispatcher.deliver_due()) == 1
    put(engine, RESOLVED)
    dispatcher.deliver_due()
    assert [delivery.notification.event for _, delivery in pager.heard] == [Event.FIRING, Event.FIRING, Event.RESOLVED]


def test_news_of_what_was_sent_before_is_held_and_its_end_is_sent(
    engine: Engine, pager: Receiver, dispatcher: Dispatcher
) -> None:
    """The channel knows of the incident: without the end it would stay open there."""
    put(engine, notification())
    dispatcher.deliver_due()
    silence(engine)
    put(engine, notification(summary="worse", at_us=at(6)))
    assert dispatcher.deliver_due() == []
    put(engine, replace(RESOLVED, at_us=at(7)))
    dispatcher.deliver_due()
    dispatcher.deliver_due()
    assert [delivery.notification.event for _, delivery in pager.heard] == [Event.FIRING, Event.RESOLVED]
    assert states(engine) == {("pager", "sent"): 2, ("pager", "silenced"): 1}


def test_a_heartbeat_is_never_silenced(engine: Engine, pager: Receiver, dispatcher: Dispatcher) -> None:
    """Its absence is its message, also where all is silenced."""
    silence(engine, EVERYTHING)
    put(engine, HEARTBEAT, notification())
    dispatcher.deliver_due()
    assert [delivery.notification.kind for _, delivery in pager.heard] == [AlertKind.HEARTBEAT]


def test_a_silence_is_of_its_target_alone(engine: Engine) -> None:
    """Letter for letter: names of streams differ by case, and hold what is a joker elsewhere."""
    put(engine, *(notification(stream=stream) for stream in (*STREAMS, "ordersXeu", "my.orders")))
    for target in ("orders", "orders_eu"):
        silence(engine, target)
    due = {one.notification.labels["stream"] for one in query_due(engine, NOW_US)}
    assert due == {"Orders", "ordersXeu", "my.orders"}


def test_a_maintenance_window_begins_when_it_is_to(engine: Engine, clock: ManualClock, dispatcher: Dispatcher) -> None:
    """Before it all is sent; one that is ended before it begins silences nothing."""
    number = silence(engine, from_us=NOW_US + HOUR_US)
    put(engine, notification())
    assert len(dispatcher.deliver_due()) == 1
    assert end_silence(engine, number, clock.now_us())
    clock.advance(3_601)
    put(engine, notification(stream="refunds"))
    assert len(dispatcher.deliver_due()) == 1
    assert not end_silence(engine, number, clock.now_us())
    assert not end_silence(engine, 99, clock.now_us())


def test_the_longest_silence_is_the_one_of_an_incident(engine: Engine) -> None:
    """One that has not begun, or is over, is none; all are listed until they are over."""
    spans = {0: ("orders", 0, 2), 1: (EVERYTHING, 0, 5), 2: (KEY, 1, 9), 3: ("refunds", 0, 7), 4: ("orders", -3, 1)}
    for target, begins, lasts in spans.values():
        silence(engine, target, NOW_US + begins * HOUR_US, lasts * HOUR_US)
    with schema.open_snapshot(engine) as connection:
        found = query_silences(connection, NOW_US)
    assert [one.number for one in found] == [1, 2, 3, 4]
    longest = find_silence(found, KEY, NOW_US)
    assert longest is not None
    assert longest.number == 2
    assert find_silence(found, KEY, NOW_US + 20 * HOUR_US) is None


def test_old_silences_are_pruned(engine: Engine, clock: ManualClock) -> None:
    """Those that are over; one that lasts stays."""
    silence(engine, from_us=NOW_US - 5 * HOUR_US)
    silence(engine)
    list(prune_alerts(engine, NOW_US, NOW_US, clock))
    with engine.begin() as connection:
        assert list(connection.execute(select(tables.alert_silences.c.number)).scalars()) == [2]


STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["fire", "end"]), st.sampled_from(STREAMS[:2])),
        st.tuples(st.just("silence"), st.sampled_from([*STREAMS[:2], EVERYTHING, KEY])),
        st.tuples(st.sampled_from(["unsilence", "deliver", "fail", "wait"]), st.just("")),
    ),
    max_size=30,
)


@given(STEPS)
def test_channels_know_the_truth_behind_silences(  # noqa: C901 - one a step
    steps: list[tuple[str, str]],
) -> None:
    """Nothing new is sent while silenced, whatever fires, ends and fails, and in the end all channels know all."""
    engine, clock = dialect.create_engine("sqlite://"), ManualClock(NOW_US)
    schema.prepare_store(engine)
    pager = Receiver(clock)
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    lasting: dict[str, int] = {}
    numbers: list[int] = []
    moment = 5
    for what, name in steps:
        moment += 1
        if what == "fire":
            lasting[name] = at(moment)
            put(engine, notification(stream=name, at_us=at(moment)))
        elif what == "end" and name in lasting:
            del lasting[name]
            put(engine, notification(Event.RESOLVED, stream=name, at_us=at(moment)))
        elif what == "silence":
            numbers.append(silence(engine, name, clock.now_us(), HOUR_US // 2))
        elif what == "unsilence" and numbers:
            end_silence(engine, numbers.pop(), clock.now_us())
        elif what == "wait":
            clock.advance(600)
        elif what in {"deliver", "fail"}:
            if what == "fail":
                pager.spells.append(Spell(clock.now_us(), clock.now_us() + 1, ERROR))
            with schema.open_snapshot(engine) as connection:
                silences = query_silences(connection, clock.now_us())
            known = set(pager.open)
            for result in dispatcher.deliver_due():
                said = result.delivery.notification
                is_news = said.event is Event.FIRING and said.key not in known
                assert not (is_news and find_silence(silences, said.key, clock.now_us())), said.key
    for number in numbers:
        end_silence(engine, number, clock.now_us())
    for _ in range(4):
        clock.advance(600)
        dispatcher.deliver_due()
    assert pager.open == {notification(stream=name).key for name in lasting}
    assert pager.ends_of_nothing == 0
    engine.dispose()
