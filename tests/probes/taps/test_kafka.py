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
from hopwatch.probes.taps.avro import SchemaWaitError
from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
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
        self.calls: list[tuple[str, int, int]] = []
        """Pauses, resumes and seeks, with partition and offset."""
        self.seek_error: KafkaError | None = None

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

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Note a pause."""
        self.calls += [("pause", one.partition, one.offset) for one in partitions]

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Note its end."""
        self.calls += [("resume", one.partition, one.offset) for one in partitions]

    def seek(self, partition: TopicPartition) -> None:
        """Note a seek, or refuse it."""
        if self.seek_error is not None:
            raise KafkaException(self.seek_error)
        self.calls.append(("seek", partition.partition, partition.offset))

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


class Waiting(MessageReader):
    """A reader to which the schemas of some messages are unknown, by partition and offset."""

    def __init__(self, *unknown: tuple[int, int]) -> None:
        """Take the places of these messages."""
        super().__init__()
        self.unknown = set(unknown)

    def read(self, message: Any) -> StampableMessage | SkippedMessage | None:  # noqa: ANN401 - of a class of its own
        """Read a message, or have it wait."""
        if (message.partition(), message.offset()) in self.unknown:
            raise SchemaWaitError("7")
        return super().read(message)


def tap(group: Group, ends: dict[int, int] | None = None, reader: MessageReader | None = None) -> KafkaTap:
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
    return KafkaTap(topic, reader or MessageReader(), group.place.stamping, group.place.around)


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
    expected = [id_bytes(str(at)) for pair in zip(range(8), range(50, 58), strict=True) for at in pair]
    assert sorted(place.ids()) == sorted(expected)
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


PAUSED, RESUMED = ("pause", 0, -1001), ("resume", 0, -1001)
WAITS = 5
"""Looks of 0.2 s for which a partition is held."""


def test_a_message_whose_schema_is_not_known_holds_its_partition(place: Place, group: Group) -> None:
    """The tap goes back to it and commits nothing of it; the other partition goes on, and it is behind meanwhile."""
    reader = Waiting((0, 2))

    def known() -> list[Record]:
        reader.unknown.clear()
        return [Record(0, 2), Record(0, 3)]

    others = [[Record(1, 10 + at)] for at in range(WAITS)]
    group.rounds = [
        ours(group, 0, 1), [Record(0, 1), Record(0, 2), Record(0, 3), Record(1, 1), Record(0, 4, END)], *others, known,
    ]  # fmt: skip
    watched = tap(group, {0: 4, 1: 2}, reader)
    watched.run()
    assert place.ids() == [id_bytes(text) for text in ("1", "1", "10", "11", "12", "13", "14", "2", "3")]
    assert group.calls == [PAUSED, ("seek", 0, 2), RESUMED]
    assert [commit.get(0) for commit in group.commits] == [2, 4]
    assert place.probe.dropped == 0


def test_a_tap_that_is_held_completes_nothing(place: Place, group: Group) -> None:
    """So that windows behind a message that waits are unknown, and not lossy; it is held as long as it takes."""
    group.rounds = [ours(group, 0), [Record(0, 1), Record(0, 2)], *([[]] * WAITS), [Record(0, 2)], *([[]] * 10)]
    tap(group, {0: 3}, Waiting((0, 2))).run()
    assert completed_us(place) == 0
    assert group.calls == [PAUSED, ("seek", 0, 2), RESUMED] * 2
    assert {commit[0] for commit in group.commits} == {2}


def test_what_comes_before_the_message_that_waited_is_gone_back_over(place: Place, group: Group) -> None:
    """Once: a message that is deleted meanwhile does not hold the tap for ever."""
    reader = Waiting((0, 2))

    def behind() -> list[Record]:
        reader.unknown.clear()
        return [Record(0, 3), Record(0, 4)]

    group.rounds = [ours(group, 0), [Record(0, 2)], *([[]] * WAITS), behind, [Record(0, 3)]]
    tap(group, reader=reader).run()
    assert group.calls == [PAUSED, ("seek", 0, 2), RESUMED, ("seek", 0, 2), RESUMED]
    assert place.ids() == [id_bytes("3")]


def test_a_partition_that_is_held_and_goes_is_not_paused_when_it_comes_back(group: Group) -> None:
    """The client keeps the pause of a partition otherwise; its next owner begins at the message that waits."""
    group.rounds = [ours(group, 0), [Record(0, 1), Record(0, 2)], lambda: group.revoke(0), ours(group, 0)]
    tap(group, reader=Waiting((0, 2))).run()
    assert group.calls == [PAUSED, ("seek", 0, 2), RESUMED]
    assert group.commits == [{0: 2}]


def test_a_tap_that_cannot_go_back_ends(group: Group) -> None:
    """For it would go on behind a message that it has not stamped."""
    group.seek_error = KafkaError(KafkaError._STATE)
    group.rounds = [ours(group, 0), [Record(0, 2)]]
    told = "the tap cannot go back in kafka://broker:9092/orders: Local: Erroneous state: start again, it begins at"
    with pytest.raises(TapSourceError, match=told):
        tap(group, reader=Waiting((0, 2))).run()
