"""Laws of delivery: whatever receivers do, all is delivered in order once they recover; waits keep their bounds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery import retry_policy
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.events import AlertKind, Event
from hopwatch.alerts.storage import alert_state
from hopwatch.alerts.storage.outbox import Delivery
from tests.alerts.conftest import prepared
from tests.support.channel import Receiver
from tests.support.clock import ManualClock
from tests.support.examples import examples
from tests.support.notifications import notification
from tests.support.outbox import put, states
from tests.support.windows import at

DAY_S = 86_400

failures = st.builds(
    Failure,
    st.sampled_from(["500", "timeout", "429"]),
    is_for_good=st.booleans(),
    wait_s=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
deliveries = st.builds(
    Delivery,
    number=st.integers(1, 10_000),
    channel=st.sampled_from(["pager", "chat"]),
    notification=st.builds(
        notification, st.sampled_from(Event), kind=st.sampled_from([AlertKind.LOSS, AlertKind.HEARTBEAT])
    ),
    created_us=st.just(at(0)),
    tries=st.integers(0, 1_000),
    is_again=st.booleans(),
    is_acknowledged=st.booleans(),
)


@given(st.integers(1, 10_000), st.sampled_from(["pager", "chat"]))
def test_waits_grow_within_their_bounds(number: int, channel: str) -> None:
    """From the floor to the ceiling, never shorter than the one before; up to 18 tries in the first hour, 14 in others.

    All of them together are a day at least, and a day and a half at most.
    """
    delivery = Delivery(number, channel, notification(), 0, tries=0, is_again=False, is_acknowledged=False)
    spans = [retry_policy.backoff_s(delivery, tries) for tries in range(1, retry_policy.MAX_TRIES + 1)]
    assert spans == sorted(spans)
    assert retry_policy.MIN_WAIT_S <= spans[0] <= spans[-1] <= retry_policy.MAX_WAIT_S
    assert spans == [retry_policy.backoff_s(delivery, tries) for tries in range(1, retry_policy.MAX_TRIES + 1)]
    moments = [sum(spans[:tries]) for tries in range(retry_policy.MAX_TRIES)]
    assert DAY_S <= moments[-1] <= 1.5 * DAY_S
    assert 75 <= moments[retry_policy.FALLBACK_TRIES - 1] <= 90
    assert max(sum(start <= moment < start + 3_600 for moment in moments) for start in moments[10:-20]) <= 15
    assert sum(moment < 3_600 for moment in moments) <= 20


@given(deliveries, failures)
def test_nothing_is_given_up_but_what_is_refused_or_a_day_old(delivery: Delivery, failure: Failure) -> None:
    """And never a heartbeat; a wait is within bounds, whatever is asked for."""
    resort = retry_policy.decide_retry(delivery, failure)
    is_heartbeat = delivery.notification.kind is AlertKind.HEARTBEAT
    is_old = delivery.tries + 1 >= retry_policy.MAX_TRIES and not delivery.is_again
    assert (resort.wait_s is None) == (not is_heartbeat and (failure.is_for_good or is_old))
    assert resort.wait_s is None or retry_policy.MIN_WAIT_S <= resort.wait_s <= retry_policy.MAX_RETRY_AFTER_S
    if resort.is_handed_over:
        assert delivery.notification.event is Event.FIRING
        assert not is_heartbeat
        assert not delivery.is_acknowledged


@given(deliveries, failures)
def test_what_is_not_taken_is_handed_over_in_time(delivery: Delivery, failure: Failure) -> None:
    """A beginning that nobody has taken on: after five tries, or at once if it would take too long."""
    resort = retry_policy.decide_retry(delivery, failure)
    is_page = delivery.notification.event is Event.FIRING and delivery.notification.kind is not AlertKind.HEARTBEAT
    if is_page and not delivery.is_acknowledged and not delivery.is_again:
        late = (
            delivery.tries + 1 >= retry_policy.FALLBACK_TRIES
            or retry_policy.requested_wait_s(failure) > retry_policy.PATIENCE_S
        )
        assert resort.is_handed_over == (late or failure.is_for_good)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_what_stands_is_sent_again_within_bounds(asked_s: float) -> None:
    """The interval between resends is bounded, whatever a channel asks for."""
    assert retry_policy.MIN_RESEND_S <= retry_policy.resend_interval_s(asked_s) <= retry_policy.MAX_RESEND_S


steps = st.lists(
    st.tuples(
        st.sampled_from(["begin", "end", "wait", "wait", "long wait", "restart"]),
        st.sampled_from(["orders", "refunds"]),
    ),
    max_size=25,
)
answers = st.lists(
    st.sampled_from(["taken", "taken", "lost answer", "500", "429", "killed", "killed before"]), max_size=40
)


class Killed(BaseException):
    """The process dies: nothing that would be done afterwards is."""


class Moody(Receiver):
    """A receiver that does what a script says, and then well."""

    script: list[str]

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Hear, answer, both, or neither."""
        self.asked.append((now_us, delivery))
        what = self.script.pop(0) if self.script else "taken"
        if what in {"taken", "lost answer", "killed"}:
            self.hear(delivery, now_us)
        if what.startswith("killed"):
            raise Killed
        return (
            Accepted(self.again_after_s) if what == "taken" else Failure(what, wait_s=90.0 if what == "429" else None)
        )


