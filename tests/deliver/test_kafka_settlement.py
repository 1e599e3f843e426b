"""Tests of settlements whose transactions fail; real brokers are in tests/real."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition

from hopwatch.deliver import kafka_settlement as room
from hopwatch.deliver.assignment import Assignment, SettledRecord
from hopwatch.deliver.kafka_records import CUT_BYTES, HeldRecord
from hopwatch.deliver.kafka_settlement import KafkaSettlementSink
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.offset_metadata import encode_settled
from hopwatch.deliver.replay import find_refusal
from hopwatch.deliver.retry_topics import build_topics
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.gate.retry import KafkaRetry, StoppedError
from hopwatch.gate.start_offsets import StartOffset
from hopwatch.gate.transactions import OutputRecord, RecordTooLargeError
from hopwatch.probes.metrics.account import DELIVERY_OUTCOMES, Account, EventOutcome
from hopwatch.probes.taps.context import RunContext

KEY = ("t", 0)
BEGINNING = StartOffset(0)
Outcome = Callable[[Sequence[TopicPartition]], bool]


class Cluster:
    """Source, consumer, writer and stamper in one, whose transactions end as a test says."""

    def __init__(self, *outcomes: Outcome) -> None:
        """Take what each transaction does; it returns whether it is known to be committed."""
        self._outcomes = list(outcomes)
        self.write_lock = threading.Lock()
        self.consumer = self
        self.offsets: dict[int, TopicPartition] = {}
        self.written: list[list[OutputRecord]] = []
        self.stamped: list[Ending] = []

    def write(self, outs: Sequence[OutputRecord], read: Sequence[TopicPartition], _: object) -> bool:
        """Do what the next outcome says."""
        self.written.append(list(outs))
        return self._outcomes.pop(0)(read)

    def commit(self, read: Sequence[TopicPartition]) -> bool:
        """Commit, and say so."""
        self.offsets |= {one.partition: one for one in read}
        return True

    def commit_unheard(self, read: Sequence[TopicPartition]) -> bool:
        """Commit, but the answer is lost."""
        return not self.commit(read)

    def committed(self, asked: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        """Return what is committed."""
        return [self.offsets.get(one.partition, one) for one in asked]

    def get_group_metadata(self) -> object:
        """Return something."""
        return self

    def stamp_delivered(self, delivered: Sequence[SettledRecord]) -> None:
        """Note them."""
        self.stamped += [one.settlement.ending for one in delivered]

    def stamp_kept(self, settled: SettledRecord) -> None:
        """Note it."""
        self.stamped.append(settled.settlement.ending)


def fail(_: Sequence[TopicPartition]) -> bool:
    """Abort."""
    return False


class Place:
    """A sink with one partition, of which some records are in hand."""

    def __init__(
        self, cluster: Cluster, start: StartOffset = BEGINNING, count: int = 3, values: Sequence[bytes] = ()
    ) -> None:
        """Put the parts together."""
        self.cluster, self.assignment, self.account = cluster, Assignment(), Account(DELIVERY_OUTCOMES)
        self.around = RunContext(lambda _: None)
        self.assignment.add_partition(KEY, start)
        places = [SourcePosition("t", 0, at) for at in range(count)]
        values = values or [b"x"] * count
        held = [HeldRecord(DeliveryMessage(one, str(one.offset), 1, None, value), b"0" * 16, [])
                for one, value in zip(places, values, strict=True)]  # fmt: skip
        held = [one for one in held if self.assignment.take_record(one)]
        self.account.receive(len(held))
        self.messages = [one.message for one in held]
        part = cast("Any", cluster)
        self.sink = KafkaSettlementSink(
            "s", "billing", build_topics("t", "billing", (1_000_000,)), source=part, assignment=self.assignment,
            writer=part, stamper=part, account=self.account, retry=KafkaRetry(self.around), around=self.around,
        )  # fmt: skip

    def settle(self, *endings: Ending) -> None:
        """Settle the first messages, each by its ending."""
        settlements = [Settlement(one, end, 2, reason="x") for one, end in zip(self.messages, endings, strict=False)]
        asyncio.run(self.sink.settle(settlements))


def test_what_is_settled_is_written_and_stamped_once() -> None:
    """Records of what was rejected or deferred, and the offset behind what is settled without a gap."""
    cluster = Cluster()
    cluster._outcomes = [cluster.commit]
    place = Place(cluster)
    place.settle(Ending.DELIVERED, Ending.REJECTED)
    assert [one.topic for one in cluster.written[0]] == ["t.rejected"]
    assert cluster.offsets[0].offset == 2
    assert cluster.stamped == [Ending.DELIVERED, Ending.REJECTED]
    assert (place.account.snapshot().total(EventOutcome.EMITTED), place.account.snapshot().in_flight) == (2, 1)


def test_a_transaction_whose_answer_was_lost_is_not_written_again() -> None:
    """The committed offset says that it was committed all the same."""
    cluster = Cluster()
    cluster._outcomes = [cluster.commit_unheard]
    place = Place(cluster)
    place.settle(Ending.REJECTED)
    assert (len(cluster.written), cluster.stamped, place.sink.is_in_doubt) == (1, [Ending.REJECTED], False)


def test_a_transaction_that_failed_is_written_again() -> None:
    """Until it is committed; stamps come after it."""
    cluster = Cluster()
    cluster._outcomes = [fail, fail, cluster.commit]
    place = Place(cluster)
    place.settle(Ending.REJECTED)
    assert [len(records) for records in cluster.written] == [1, 1, 1]
    assert cluster.stamped == [Ending.REJECTED]


def test_a_transaction_that_would_change_no_offset_is_written_again() -> None:
    """The last owner's metadata has room for no more, and that it stands there says nothing about this transaction."""
    count, cluster = 40_000, Cluster()
    metadata = encode_settled(0, [range(at, at + 1) for at in range(1, count, 2)])
    cluster.offsets[0] = TopicPartition("t", 0, 0, metadata)
    place = Place(cluster, StartOffset(0, 0, metadata), count)
    cluster._outcomes = [fail, cluster.commit]
    place.messages = place.messages[-1:]
    place.settle(Ending.REJECTED)
    assert cluster.offsets[0].metadata == metadata
    assert [len(records) for records in cluster.written] == [1, 1]
    assert cluster.stamped == [Ending.REJECTED]


