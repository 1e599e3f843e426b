"""Tests of the search and the sender where brokers fail: what is told, and that nothing waits for ever."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from hopwatch.deliver.redrive.messages import RedriveKey
from hopwatch.deliver.redrive.run import RedriveOutcome, redrive_messages
from hopwatch.deliver.redrive.sender import RedriveSender
from hopwatch.deliver.redrive.state import RedriveState
from hopwatch.deliver.redrive.topic_search import SILENCE_S, TopicSearch
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.messages import MessageReader

PLACE = KafkaPlace("127.0.0.1:1", "orders")
KEY = RedriveKey(60_000_000, bytes(16))


class SilentConsumer:
    """Consumer of a partition with ten records, of which none ever comes; each look takes ten seconds."""

    def __init__(self, fault: KafkaError | None = None) -> None:
        """Set what the time index answers."""
        self.now_ns, self.is_closed, self._fault = 0, False, fault

    def offsets_for_times(self, asked: list[TopicPartition], _: float) -> list[TopicPartition]:
        """Return the beginning, or fail."""
        if self._fault is not None:
            raise KafkaException(self._fault)
        return [TopicPartition(one.topic, one.partition, 0) for one in asked]

    def get_watermark_offsets(self, *_: Any) -> tuple[int, int]:  # noqa: ANN401 - as the client has it
        """Return the ends."""
        return 0, 10

    def assign(self, parts: list[TopicPartition]) -> None:
        """Take partitions."""

    def consume(self, most: int, timeout_s: float) -> list[Any]:
        """Return nothing."""
        del most
        self.now_ns += 10_000_000_000 if timeout_s else 0
        return []

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


def build_search(consumer: SilentConsumer, around: RunContext) -> TopicSearch:
    """Return a search with this consumer."""
    topic: Any = SimpleNamespace(place=PLACE, open_reader=lambda: consumer, find_partitions=lambda _: [0])
    return TopicSearch(topic, MessageReader(), around, lambda _: None)


def build_context(consumer: SilentConsumer) -> RunContext:
    """Return a context whose clock goes with the consumer."""
    clock: Any = SimpleNamespace(monotonic_ns=lambda: consumer.now_ns, wall_ns=lambda: 0)
    return RunContext(lambda _: None, clock)


def test_a_silent_topic_is_not_waited_for_for_ever() -> None:
    """After half a minute without a record or an end the run ends, and the consumer is closed."""
    consumer = SilentConsumer()
    told = f"the topic {PLACE} cannot be read: nothing came for {SILENCE_S:g} s: look at the brokers, then start again"
    with pytest.raises(TapSourceError, match=told):
        redrive_messages(build_search(consumer, build_context(consumer)), [KEY], 0, None, RedriveOutcome())
    assert consumer.is_closed


def test_an_index_that_does_not_answer_is_told() -> None:
    """With the cause, and the consumer is closed."""
    consumer = SilentConsumer(KafkaError(KafkaError._TIMED_OUT))
    with pytest.raises(TapSourceError, match=f"the topic {PLACE} cannot be searched: .*[Tt]imed out"):
        redrive_messages(build_search(consumer, build_context(consumer)), [KEY], 0, None, RedriveOutcome())
    assert consumer.is_closed


def test_a_stop_ends_a_search() -> None:
    """Nothing is said of messages that were not looked for to the end."""
    consumer = SilentConsumer()
    around = build_context(consumer)
    around.stop.set()
    outcome = RedriveOutcome()
    redrive_messages(build_search(consumer, around), [KEY], 0, None, outcome)
    assert (outcome.is_stopped, outcome.not_found, outcome.aged_out) == (True, [], [])


def test_a_producer_that_has_failed_for_good_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same state goes on."""
    state = RedriveState(tmp_path / "state", {})
    sender = RedriveSender(PLACE, KafkaAccess(), state, RunContext(lambda _: None), is_source=True)
    monkeypatch.setattr(sender._client, "has_given_up", True)
    client = SimpleNamespace(poll=lambda _: 0, flush=lambda _: 0)
    monkeypatch.setattr(sender._client, "get", lambda: client)
    told = f"the topic {PLACE} cannot be written any more: start again with the same --state"
    with state.lock(), pytest.raises(TapSourceError, match=told):
        sender.send_records(iter(()), 1.0, lambda _: None)