@settings(max_examples=examples(60))
@given(steps, answers, answers)
def test_whatever_receivers_do_all_is_delivered_once_they_recover(
    found: list[tuple[str, str]], of_pager: list[str], of_chat: list[str]
) -> None:
    """In order for each key and channel; and what is open at the receivers is what is open in the store.

    Whether they want what stands again, as the pager does, or not, as the chat.
    """
    with tempfile.TemporaryDirectory() as folder, prepared(f"sqlite:///{Path(folder)}/store.db") as engine:
        clock = ManualClock(at(100))
        receivers = {"pager": Moody(clock, again_after_s=60), "chat": Moody(clock)}
        receivers["pager"].script, receivers["chat"].script = list(of_pager), list(of_chat)
        dispatcher = Dispatcher(engine, Routing(receivers), clock)
        opened: set[str] = set()
        for what, stream in found:
            dispatcher = played(engine, dispatcher, clock, receivers, opened, what, stream)
        # More than the longest wait, so often that the last script is over.
        for _ in range(60):
            clock.advance(601)
            dispatcher = stepped(engine, dispatcher, clock, receivers)
        with engine.begin() as connection:
            standing = set(alert_state.read_snapshot(connection).incidents)
        last = {("pager", "standing"), ("pager", "sent"), ("chat", "sent")}
        assert {state for state in states(engine) if state[1] != "superseded"} <= last
        for receiver in receivers.values():
            assert receiver.open == standing
            in_order(receiver.heard)


def played(
    engine: Engine,
    dispatcher: Dispatcher,
    clock: ManualClock,
    receivers: dict[str, Moody],
    opened: set[str],
    what: str,
    stream: str,
) -> Dispatcher:
    """Do one thing, and let the dispatcher carry what is due."""
    if what == "begin":
        opened.add(stream)
        put(engine, notification(stream=stream), channels=("pager", "chat"))
    elif what == "end" and stream in opened:
        opened.discard(stream)
        put(engine, notification(Event.RESOLVED, stream), channels=("pager", "chat"))
    elif what == "restart":
        dispatcher = Dispatcher(engine, Routing(receivers), clock)
    clock.advance({"wait": 7, "long wait": 400}.get(what, 0))
    return stepped(engine, dispatcher, clock, receivers)


def stepped(engine: Engine, dispatcher: Dispatcher, clock: ManualClock, receivers: dict[str, Moody]) -> Dispatcher:
    """Let the dispatcher carry what is due; another one begins where it is killed."""
    try:
        dispatcher.deliver_due()
    except Killed:
        return Dispatcher(engine, Routing(receivers), clock)
    return dispatcher


def in_order(heard: Iterable[tuple[int, Delivery]]) -> None:
    """Check that what was heard of a key never goes back."""
    last: dict[str, int] = {}
    for _, delivery in heard:
        key = delivery.notification.key
        assert last.get(key, 0) <= delivery.number
        last[key] = delivery.number