def refuse(cluster: Cluster, largest: int) -> Outcome:
    """Refuse all records, as the largest of them is too large, and the others are in a batch with it."""

    def outcome(_: Sequence[TopicPartition]) -> bool:
        assert len(cluster.written[-1][largest].value) == max(len(one.value) for one in cluster.written[-1])
        raise RecordTooLargeError("the topic t.billing.retry.1s cannot be written", cluster.written[-1])

    return outcome


def test_a_message_that_is_too_large_to_wait_is_rejected_and_cut_short() -> None:
    """The others are written as they are, and nothing is blocked behind it."""
    cluster = Cluster()
    cluster._outcomes = [refuse(cluster, 1), refuse(cluster, 1), cluster.commit]
    place = Place(cluster, values=[b"1", b"2" * 100_000, b"3"])
    place.settle(*[Ending.DEFERRED] * 3)
    assert [[one.topic for one in records] for records in cluster.written] == [
        ["t.billing.retry.1s"] * 3,
        *[["t.billing.retry.1s", "t.rejected", "t.billing.retry.1s"]] * 2,
    ]
    rejected = decode_rejected(cluster.written[-1][1].value)
    assert isinstance(rejected, RejectedRecord)
    assert [one.detail for one in rejected.reasons] == [
        "x: too large to wait in t.billing.retry.1s",
        "of 100,000 bytes the first 16,384 are kept",
    ]
    assert rejected.data == b"2" * CUT_BYTES
    assert cluster.stamped == [Ending.DEFERRED, Ending.REJECTED, Ending.DEFERRED]
    assert cluster.offsets[0].offset == 3
    assert "longer than the 16,384 bytes that are kept" in find_refusal(rejected)
    assert find_refusal(rejected, has_data=True) == ""


def test_a_topic_that_takes_no_record_at_all_ends_it() -> None:
    """With what the writer says of it."""
    cluster = Cluster()
    cluster._outcomes = [refuse(cluster, 0)] * 2
    with pytest.raises(RecordTooLargeError, match="cannot be written"):
        Place(cluster).settle(Ending.REJECTED)


def test_settlements_of_a_partition_that_went_are_not_written() -> None:
    """Its next owner reads the messages again; what the receiver has acknowledged is stamped all the same."""
    cluster = Cluster()
    place = Place(cluster)

    def lose(_: Sequence[TopicPartition]) -> bool:
        place.assignment.remove_partitions([KEY])
        return False

    cluster._outcomes = [lose]
    place.settle(Ending.DELIVERED, Ending.REJECTED)
    assert len(cluster.written) == 1
    assert cluster.stamped == [Ending.DELIVERED]
    counts = place.account.snapshot()
    assert (counts.total(EventOutcome.EMITTED), counts.total(EventOutcome.REFUSED)) == (0, 2)


def test_a_stop_is_heeded_while_the_group_finds_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time: the messages are left to the next process."""
    monkeypatch.setattr(room, "REBALANCE_S", 0.001)
    monkeypatch.setattr(room, "STOP_GRACE_S", 0.003)
    cluster = Cluster(*[fail] * 10)
    place = Place(cluster)
    place.around.stop.set()
    with pytest.raises(StoppedError):
        place.settle(Ending.REJECTED)
    assert (len(cluster.written), cluster.stamped) == (4, [])
