"""Tests of the tap of a topic on a consumer that reaches no broker: what is committed, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.kafka import KafkaTap
from hopwatch.probes.taps.messages import MessageReader
from hopwatch.probes.taps.topic import SourceTopic
from hopwatch.testing import EPOCH_US
from tests.probes.integrations.clients import Letter
from tests.support.tap_bench import Place

END = KafkaError(KafkaError._PARTITION_EOF)
TRANSPORT = KafkaError(KafkaError._TRANSPORT)
GONE = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
Rebalanced = Callable[[Consumer, list[TopicPartition]], None]


class Record(Letter):
    """A message at its place in the topic."""

    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        """Take the place; its id is the offset."""
        super().__init__([("hopwatch-id", b"%d" % offset), ("hopwatch-time", b"%d" % EPOCH_US)], error)
        self._place = partition, offset

    def partition(self) -> int:
        """Return the partition."""
        return self._place[0]

    def offset(self) -> int:
        """Return the offset."""
        return self._place[1]


class Group(Consumer):
    """A consumer that brings what the test says, and notes what is committed."""

    def __init__(self, place: Place) -> None:
        """Start with nothing."""
        self.place = place
        self.rounds: list[list[Record] | Callable[[], list[Record]]] = []
        self.commits: list[dict[int, int]] = []
        self.error: KafkaError | None = None
        self.is_closed = False

    def subscribe(self, topics: list[str], *callbacks: Rebalanced) -> None:  # type: ignore[override]
        """Note who wants to hear of rebalances."""
        assert topics == ["orders"]
        self.on_assign, self.on_revoke, self.on_lost = callbacks

    def consume(self, num_messages: int | None = 1, timeout: float | None = -1) -> list[Any]:
        """Return the next round; the last one ends the tap."""
        assert num_messages
        self.place.clock.advance(timeout or 0)
        if not self.rounds:
            self.place.stop.set()
            return []
        found = self.rounds.pop(0)
        return [*(found() if callable(found) else found)]

    def commit(self, message: object = None, offsets: Any = (), *, asynchronous: bool = True) -> None:  # type: ignore[override]  # noqa: ANN401, ARG002
        """Note a commit, or refuse it."""
        assert not asynchronous
        if self.error is not None:
            raise KafkaException(self.error)
        self.commits.append({one.partition: one.offset for one in offsets})

    def close(self) -> None:
        """Revoke what is left."""
        self.is_closed = True
        self.revoke(0, 1)

    def assign_to_us(self, *partitions: int) -> list[Record]:
        """Let us have partitions."""
        self.on_assign(self, [TopicPartition("orders", number) for number in partitions])
        return []

    def revoke(self, *partitions: int) -> list[Record]:
        """Let others have partitions."""
        self.on_revoke(self, [TopicPartition("orders", number) for number in partitions])
        return []

    def lose(self, *partitions: int) -> list[Record]:
        """Let others have had partitions for a while."""
        self.on_lost(self, [TopicPartition("orders", number) for number in partitions])
        return []


@pytest.fixture
def place() -> Place:
    """Return a place to test in."""
    return Place()


@pytest.fixture
def group(place: Place) -> Group:
    """Return the consumer."""
    return Group(place)


def tap(group: Group, ends: dict[int, int] | None = None) -> KafkaTap:
    """Return a tap on the consumer; its partitions end where the test says."""

    def ask(partitions: list[int]) -> dict[int, Future[Any]]:
        answers: dict[int, Future[Any]] = {number: Future() for number in partitions}
        for number, answer in answers.items():
            answer.set_result(SimpleNamespace(offset=(ends or {}).get(number, 10**9)))
        return answers

    topic = object.__new__(SourceTopic)
    topic.place, topic.consumer, topic._context = KafkaPlace("broker:9092", "orders"), group, group.place.around
    topic._reported = OncePerCause()
    topic.request_end_offsets = ask  # type: ignore[method-assign]
    return KafkaTap(topic, MessageReader(), group.place.stamping, group.place.around)


def ours(group: Group, *partitions: int) -> Callable[[], list[Record]]:
    """Return a round in which we get partitions."""
    return lambda: group.assign_to_us(*partitions)


def completed_us(place: Place) -> int:
    """Return up to which moment the tap has caught up."""
    assert place.probe._sender is not None
    return place.probe._sender._find_complete_us()


def test_what_is_stamped_is_committed_once_a_second_and_at_the_end(place: Place, group: Group) -> None:
    """Behind the last message of each partition, and only what is new."""
    group.rounds = [ours(group, 0, 1), *([Record(0, at), Record(1, 50 + at)] for at in range(8))]
    tap(group).run()
    assert place.ids() == [id_bytes(str(at)) for pair in zip(range(8), range(50, 58), strict=True) for at in pair]
    assert group.commits == [{0: 4, 1: 54}, {0: 8, 1: 58}]
    assert place.sink.settled == [8, 16, 16, 16]
    assert group.is_closed


def test_nothing_is_committed_before_it_is_durable(place: Place, group: Group) -> None:
    """The tap reads no further until the sink has settled, and a restart begins behind the last commit."""
    place.sink.is_late = True
    place.stop.most_waits = 5
    group.rounds = [ours(group, 0), [Record(0, 1)], [], [], [], [], [Record(0, 2)]]
    tap(group).run()
    assert (group.commits, len(group.rounds)) == ([], 2)


def test_partitions_are_committed_before_they_go_to_another(place: Place, group: Group) -> None:
    """Messages in flight from revoked partitions are stamped by their new owner, not by this tap."""
    group.rounds = [
        ours(group, 0, 1), [Record(0, 1), Record(1, 1)], lambda: [*group.revoke(1), Record(0, 2), Record(1, 2)],
    ]  # fmt: skip
    tap(group).run()
    assert group.commits == [{0: 2, 1: 2}, {0: 3}]
    assert place.ids() == [id_bytes(text) for text in ("1", "1", "2")]


def test_partitions_that_were_lost_are_not_committed(group: Group) -> None:
    """Offsets of lost partitions are not committed, as another member's commits must not be set back."""
    group.rounds = [ours(group, 0, 1), [Record(0, 1), Record(1, 1)], lambda: group.lose(1)]
    tap(group).run()
    assert group.commits == [{0: 2}]


