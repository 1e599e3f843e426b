"""Laws of the delivery engine, over any answers, kills, restarts and failing transactions, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.deliver.engine import DeliveryEngine
from hopwatch.deliver.policy import BreakerPolicy, DeliveryPolicy, Order
from hopwatch.deliver.retry_policy import EXPIRED
from hopwatch.deliver.settlement import Ending, Settlement
from tests.support import simulated_delivery
from tests.support.simulated_delivery import (
    BreakerWatch,
    Reaction,
    SimulatedReceiver,
    SimulatedSink,
    SimulatedSource,
    SimulatedTopics,
)
from tests.support.virtual_time import VirtualClock, VirtualLoop

MAX_RUN_S = 10_000.0
KINDS = (
    *("200", "204", "207", "rubbish", "301", "400", "404", "429", "500", "503"),
    *("timeout", "broken", "unreachable"),
)
reactions = st.builds(
    Reaction,
    kind=st.sampled_from(KINDS),
    delay_s=st.sampled_from((0.001, 0.05, 1.0, 9.0)),
    statuses=st.lists(st.sampled_from((200, 201, 202, 409, 422, 429, 503)), min_size=1, max_size=4).map(tuple),
    retry_after=st.sampled_from(("", "0", "3", "400", "soon")),
)
failing = st.sampled_from(("500", "503", "unreachable", "timeout")).map(Reaction)
scripts = st.lists(reactions, max_size=60) | st.lists(failing, max_size=300)


@dataclass(frozen=True)
class Case:
    """Case of a law."""

    policy: DeliveryPolicy
    topics: SimulatedTopics
    script: list[Reaction]
    kills_s: list[float]
    failures: list[bool]
    max_events: int
    seed: int


@st.composite
def cases(draw: st.DrawFn, order: Order = Order.NONE, max_kills: int = 4) -> Case:
    """Draw a case."""
    batch = draw(st.integers(1, 12))
    policy = DeliveryPolicy(
        "http://127.0.0.1:1/",
        batch_max_events=batch,
        linger_s=draw(st.sampled_from((0.0, 0.05))),
        parallel=draw(st.integers(1, 5)),
        order=order,
        local_tries=draw(st.integers(1, 3)),
        local_time_limit_s=draw(st.sampled_from((0.0, 2.0, 20.0))),
        tiers_s=draw(st.sampled_from(((3.0, 10.0, 30.0), (5.0,)))),
        max_age_s=draw(st.sampled_from((0.0, 20.0, 100.0))),
        retry_after_max_s=20.0,
        breaker=BreakerPolicy(draw(st.integers(1, 8)), 0.5, 8.0),
        max_in_hand_events=draw(st.integers(batch, 40)),
    )
    return Case(
        policy,
        simulated_delivery.build_topics(draw(st.integers(0, 60)), draw(st.integers(1, 3))),
        draw(scripts),
        draw(st.lists(st.floats(0.01, 1.0) | st.floats(1.0, 40.0), max_size=max_kills)),
        draw(st.lists(st.booleans(), max_size=6)),
        draw(st.sampled_from((1, 3, 1_000))),
        draw(st.integers(0, 1_000)),
    )


class World:
    """World of a case: its engines, one after the other, until all messages are settled."""

    def __init__(self, case: Case) -> None:
        """Take the case."""
        self.case, self.topics = case, case.topics
        self.receiver = SimulatedReceiver(list(case.script), case.max_events)
        self.receiver.on_request = self._check_request
        self.loop = VirtualLoop()
        self.sent_after_settled: list[str] = []
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        for life_s in (*self.case.kills_s, MAX_RUN_S):
            await self._live_once(life_s)
        assert self.topics.is_done, "not all messages are settled"

    async def _live_once(self, life_s: float) -> None:
        case, clock, watch = self.case, VirtualClock(self.loop), BreakerWatch()
        source = SimulatedSource(self.topics, clock)
        sink = SimulatedSink(self.topics, source, case.failures)
        chance = simulated_delivery.seeded(case.seed)
        engine = DeliveryEngine(case.policy, source, sink, self.receiver, observer=watch, clock=clock, chance=chance)
        self.receiver.under_way = 0
        running = asyncio.create_task(engine.run())
        ends_s = self.loop.time() + life_s
        while not running.done() and self.loop.time() < ends_s:
            await asyncio.wait({running}, timeout=min(1.0, max(ends_s - self.loop.time(), 0.001)))
            if self.topics.is_done and life_s == MAX_RUN_S:
                engine.stop_polling()
        killed = not running.done()
        running.cancel()
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert ended is None or (killed and isinstance(ended, asyncio.CancelledError)), ended
        assert watch.most_in_hand <= case.policy.max_in_hand_events
        assert self.receiver.most_under_way <= case.policy.parallel

    def _check_request(self, ids: Sequence[str]) -> None:
        assert 0 < len(ids) <= self.case.policy.batch_max_events
        assert len(set(ids)) == len(ids)
        self.sent_after_settled.extend(one for one in ids if one in self.topics.ended)

    def only(self, message_id: str) -> Settlement:
        """Return the one ending of a message."""
        (settlement,) = self.topics.ended[message_id]
        return settlement

    def ids(self) -> list[str]:
        """Return the ids of all messages."""
        records = [one for place, records in self.topics.records.items() if place[0] == "orders" for one in records]
        return [one.message.message_id for one in records]


def check_ends(world: World) -> None:
    """Check that each message ended once, and rightly."""
    accepted, policy = set(world.receiver.accepted), world.case.policy
    assert sorted(world.ids()) == sorted(world.topics.ended)
    for message_id in world.ids():
        ended = world.only(message_id)
        assert 1 <= ended.message.tries <= world.receiver.sent[message_id]
        if ended.ending is Ending.DELIVERED:
            assert message_id in accepted
        elif ended.reason.startswith(EXPIRED):
            assert ended.finished_us - ended.message.first_sent_us >= policy.max_age_s * 1e6
        else:
            assert ended.ending is Ending.REJECTED
            assert ended.status in world.receiver.refused[message_id]
    assert world.sent_after_settled == []


@given(cases())
@settings(deadline=None, max_examples=200)
def test_each_message_ends_delivered_or_rejected_once(case: Case) -> None:
    """Each message is delivered at least once or rejected once, whatever is answered and whenever the engine is killed.

    Nothing is settled twice or committed unsettled, the reasons are right, and what is settled is not sent again.
    """
    check_ends(World(case))


@given(cases(max_kills=0))
@settings(deadline=None, max_examples=200)
def test_tries_and_waits_are_within_bounds(case: Case) -> None:
    """Without kills a refused message is never sent again, and each deferral leads to the tier of its tries.

    The tries of a message are the requests that carried it, and it is deferred for as long as its tier waits.
    """
    world = World(case)
    check_ends(world)
    policy = case.policy
    for message_id in world.ids():
        ended = world.only(message_id)
        assert ended.message.tries == world.receiver.sent[message_id]
        assert len(world.receiver.refused[message_id]) == (
            ended.ending is Ending.REJECTED and not ended.reason.startswith(EXPIRED)
        )
    for deferred in world.topics.deferred:
        least = min(max(deferred.message.tries - 1, 0) // policy.local_tries, len(policy.tiers_s) - 1)
        assert least <= deferred.tier
        assert deferred.until_us - deferred.finished_us == round(policy.tiers_s[deferred.tier] * 1e6)
        if not any(one.retry_after for one in case.script):
            assert deferred.tier == least


@given(cases(order=Order.KEY))
@settings(deadline=None, max_examples=200)
def test_messages_of_a_key_are_sent_in_order(case: Case) -> None:
    """No message of a key is sent before all earlier ones of it were acknowledged or rejected, over kills too."""
    keys = {
        one.message.message_id: (one.message.key, place[1], one.message.position.offset)
        for place, records in case.topics.records.items()
        for one in records
        if one.message.key is not None
    }
    world = World(case)
    check_ends(world)
    assert world.topics.deferred == []
    first: dict[object, list[str]] = {}
    for ids in world.receiver.requests:
        found = [keys[one][0] for one in ids if one in keys]
        assert len(found) == len(set(found)), "two messages of a key in one request"
        for one in ids:
            if one in keys and one not in first.setdefault(keys[one][0], []):
                first[keys[one][0]].append(one)
    for sent in first.values():
        assert [keys[one][2] for one in sent] == sorted(keys[one][2] for one in sent)
