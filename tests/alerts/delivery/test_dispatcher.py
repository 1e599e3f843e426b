"""Tests of the dispatcher: what it sends, what it notes of it, and that nothing it meets holds a page up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Engine, delete
from structlog.testing import capture_logs

from hopwatch.alerts import cli_json
from hopwatch.alerts.channels.channel import Accepted, Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery import retry_policy
from hopwatch.alerts.delivery.dispatcher import ChannelFigures, Dispatcher
from hopwatch.alerts.events import AlertKind, Event, Notification
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.errors import StoreTakenError
from hopwatch.monitor.store import tables
from tests.support.channel import BUSY, ERROR, REFUSED, TIMEOUT, WRONG, Receiver, Spell
from tests.support.clock import ManualClock
from tests.support.notifications import notification
from tests.support.outbox import RESOLVED, put, states
from tests.support.windows import at

NOW_US = at(100)
FOR_EVER_US = at(10_000_000)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that stands at a moment after all that was put."""
    return ManualClock(NOW_US)


@pytest.fixture
def pager(clock: ManualClock) -> Receiver:
    """Return a receiver that takes all."""
    return Receiver(clock)


@pytest.fixture
def log() -> Iterator[list[dict[str, str]]]:
    """Yield what is logged."""
    with capture_logs() as entries:
        yield entries  # type: ignore[misc]  # what the library calls an EventDict


def fails(receiver: Receiver, outcome: Outcome, until_us: int = FOR_EVER_US, takes_s: float = 0.0) -> Receiver:
    """Let a receiver answer so until a moment."""
    receiver.spells.append(Spell(0, until_us, outcome, takes_s))
    return receiver


def many(number: int) -> list[Notification]:
    """Return the beginnings of so many incidents."""
    return [notification(stream=f"s{place:03}") for place in range(number)]


def test_what_is_due_is_sent_and_noted(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """Once, in order."""
    put(engine, notification(), RESOLVED)
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    assert [receipt.outcome for _ in range(3) for receipt in dispatcher.deliver_due()] == [Accepted(), Accepted()]
    assert [delivery.notification.event for _, delivery in pager.heard] == [Event.FIRING, Event.RESOLVED]
    assert states(engine) == {("pager", "sent"): 2}


def test_nothing_is_sent_within_a_transaction(engine: Engine, clock: ManualClock) -> None:
    """Other writers to the store do not wait while a channel sends."""

    class Busy(Receiver):
        def send(self, delivery: Delivery, now_us: int) -> Outcome:
            with engine.execution_options(writes=True).begin() as connection:
                connection.execute(delete(tables.alert_acknowledgements))
            return super().send(delivery, now_us)

    put(engine, notification())
    Dispatcher(engine, Routing({"pager": Busy(clock)}), clock).deliver_due()
    assert states(engine) == {("pager", "sent"): 1}


def test_what_was_sent_and_could_not_be_noted_is_noted_first(
    engine: Engine, clock: ManualClock, pager: Receiver
) -> None:
    """A notification that was sent but not noted is noted before anything else is sent, and not sent again."""
    hold = Losable()
    put(engine, *many(2))
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock, hold)
    dispatcher.find_due_channels()
    hold.lost_after = 1
    for _ in range(3):
        with pytest.raises(StoreTakenError):
            dispatcher.deliver_due()
    assert len(pager.heard) == 1
    hold.lost_after = None
    dispatcher.deliver_due()
    assert [delivery.number for _, delivery in pager.heard] == [1, 2]
    assert states(engine) == {("pager", "sent"): 2}


class Losable:
    """A hold that is lost after so many more looks at it."""

    lost_after: int | None = None

    def renew(self) -> None:
        """Say that it is lost, if it is."""
        if self.lost_after is not None:
            self.lost_after -= 1
            if self.lost_after < 0:
                raise StoreTakenError("here")

    def check_place(self) -> None:
        """Say nothing: there is no file."""


