"""Tests of the engine on virtual time: each kind of answer, retries, the breaker, stops and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hopwatch.deliver.answers import AttemptResult
from hopwatch.deliver.circuit_breaker import BreakerState
from hopwatch.deliver.engine import BREAKER_REASON, DeliveryEngine
from hopwatch.deliver.interfaces import SettlementError
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.policy import BreakerPolicy, DeliveryPolicy, Order
from hopwatch.deliver.settlement import Ending, Settlement
from tests.support import simulated_delivery
from tests.support.simulated_delivery import (
    GOOD,
    BreakerWatch,
    Reaction,
    SimulatedReceiver,
    SimulatedSink,
    SimulatedSource,
    SimulatedTopics,
)
from tests.support.virtual_time import BEGINNING_US, VirtualClock, VirtualLoop, run_virtually

URL = "http://127.0.0.1:1/"


class Scene:
    """One engine in simulated surroundings."""

    def __init__(self, topics: SimulatedTopics, script: Sequence[Reaction] = (), **policy: Any) -> None:  # noqa: ANN401 - fields of a policy
        """Put the parts together."""
        self.loop = VirtualLoop()
        clock = VirtualClock(self.loop)
        self.topics, self.receiver, self.watch = topics, SimulatedReceiver(list(script)), BreakerWatch()
        self.source = SimulatedSource(topics, clock)
        self.sink = SimulatedSink(topics, self.source)
        self.policy = DeliveryPolicy(URL, **policy)
        self.engine = DeliveryEngine(
            self.policy,
            self.source,
            self.sink,
            self.receiver,
            observer=self.watch,
            clock=clock,
            chance=simulated_delivery.seeded(1),
        )

    def run(self, seconds: float = 1e5) -> SimulatedTopics:
        """Run until all is settled, or for so long; then stop."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._run(seconds))
        return self.topics

    async def _run(self, seconds: float) -> None:
        running = asyncio.create_task(self.engine.run())
        ends_s = self.loop.time() + seconds
        while not running.done() and not self.topics.is_done and self.loop.time() < ends_s:
            await asyncio.wait({running}, timeout=min(0.5, ends_s - self.loop.time()))
        self.engine.stop_polling()
        await running

    def endings(self) -> list[Ending]:
        """Return the endings of all messages, in the order of their ids."""
        return [self.only(f"m{number}").ending for number in range(len(self.topics.ended))]

    def only(self, message_id: str) -> Settlement:
        """Return the one ending of a message."""
        (settlement,) = self.topics.ended[message_id]
        return settlement


def one_message(script: Sequence[Reaction], **policy: Any) -> Scene:  # noqa: ANN401 - as above
    """Return a scene of one message."""
    return Scene(simulated_delivery.build_topics(1, 1), script, **policy)


def test_all_messages_are_delivered_in_batches() -> None:
    """Each message is acknowledged once, in batches of the size that is asked for."""
    scene = Scene(simulated_delivery.build_topics(1_000, 4), batch_max_events=100)
    scene.run()
    assert sorted(scene.receiver.accepted) == sorted(f"m{number}" for number in range(1_000))
    assert set(scene.endings()) == {Ending.DELIVERED}
    assert len(scene.receiver.requests) == 10
    assert scene.engine.in_hand_count == 0
    assert scene.watch.in_hand == 0


@pytest.mark.parametrize("kind", ["500", "503", "429", "timeout", "broken", "unreachable", "rubbish"])
def test_what_may_pass_is_tried_again(kind: str) -> None:
    """A message is delivered by its second request after any failure that may pass."""
    scene = one_message([Reaction(kind)])
    scene.run()
    settlement = scene.only("m0")
    assert (settlement.ending, settlement.message.tries) == (Ending.DELIVERED, 2)
    assert settlement.message.first_sent_us > 0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("400", "HTTP 400 Bad Request"),
        ("404", "HTTP 404 Not Found"),
        ("408", "HTTP 408 Request Timeout"),
        ("301", "HTTP 301 Moved Permanently: redirects are not followed"),
        ("413", "HTTP 413 "),
        ("499", "HTTP 499"),
    ],
)
def test_what_may_not_pass_is_rejected_at_once(kind: str, reason: str) -> None:
    """A message is sent once, and rejected with status, reason and body."""
    scene = one_message([Reaction(kind)])
    scene.run()
    settlement = scene.only("m0")
    assert settlement.ending is Ending.REJECTED
    assert (settlement.status, settlement.body, settlement.message.tries) == (int(kind), b"words", 1)
    assert settlement.reason.startswith(reason)
    assert scene.receiver.requests == [("m0",)]


