"""Tests of the source topic: each record is read once and in order, however often the client delivers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.topic_source import TopicSource
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import SourceTopic
from hopwatch.testing import EPOCH_US, ManualClock

PARTITIONS = range(2)
NOW_MS = EPOCH_US // 1_000
RECORD = cast("Any", Message)
"""Its stub knows of no arguments."""
Assigned = Callable[[Consumer, list[TopicPartition]], None]


class Client:
    """Fake Kafka consumer of a topic whose first offset is 0: returns the given records, poll after poll."""

    def __init__(self, looks: Iterator[list[Message]]) -> None:
        """Take what there is."""
        self.place, self.consumer, self._looks = KafkaPlace("127.0.0.1:1", "t"), self, looks

    def subscribe(self, _: list[str], assigned: Assigned, *__: object) -> None:
        """Deal out all partitions at once."""
        assigned(cast("Consumer", self), [TopicPartition("t", number) for number in PARTITIONS])

    def find_partitions(self, _: str) -> list[int]:
        """Know the partitions."""
        return list(PARTITIONS)

    def committed(self, asked: list[TopicPartition], _: float) -> list[TopicPartition]:
        """Know of no commit."""
        return asked

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        """Say that all is there."""
        return 0, 1_000

    def commit(self, **_: object) -> None:
        """Keep nothing."""

    def incremental_assign(self, _: list[TopicPartition]) -> None:
        """Read them."""

    def poll(self, *_: object) -> list[Message]:
        """Hand over the next."""
        return next(self._looks)


def source_over(looks: list[list[Message]]) -> TopicSource:
    """Return a source whose client hands over these, and that has all partitions."""
    around = RunContext(lambda _: None)
    source = TopicSource(cast("SourceTopic", Client(iter(looks))), KafkaRetry(around), around, from_start=True)
    source.open()
    return source


@given(st.data())
def test_a_record_that_is_handed_over_again_is_taken_once(data: st.DataObject) -> None:
    """Within one look and in later ones: as when a partition gets another leader while it is read."""
    counts = [data.draw(st.integers(0, 12), label=f"records of {number}") for number in PARTITIONS]
    handed: list[Message] = []
    for number, count in enumerate(counts):
        at = 0
        while at < count:
            handed.append(RECORD(topic="t", partition=number, offset=at))
            at = data.draw(st.integers(max(0, at - 3), at + 1), label="the next") if len(handed) < 100 else at + 1
    cuts = sorted(data.draw(st.lists(st.integers(0, len(handed)), max_size=5), label="looks"))
    looks = [handed[first:last] for first, last in zip([0, *cuts], [*cuts, len(handed)], strict=True)]
    source = source_over(looks)
    taken: list[tuple[Any, Any]] = []
    for _ in looks:
        messages = source.poll(1_000)
        source.mark_done(source.find_next_offsets(messages))
        taken += [(one.partition(), one.offset()) for one in messages]
    assert taken == [(number, at) for number, count in enumerate(counts) for at in range(count)]


@pytest.mark.parametrize(
    ("times_ms", "since_ms"), [([-1, 7], 7), ([9, -(2**62), 8], 8), ([-5], NOW_MS), ([2**62], NOW_MS)]
)
def test_a_record_with_a_time_that_cannot_be_needs_no_history_of_its_own(times_ms: list[int], since_ms: int) -> None:
    """All records of the partition would be read again for it, before anything goes on."""
    source, asked = source_over([]), list[int]()
    source._context = RunContext(lambda _: None, ManualClock())

    def read_records(_: object, since_ms: int) -> tuple[()]:
        asked.append(since_ms)
        return ()

    source._replay = cast("Any", SimpleNamespace(read_records=read_records))
    messages = [RECORD(topic="t", partition=0, offset=at, timestamp=(1, ms)) for at, ms in enumerate(times_ms)]
    assert list(source.read_history(messages)) == []
    assert asked == [since_ms]