def test_nothing_is_sent_from_a_store_that_is_another_monitor_s(
    engine: Engine, clock: ManualClock, pager: Receiver
) -> None:
    """The monitor that holds the store delivers its outbox."""
    hold = Losable()
    put(engine, notification())
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock, hold)
    dispatcher.find_due_channels()
    hold.lost_after = 0
    with pytest.raises(StoreTakenError, match="another monitor writes to the store here"):
        dispatcher.deliver_due()
    assert pager.asked == []


def test_a_fault_of_a_channel_is_a_failure(engine: Engine, clock: ManualClock, log: list[dict[str, str]]) -> None:
    """Its words are not kept: they may hold a secret. Other channels have theirs."""

    class Broken(Receiver):
        def send(self, delivery: Delivery, now_us: int) -> Outcome:
            raise ValueError(f"https://hooks.example/s3cret {delivery.number} {now_us}")

    put(engine, notification(), channels=("broken", "pager"))
    dispatcher = Dispatcher(engine, Routing({"broken": Broken(clock), "pager": Receiver(clock)}), clock)
    dispatcher.deliver_due()
    ((_, told),) = [
        (one["channel"], one) for one in cli_json.query_history_json(engine, None, None, 9)[0]["channels"][:1]
    ]
    assert told["last_error"].startswith("a fault of Hopwatch's own: ValueError in send, line ")
    assert (told["state"], told["tries"]) == ("waiting", 1)
    assert states(engine)["pager", "sent"] == 1
    assert "s3cret" not in str(log) + str(told)


def test_a_channel_that_fails_is_told_once(
    engine: Engine, clock: ManualClock, pager: Receiver, log: list[dict[str, str]]
) -> None:
    """And once that it does not any more."""
    fails(pager, ERROR, at(103))
    put(engine, notification())
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    for _ in range(60):
        dispatcher.deliver_due()
        clock.advance(5)
    assert [(one["log_level"], one["event"]) for one in log] == [
        ("warning", "a channel has not taken a notification"),
        ("info", "a channel takes notifications again"),
    ]
    assert log[0]["why"] == "HTTP 500"


def test_a_channel_that_is_down_is_asked_three_times_a_round(
    engine: Engine, clock: ManualClock, pager: Receiver
) -> None:
    """So a hundred that wait cost half a minute of a receiver that hangs, not a quarter of an hour."""
    fails(pager, TIMEOUT, takes_s=10)
    put(engine, *many(100))
    receipts = Dispatcher(engine, Routing({"pager": pager}), clock).deliver_due()
    assert len(pager.asked) == 3
    assert [receipt.is_sent for receipt in receipts].count(False) == 97
    assert {(receipt.delivery.tries, receipt.delivery.number > 3) for receipt in receipts[3:]} == {(0, True)}
    assert {one["channels"][0]["tries"] for one in cli_json.query_history_json(engine, None, None, 100)} == {1}
    errors = {one["channels"][0]["last_error"] for one in cli_json.query_history_json(engine, None, None, 100)}
    assert errors == {"no answer within 10 s", "not tried, as the channel fails: no answer within 10 s"}


def test_a_few_that_always_fail_stand_in_nobody_s_way(engine: Engine, clock: ManualClock) -> None:
    """New deliveries go first, and the order of the others changes with every try."""

    class Picky(Receiver):
        def send(self, delivery: Delivery, now_us: int) -> Outcome:
            self.asked.append((now_us, delivery))
            if delivery.number <= 5:
                return ERROR
            self.hear(delivery, now_us)
            return Accepted()

    pager = Picky(clock)
    put(engine, *many(40))
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    for _ in range(30):
        dispatcher.deliver_due()
        clock.advance(5)
    assert len(pager.heard) == 35