def test_a_status_can_be_made_recoverable() -> None:
    """A 408 is tried again where the policy names it."""
    scene = one_message([Reaction("408")], recoverable_statuses=frozenset({408, 429}))
    scene.run()
    assert scene.only("m0").ending is Ending.DELIVERED


def test_a_batch_is_judged_by_the_status_of_each() -> None:
    """Of a 207 one message is delivered, one rejected, and one tried again, alone."""
    scene = Scene(simulated_delivery.build_topics(3, 1), [Reaction("207", statuses=(201, 422, 503))])
    scene.run()
    assert scene.endings() == [Ending.DELIVERED, Ending.REJECTED, Ending.DELIVERED]
    assert scene.only("m1").status == 422
    assert b'"status":422' in scene.only("m1").body
    assert scene.receiver.requests == [("m0", "m1", "m2"), ("m2",)]
    assert scene.watch.results == [AttemptResult.PARTIAL, AttemptResult.ACCEPTED]


def test_a_batch_that_is_too_large_is_split() -> None:
    """After a 413 halves are sent, until they are small enough; that is no try of a message."""
    scene = Scene(simulated_delivery.build_topics(8, 1))
    scene.receiver.max_events = 3
    scene.run()
    assert set(scene.endings()) == {Ending.DELIVERED}
    assert sorted(map(len, scene.receiver.requests)) == [2, 2, 2, 2, 4, 4, 8]
    assert {one.message.tries for ended in scene.topics.ended.values() for one in ended} == {1}


def test_a_failed_batch_is_tried_again_in_halves() -> None:
    """A message that fails its whole batch takes fewer and fewer others with it."""
    scene = Scene(simulated_delivery.build_topics(8, 1), [Reaction("500")] * 3, local_tries=9)
    scene.run()
    assert sorted(map(len, scene.receiver.requests[:3]), reverse=True) == [8, 4, 4]


def test_a_batch_waits_whole_for_a_receiver_that_has_no_time() -> None:
    """After 503 the same batch is sent, under the same id."""
    scene = Scene(simulated_delivery.build_topics(8, 1), [Reaction("503")])
    scene.run()
    assert scene.receiver.requests[0] == scene.receiver.requests[1]