def test_an_end_without_messages_is_committed_too(group: Group) -> None:
    """So that a new group that reads from the end does not begin at a later end after a restart."""
    group.rounds = [ours(group, 0), [Record(0, 7, END)]]
    tap(group).run()
    assert group.commits == [{0: 7}]


def test_a_commit_that_is_refused_is_told_and_tried_again(place: Place, group: Group) -> None:
    """The messages may be stamped twice by whoever goes on; none is skipped."""
    group.error = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    group.rounds = [ours(group, 0), [Record(0, 1)], [], [], [], []]
    tap(group).run()
    assert group.commits == []
    assert set(place.heard) == {
        "the group of kafka://broker:9092/orders took no commit: Broker: Group rebalance in progress: trying on"
    }


def test_trouble_with_the_brokers_is_told_once(place: Place, group: Group) -> None:
    """The client mends it by itself."""
    group.rounds = [ours(group, 0), [Record(0, 1, TRANSPORT)], [Record(0, 1, TRANSPORT)], [Record(0, 1)]]
    tap(group).run()
    trouble = "none answers as a broker does, or lets us in (Local: Broker transport failure)"
    told = f"the topic kafka://broker:9092/orders has trouble: {trouble}: trying on"
    assert place.heard == [told]
    assert place.ids() == [id_bytes("1")]