def test_a_channel_that_asks_to_be_left_alone_is(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """A channel that asks for a pause gets it; later notifications wait, and go to the second channel if it is long."""
    mail = Receiver(clock)
    fails(pager, replace(BUSY, wait_s=300.0), at(100.5))
    put(engine, *many(5))
    dispatcher = Dispatcher(engine, Routing({"pager": pager, "mail": mail}, fallbacks={"pager": "mail"}), clock)
    while dispatcher.deliver_due():
        clock.advance(10)
        put(engine, notification(stream="late")) if clock.now_us() < at(100.3) else None
    assert len(pager.asked) == 1
    assert len(mail.heard) == 6
    clock.advance(320)
    dispatcher.deliver_due()
    assert len(pager.heard) == 6


def test_what_is_refused_for_good_is_told_as_an_error(
    engine: Engine, clock: ManualClock, pager: Receiver, log: list[dict[str, str]]
) -> None:
    """A person has to look, if there is no second channel."""
    fails(pager, WRONG)
    put(engine, notification())
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    dispatcher.deliver_due()
    assert states(engine) == {("pager", "dead"): 1}
    assert (log[-1]["log_level"], log[-1]["event"], log[-1]["why"]) == (
        "error",
        "a notification is given up: look at the channel",
        "HTTP 400",
    )
    assert dispatcher.collect_figures() == {
        "pager": ChannelFigures(attempts=1, failed=1, given_up=1, waiting=1, oldest_waiting_us=at(5))
    }


def test_what_fails_for_a_day_is_given_up(store: Engine, clock: ManualClock, pager: Receiver) -> None:
    """Not before, and its end is tried as long again: it is never given up before its beginning."""
    fails(pager, REFUSED)
    put(store, notification(), RESOLVED)
    dispatcher = Dispatcher(store, Routing({"pager": pager}), clock)
    given_up: list[tuple[int, int]] = []
    for _ in range(1_100):
        dispatcher.deliver_due()
        if len(given_up) != dispatcher.collect_figures()["pager"].given_up:
            given_up.append((clock.now_us(), len(pager.asked)))
        clock.advance(290)
    assert [asked for _, asked in given_up] == [retry_policy.MAX_TRIES, 2 * retry_policy.MAX_TRIES]
    assert given_up[0][0] - NOW_US >= 86_400_000_000
    assert states(store) == {("pager", "dead"): 2}


def test_a_clock_that_is_put_forward_gives_nothing_up(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """Nor does one that is put back hold anything up."""
    fails(pager, ERROR, at(101))
    put(engine, notification())
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    dispatcher.deliver_due()
    clock.advance(10 * 365 * 86_400)
    pager.spells = [Spell(clock.now_us(), FOR_EVER_US, ERROR)]
    dispatcher.deliver_due()
    assert (len(pager.asked), states(engine)) == (2, {("pager", "waiting"): 1})
    clock.advance(-9 * 365 * 86_400)
    pager.spells.clear()
    dispatcher.deliver_due()
    assert states(engine) == {("pager", "sent"): 1}


def test_a_channel_that_is_not_configured_any_more_is_given_up(
    engine: Engine, clock: ManualClock, log: list[dict[str, str]]
) -> None:
    """Deliveries for a removed channel are given up and logged once; open incidents go through the others."""
    put(engine, *many(3), channels=("old",))
    pager = Receiver(clock)
    dispatcher = Dispatcher(engine, Routing({"pager": pager}, lambda _: ("pager",)), clock)
    for _ in range(3):
        dispatcher.deliver_due()
    assert states(engine) == {("old", "dead"): 3, ("pager", "sent"): 3}
    assert [(one["log_level"], one["event"], one["channel"], one["known"]) for one in log] == [
        ("error", "what waits for a channel is given up: no channel of this name is configured", "old", "pager")
    ]
    assert cli_json.query_history_json(engine, None, None, 1)[0]["channels"][0]["last_error"] == (
        "no channel of this name is configured"
    )


def test_a_new_channel_is_told_of_what_is_open(engine: Engine, clock: ManualClock) -> None:
    """A new channel gets every open incident once, also one whose history is pruned, and no ended one."""
    put(engine, notification(), notification(stream="refunds"), notification(stream="trades"))
    put(engine, notification(Event.RESOLVED, "refunds"))
    for number in (1, 2, 3, 4):
        with engine.execution_options(writes=True).begin() as connection:
            connection.execute(delete(tables.alert_outbox).where(tables.alert_outbox.c.number == number))
            if number != 3:
                connection.execute(delete(tables.alert_history).where(tables.alert_history.c.number == number))
    for expected in (["loss/page/orders", "loss/page/trades"], []):
        pager = Receiver(clock)
        dispatcher = Dispatcher(engine, Routing({"pager": pager}, lambda _: ("pager", "unknown")), clock)
        for _ in range(3):
            dispatcher.deliver_due()
        assert sorted(delivery.notification.key for _, delivery in pager.heard) == expected


def test_what_was_given_up_is_tried_anew_by_a_monitor_that_starts(
    engine: Engine, clock: ManualClock, pager: Receiver
) -> None:
    """As the channel's settings may be corrected meanwhile; not what is over."""
    fails(pager, WRONG)
    put(engine, notification(), notification(stream="refunds"), notification(Event.RESOLVED, "refunds"))
    Dispatcher(engine, Routing({"pager": pager}, lambda _: ("pager",)), clock).deliver_due()
    again = Receiver(clock)
    dispatcher = Dispatcher(engine, Routing({"pager": again}, lambda _: ("pager",)), clock)
    dispatcher.deliver_due()
    dispatcher.deliver_due()
    assert again.opened == {"loss/page/orders": 1}
    assert (states(engine)["pager", "sent"], len(again.asked)) == (2, 2)


def test_a_fallback_that_is_not_configured_is_none(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """No row is enqueued for a fallback that is not configured."""
    fails(pager, WRONG)
    put(engine, notification())
    Dispatcher(engine, Routing({"pager": pager}, fallbacks={"pager": "nobody"}), clock).deliver_due()
    assert states(engine) == {("pager", "dead"): 1}


def test_channels_that_stand_in_for_each_other_end(engine: Engine, clock: ManualClock) -> None:
    """A notification that was handed over is not handed back."""
    ways = {name: fails(Receiver(clock), WRONG) for name in ("pager", "mail")}
    put(engine, notification())
    dispatcher = Dispatcher(engine, Routing(ways, fallbacks={"pager": "mail", "mail": "pager"}), clock)
    while dispatcher.deliver_due():
        pass
    assert states(engine) == {("pager", "dead"): 1, ("mail", "dead"): 1}
    assert dispatcher.collect_figures()["mail"].handed_over == 0


def test_what_each_channel_did_is_counted(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """Plain numbers, as of the last look; a snapshot does not change."""
    fails(pager, REFUSED, at(100.5))
    put(engine, *many(2), channels=("pager", "chat"))
    dispatcher = Dispatcher(engine, Routing({"pager": pager, "chat": Receiver(clock)}), clock)
    dispatcher.deliver_due()
    dispatcher.find_due_channels()
    first = dispatcher.collect_figures()
    assert first == {
        "chat": ChannelFigures(attempts=2, taken=2),
        "pager": ChannelFigures(attempts=2, failed=2, waiting=2, oldest_waiting_us=at(5)),
    }
    clock.advance(60)
    dispatcher.deliver_due()
    dispatcher.find_due_channels()
    assert dispatcher.collect_figures()["pager"] == ChannelFigures(attempts=4, failed=2, taken=2)
    assert first["pager"].attempts == 2


def test_a_heartbeat_that_is_refused_goes_on(engine: Engine, clock: ManualClock, pager: Receiver) -> None:
    """A dead-man's switch that gave up would be dead itself."""
    fails(pager, WRONG, at(110))
    put(engine, notification(kind=AlertKind.HEARTBEAT))
    dispatcher = Dispatcher(engine, Routing({"pager": pager}), clock)
    for _ in range(200):
        dispatcher.deliver_due()
        clock.advance(5)
    assert (len(pager.heard), states(engine)) == (1, {("pager", "sent"): 1})