def test_a_message_goes_through_the_tiers() -> None:
    """After three tries each it waits 30 s, 5 min and 1 h, and is then rejected as expired."""
    scene = one_message([Reaction("500")] * 10_000, max_age_s=8_000.0, breaker=BreakerPolicy(failures=10_000))
    scene.run()
    tiers = [(one.tier, (one.until_us - one.finished_us) // 1_000_000) for one in scene.topics.deferred]
    assert tiers == [(0, 30), (1, 300), (2, 3_600), (2, 3_600), (2, 3_600)]
    assert [one.message.tries for one in scene.topics.deferred] == [3, 6, 9, 12, 15]
    assert {one.reason for one in scene.topics.deferred} == {"HTTP 500 Internal Server Error"}
    settlement = scene.only("m0")
    assert settlement.ending is Ending.REJECTED
    assert settlement.reason == "expired: HTTP 500 Internal Server Error"
    assert settlement.finished_us - settlement.message.first_sent_us >= 8_000_000_000


def test_a_wait_that_is_asked_for_is_kept() -> None:
    """Retry-After of 7 s delays the second request, 10 min leads to a tier that waits as long as is allowed."""
    scene = one_message([Reaction("429", retry_after="7")])
    scene.run()
    settlement = scene.only("m0")
    assert settlement.finished_us - settlement.message.first_sent_us >= 7_000_000
    later = one_message([Reaction("503", retry_after="600")])
    later.run()
    assert [one.tier for one in later.topics.deferred] == [1]


def test_a_value_that_is_no_json_is_rejected_unsent() -> None:
    """A poison record ends as rejected, and blocks nothing."""
    topics = SimulatedTopics()
    for number, value in enumerate((b"{", b"1", b"\xff")):
        topics.append("orders", 0, simulated_delivery.build_message(number, value=value))
    scene = Scene(topics)
    scene.run()
    assert scene.endings() == [Ending.REJECTED, Ending.DELIVERED, Ending.REJECTED]
    assert scene.only("m0").reason.startswith("the value is no JSON, which a list of events needs: ")
    assert scene.receiver.requests == [("m1",)]


def test_an_open_breaker_sends_and_polls_nothing() -> None:
    """A receiver that is away gets a few probes; what was in hand is deferred, all else stays in its topic."""
    policy = BreakerPolicy(failures=5, open_s=1.0, max_open_s=60.0)
    scene = Scene(
        simulated_delivery.build_topics(5_000, 1),
        [Reaction("unreachable")] * 10_000,
        breaker=policy,
        batch_max_events=10,
        parallel=4,
        max_in_hand_events=1_000,
    )
    scene.run(seconds=600.0)
    assert scene.watch.opened > 5
    assert len(scene.receiver.requests) < 5 + 4 + 20
    assert scene.watch.most_in_hand <= 1_000
    polled = sum(one.topic == "orders" for one in scene.topics.settled)
    assert polled < 1_400
    assert BREAKER_REASON in {one.reason for one in scene.topics.deferred}
    assert {one.message.tries for one in scene.topics.deferred if one.reason == BREAKER_REASON} == {0}


def test_a_breaker_closes_when_the_receiver_is_back() -> None:
    """All is delivered after an outage."""
    scene = Scene(
        simulated_delivery.build_topics(500, 2),
        [Reaction("unreachable")] * 30,
        breaker=BreakerPolicy(failures=5),
        batch_max_events=10,
    )
    scene.run()
    assert set(scene.endings()) == {Ending.DELIVERED}
    assert scene.engine.breaker_state is BreakerState.CLOSED


def test_a_probe_that_lingers_is_waited_for_without_haste() -> None:
    """A message that is overdue while a probe may be sent is not deferred, and the loop does not spin until it is."""
    scene = Scene(
        simulated_delivery.build_topics(3, 1),
        [Reaction("503")],
        batch_max_events=2,
        local_tries=1,
        linger_s=60.0,
        breaker=BreakerPolicy(failures=1, open_s=1.0, max_open_s=1.0),
    )
    rounds: list[float] = []
    find_wait_s = scene.engine._find_wait_s

    def count(now_s: float) -> float | None:
        rounds.append(now_s)
        return find_wait_s(now_s)

    scene.engine._find_wait_s = count  # type: ignore[method-assign]
    scene.run()
    assert scene.topics.is_done
    assert len(rounds) < 100


def test_order_by_key_waits_in_hand() -> None:
    """A message that fails holds the later ones of its key, and those of other keys go on."""
    topics = SimulatedTopics()
    for number, key in enumerate((b"a", b"a", b"b", b"a", None)):
        topics.append("orders", 0, simulated_delivery.build_message(number, key))
    script = [Reaction("207", statuses=(503, 201, 201)), *[Reaction("503")] * 10]
    scene = Scene(topics, script, order=Order.KEY)
    scene.run()
    assert scene.receiver.requests[0] == ("m0", "m2", "m4")
    assert [one for one in scene.receiver.accepted if one in {"m0", "m1", "m3"}] == ["m0", "m1", "m3"]
    assert scene.topics.deferred == []
    assert scene.only("m0").message.tries == 12
    assert {one.message_id for messages, _ in scene.watch.waits for one in messages} == {"m0", "m1", "m3"}


def test_order_by_key_goes_on_behind_a_rejected_message() -> None:
    """A rejected message ends the wait of those behind it."""
    topics = SimulatedTopics()
    for number in range(3):
        topics.append("orders", 0, simulated_delivery.build_message(number, b"a"))
    scene = Scene(topics, [Reaction("404"), GOOD], order=Order.KEY)
    scene.run()
    assert scene.endings() == [Ending.REJECTED, Ending.DELIVERED, Ending.DELIVERED]
    assert scene.receiver.requests == [("m0",), ("m1",), ("m2",)]


def test_a_key_waits_until_a_rejection_is_durable() -> None:
    """Otherwise a restart could deliver the rejected message behind the next one of its key."""
    topics = SimulatedTopics()
    for number in range(2):
        topics.append("orders", 0, simulated_delivery.build_message(number, b"a"))
    scene = Scene(topics, [Reaction("404")], order=Order.KEY)
    scene.sink.duration_s = 5.0
    scene.receiver.on_request = lambda ids: sent.append((ids[0], len(topics.settled)))
    sent: list[tuple[str, int]] = []
    scene.run()
    assert sent == [("m0", 0), ("m1", 1)]


def test_a_receiver_that_hangs_stops_the_polling() -> None:
    """The messages in hand stay within their bounds, and no more requests are under way than are allowed."""
    scene = Scene(
        simulated_delivery.build_topics(20_000, 1),
        [Reaction("200", delay_s=1_000.0)] * 4,
        parallel=4,
        max_in_hand_events=2_000,
    )
    scene.run(seconds=590.0)
    assert scene.watch.most_in_hand == 2_000
    assert scene.receiver.most_under_way == 4
    assert len(scene.topics.settled) == 0


def test_an_open_breaker_tells_of_what_waits_in_order() -> None:
    """In order nothing is deferred: the observer hears which messages wait in hand for the breaker, and how long."""
    scene = Scene(
        simulated_delivery.build_topics(8, 1, keys=7),
        [Reaction("unreachable")],
        order=Order.KEY,
        batch_max_events=4,
        parallel=1,
        breaker=BreakerPolicy(failures=1, open_s=7.0),
    )
    scene.run()
    told = {(one.message_id, until_us - BEGINNING_US) for messages, until_us in scene.watch.waits for one in messages}
    waited = {message_id for message_id, until_us in told if until_us >= 7_000_000}
    assert waited >= {"m4", "m5", "m6", "m7"}
    assert set(scene.endings()) == {Ending.DELIVERED}


def test_bytes_in_hand_are_bounded() -> None:
    """Large messages are polled as far as their bytes may be in hand, and the last poll's."""
    topics = SimulatedTopics()
    for number in range(1_000):
        message = simulated_delivery.build_message(number, value=b'"%b"' % (b"x" * 5_000))
        topics.append("orders", 0, message._replace(headers=(("trace", b"x" * 5_000),)))
    scene = Scene(topics, [Reaction("200", delay_s=600.0)] * 99, max_in_hand_bytes=1_000_000)
    scene.run(seconds=100.0)
    assert 60 <= scene.watch.most_in_hand <= 100


def test_a_stop_lets_requests_end() -> None:
    """The request under way ends and is settled; what was not sent yet is given up without a settlement."""
    scene = Scene(
        simulated_delivery.build_topics(30, 1), [Reaction("200", delay_s=5.0)] * 9, batch_max_events=10, parallel=1
    )
    scene.run(seconds=1.0)
    assert len(scene.receiver.requests) == 1
    assert len(scene.topics.settled) == 10


def test_a_stop_gives_up_a_request_that_does_not_end() -> None:
    """A receiver that says nothing holds up the stop for its timeout and a little more, and no longer."""
    scene = one_message([Reaction("200", delay_s=1e6)])
    scene.run(seconds=1.0)
    assert scene.loop.time() < 1.0 + scene.policy.timeout_s + 6.0
    assert scene.topics.settled == set()


def test_settlements_are_handed_on_until_they_are_durable() -> None:
    """A sink that fails three times gets the same settlements again."""
    scene = Scene(simulated_delivery.build_topics(10, 1))
    scene.sink = SimulatedSink(scene.topics, scene.source, [True] * 3)
    scene.engine._settlements._sink = scene.sink
    scene.run()
    assert set(scene.endings()) == {Ending.DELIVERED}


def test_a_stop_says_that_settlements_are_not_durable() -> None:
    """A sink that never succeeds ends the engine with an error half a minute after the stop."""
    scene = Scene(simulated_delivery.build_topics(10, 1))
    scene.sink = SimulatedSink(scene.topics, scene.source, [True] * 1_000)
    scene.engine._settlements._sink = scene.sink
    with pytest.raises(SettlementError, match="not made durable within 30 s after the stop: their messages are sent"):
        scene.run(seconds=5.0)


class BrokenSource:
    """Source that fails."""

    async def poll(self, most: int) -> list[DeliveryMessage]:
        """Fail."""
        del most
        raise LookupError("the topic is gone")


class BrokenSink:
    """Sink that fails for good."""

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Fail."""
        raise LookupError(f"{len(settlements)} cannot be kept")


def test_an_error_of_the_source_ends_the_engine() -> None:
    """The engine raises the error of its source as it is."""
    scene = one_message([])
    scene.engine._source = BrokenSource()
    with pytest.raises(LookupError, match="the topic is gone"):
        scene.run()


def test_an_error_of_the_sink_ends_the_engine() -> None:
    """The engine raises the error of its sink as it is, and settles nothing."""
    scene = one_message([])
    scene.engine._settlements._sink = BrokenSink()
    with pytest.raises(LookupError, match="1 cannot be kept"):
        scene.run()
    assert scene.topics.settled == set()


def test_an_error_in_a_request_ends_the_engine() -> None:
    """A receiver that raises is a fault of the program, and is not hidden."""
    scene = one_message([Reaction("no status")])
    with pytest.raises(ValueError, match="no status"):
        scene.run()


@pytest.mark.parametrize("order", list(Order))
def test_dropped_partitions_are_forgotten(order: Order) -> None:
    """Messages of a partition that went away are not sent, and not settled; the others are."""
    scene = Scene(
        simulated_delivery.build_topics(40, 2, keys=2),
        [Reaction("503", delay_s=2.0), *[Reaction("200", delay_s=2.0)] * 99],
        batch_max_events=4,
        parallel=2,
        order=order,
    )

    async def drop() -> None:
        running = asyncio.create_task(scene.engine.run())
        await asyncio.sleep(1.0)
        scene.engine.drop_partitions({("orders", 0)})
        sent = len(scene.receiver.requests)
        await asyncio.sleep(100.0)
        later = {one for ids in scene.receiver.requests[sent:] for one in ids}
        mine = {one.message.message_id for one in scene.topics.records["orders", 1]}
        assert later <= mine
        assert mine == set(scene.topics.ended)
        assert scene.engine.in_hand_count == 0
        scene.engine.stop_polling()
        await running

    with asyncio.Runner(loop_factory=lambda: scene.loop) as runner:
        runner.run(drop())
    assert {one.partition for one in scene.topics.settled} == {1}


@pytest.mark.parametrize("dropped_s", [2.0, 2.5, 2.9])
def test_a_partition_may_come_back_before_its_settlements_are_durable(dropped_s: float) -> None:
    """A message that is read again before its settlement is durable is settled once, and blocks none of its key."""
    topics = SimulatedTopics()
    for number in range(2):
        topics.append("orders", 0, simulated_delivery.build_message(number, b"a"))
    scene = Scene(topics, [GOOD, Reaction("200", delay_s=3.0)], order=Order.KEY, linger_s=1.0)
    scene.sink.duration_s = 2.0

    async def drop() -> None:
        running = asyncio.create_task(scene.engine.run())
        await asyncio.sleep(dropped_s)
        assert scene.receiver.accepted == ["m0", "m1"]
        scene.engine.drop_partitions({("orders", 0)})
        scene.source.tracker.revoke_partition("orders", 0)
        await asyncio.sleep(20.0)
        scene.engine.stop_polling()
        await running

    with asyncio.Runner(loop_factory=lambda: scene.loop) as runner:
        runner.run(drop())
    assert scene.receiver.accepted[:2] == ["m0", "m1"]
    assert set(scene.endings()) == {Ending.DELIVERED}
    assert scene.engine.in_hand_count == 0


def test_a_partition_that_comes_back_does_not_wait_for_what_went() -> None:
    """A message that waited for its next try when its partition went holds nothing of its key when that is back."""
    topics = SimulatedTopics()
    topics.append("orders", 0, simulated_delivery.build_message(0, b"a"))
    scene = Scene(topics, [Reaction("503", retry_after="100")], order=Order.KEY)

    async def drop() -> None:
        running = asyncio.create_task(scene.engine.run())
        await asyncio.sleep(2.0)
        scene.engine.drop_partitions({("orders", 0)})
        scene.source.tracker.revoke_partition("orders", 0)
        await asyncio.sleep(2.0)
        scene.engine.stop_polling()
        await running

    with asyncio.Runner(loop_factory=lambda: scene.loop) as runner:
        runner.run(drop())
    assert scene.receiver.requests == [("m0",)] * 2
    assert scene.endings() == [Ending.DELIVERED]


class LeavingSink(SimulatedSink):
    """Sink of which the first call settles nothing, as the partition goes while it writes, and comes back at once."""

    engine: DeliveryEngine
    has_left = False

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Settle nothing, or all."""
        if self.has_left:
            return await super().settle(settlements)
        self.has_left = True
        self.engine.drop_partitions({("orders", 0)})
        self._source.tracker.revoke_partition("orders", 0)
        await asyncio.sleep(1.0)
        return []


@pytest.mark.parametrize("order", list(Order))
def test_a_settlement_that_was_not_durable_ends_no_message_that_was_read_again(order: Order) -> None:
    """A partition that comes back while the sink still writes for the time before: all of it is settled then."""
    scene = Scene(simulated_delivery.build_topics(10, 1, keys=2), order=order)
    sink = LeavingSink(scene.topics, scene.source)
    sink.engine = scene.engine
    scene.engine._settlements._sink = sink
    scene.run(seconds=50.0)
    assert scene.topics.is_done
    assert set(scene.endings()) == {Ending.DELIVERED}
    assert scene.engine.in_hand_count == 0


def test_nothing_to_wait_for_is_an_error_of_the_test() -> None:
    """The virtual loop says that a program waits for ever."""
    with pytest.raises(RuntimeError, match="waits for ever"):
        run_virtually(VirtualLoop(), asyncio.Event().wait())
