"""Tests of the replay of rejected messages; that from a real topic is in tests/real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from confluent_kafka import Message

from hopwatch.deliver import replay
from hopwatch.deliver.replay import ReplayableRecord, replay_messages
from hopwatch.deliver.retry_topics import build_topics
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.transactions import OutputRecord

TOPICS = build_topics("orders", "billing", (1_000_000,))


class Writer:
    """Writer whose transactions fail from a number on."""

    def __init__(self, good: int) -> None:
        """Take how many succeed."""
        self.good = good
        self.written: list[list[OutputRecord]] = []

    def write(self, outs: Sequence[OutputRecord], read: Sequence[object], group: object) -> bool:
        """Write, without offsets."""
        assert (list(read), group) == ([], None)
        self.written.append(list(outs))
        return len(self.written) <= self.good


def build(number: int, size_bytes: int) -> ReplayableRecord:
    """Return a rejected message."""
    rejected = RejectedRecord("s", number.to_bytes(16), 1, 2, "orders/0/1", b"x" * size_bytes)
    return ReplayableRecord(rejected, cast("Any", Message)(topic="r", key=b"k", value=b"", headers=[]))


@pytest.mark.parametrize(
    ("sizes", "good", "counts", "is_done"),
    [
        ([1] * 7, 9, [3, 3, 1], True),
        ([1, 100, 1, 1], 9, [2, 2], True),
        ([1] * 7, 1, [3, 3], False),
        ([], 9, [], True),
    ],
)
def test_many_messages_are_replayed_some_at_a_time(
    sizes: list[int],
    good: int,
    counts: list[int],
    is_done: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each transaction has the messages and their markers; the first that fails is the last."""
    monkeypatch.setattr(replay, "MAX_MESSAGES", 3)
    monkeypatch.setattr(replay, "MAX_BYTES", 100)
    writer, wanted = Writer(good), [build(number, size) for number, size in enumerate(sizes)]
    assert replay_messages(wanted, "billing", TOPICS, cast("Any", writer), now_us=5) is is_done
    topics = ["orders.billing.retry.1s", "orders.rejected"]
    assert [[one.topic for one in outs] for outs in writer.written] == [topics * count for count in counts]