def test_a_topic_that_is_gone_ends_the_tap(group: Group) -> None:
    """Nobody but a person can mend that; the group is left in order."""
    group.rounds = [ours(group, 0), [Record(0, 1, GONE)]]
    with pytest.raises(
        TapSourceError, match=r"the topic kafka://broker:9092/orders cannot be read any more: Broker: Unk"
    ):
        tap(group).run()
    assert group.is_closed


def test_a_consumer_that_was_replaced_ends_the_tap(group: Group) -> None:
    """The error comes once, as that of a message and not marked as fatal; no record ever comes after it."""
    group.rounds = [ours(group, 0), [Record(0, 1, KafkaError(KafkaError._FATAL))]]
    with pytest.raises(TapSourceError, match=r"cannot be read any more: Local: Fatal error: start again"):
        tap(group).run()
    assert group.is_closed


def test_what_was_not_stamped_is_not_committed(place: Place, group: Group) -> None:
    """Records that came with the error that ends the tap are not stamped and not committed."""
    group.rounds = [ours(group, 0), [Record(0, 0)], [Record(0, 1), Record(0, 2), Record(0, 3, GONE)]]
    with pytest.raises(TapSourceError, match="cannot be read any more"):
        tap(group).run()
    assert (place.ids(), group.commits) == ([id_bytes("0")], [{0: 1}])


def test_a_tap_that_cannot_stamp_commits_nothing(place: Place, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it has read all of a look, and its consumer commits when it is closed."""

    def fail(found: Iterable[object]) -> None:
        if count := len([*found]):
            raise OverflowError(f"{count} read")

    monkeypatch.setattr(place.stamping, "stamp_messages", fail)
    group.rounds = [ours(group, 0), [Record(0, 0), Record(0, 1)]]
    with pytest.raises(OverflowError, match="2 read"):
        tap(group).run()
    assert (group.commits, group.is_closed) == ([], True)


def test_a_consumer_that_gives_up_ends_the_tap(group: Group) -> None:
    """A restart makes another one."""

    def fail() -> list[Record]:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    group.rounds = [fail]
    with pytest.raises(TapSourceError, match=r"orders cannot be read any more: Local: Fatal error: start again"):
        tap(group).run()


def test_it_completes_what_it_has_read_to_the_end(place: Place, group: Group) -> None:
    """As it was when the brokers were asked, and nothing before it has joined the group."""
    group.rounds = [[], ours(group, 0), [Record(0, 1)], [Record(0, 2)], []]
    watched = tap(group, {0: 3})
    watched.run()
    # Asked in the second round, with the partition at hand; answered and read to the end in the fourth.
    assert completed_us(place) == EPOCH_US + 400_000


def test_a_tap_that_was_put_out_of_its_group_completes_nothing(place: Place, group: Group) -> None:
    """A tap that was put out of its group completes nothing before its next assignment."""
    group.rounds = [ours(group, 0), [Record(0, 1)], lambda: group.lose(0), *([[]] * 10)]
    tap(group).run()
    assert completed_us(place) == 0


def test_a_tap_that_had_to_give_all_away_completes_nothing_until_it_is_assigned_something(
    place: Place, group: Group
) -> None:
    """The same whether others take its partitions in order; an assignment of nothing is one."""
    watched = tap(group)
    group.rounds = [ours(group, 0), [Record(0, 1)], lambda: group.revoke(0), *([[]] * 10)]
    watched.run()
    assert completed_us(place) == 0
    place.stop.clear()
    group.rounds = [ours(group), []]
    watched.run()
    assert completed_us(place) > EPOCH_US


def test_a_tap_that_gives_one_of_its_partitions_away_goes_on_to_complete(place: Place, group: Group) -> None:
    """Its others are still its own."""
    group.rounds = [ours(group, 0, 1), [Record(0, 1), Record(1, 1)], lambda: group.revoke(1), [Record(0, 2)], [], []]
    tap(group, {0: 3}).run()
    assert completed_us(place) > EPOCH_US
