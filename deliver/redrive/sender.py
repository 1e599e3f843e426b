"""Sender of a redrive: each record once more, unchanged but for one header, at a steady rate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hopwatch.deliver.redrive.messages import RedriveKey, build_redriven_headers
from hopwatch.deliver.redrive.pace import Pace
from hopwatch.gate.retry import StoppedError
from hopwatch.probes.kafka.client import (
    Config,
    TopicError,
    build_producer_config,
    check_topic,
    describe_kafka_error,
)
from hopwatch.probes.kafka.consumer import read_headers
from hopwatch.probes.kafka.producer import ReplaceableProducer
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.taps.errors import TapSourceError

if TYPE_CHECKING:
    from hopwatch.deliver.redrive.state import RedriveState
    from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
    from hopwatch.probes.taps.context import RunContext

MAX_CHUNK: Final = 1_000
"""Messages that are noted and sent at once at most."""
MAX_MESSAGE_BYTES: Final = 1_000_000_000
"""Kafka clients' own bound: the topic decides what it takes."""
_ANSWER_S: Final = 10.0
_MAX_WAIT_S: Final = 0.05
_FLUSH_S: Final = 0.5
_STOP_S: Final = 5.0
_MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
_log = logging.getLogger("hopwatch.redrive")


class RedrivenRecord(NamedTuple):
    """Record to send again, and for which time."""

    key: RedriveKey
    redrives: int
    message: Message


class RedriveSender:
    """Sender to one topic; acknowledged by all in-sync replicas, each message noted before and after."""

    def __init__(
        self, target: KafkaPlace, access: KafkaAccess, state: RedriveState, around: RunContext, *, is_source: bool
    ) -> None:
        """Take the parts; nothing is connected yet. ``is_source``: a record goes to the partition that it is from."""
        self._target, self._access, self._state, self._context = target, access, state, around
        self._is_source = is_source
        self._client = ReplaceableProducer(self._build_config, _log, self._report_trouble)
        self._troubles = OncePerCause()
        self._acknowledged: list[RedriveKey] = []
        self.sent: list[RedriveKey] = []
        """Messages that the brokers have acknowledged."""
        self.failed: dict[RedriveKey, str] = {}
        """Messages that the topic did not take, and why."""
        self.is_stopped = False
        """Whether a stop ended it before all was acknowledged."""

    def check(self) -> None:
        """Check that the topic can be written.

        Raises:
            TapSourceError: it cannot.
        """
        try:
            check_topic(self._client.get(), self._target, _ANSWER_S)
        except OSError as error:
            advice = "create it, or name another one" if isinstance(error, TopicError) else "check address and access"
            raise TapSourceError(f"{error}: {advice}, then start again") from None

    def send_records(self, records: Iterable[RedrivenRecord], rate_per_s: float, advance: Callable[[int], Any]) -> None:
        """Send records at a rate, and wait for their acknowledgements; a stop ends it before the next one.

        Raises:
            TapSourceError: the topic cannot be written, or the state cannot.
        """
        try:
            self._send_at_pace(iter(records), Pace(rate_per_s, self._context.monotonic_s()), advance)
            self._flush()
        finally:
            self._client.discard()

    def _send_at_pace(self, waiting: Iterator[RedrivenRecord], pace: Pace, advance: Callable[[int], Any]) -> None:
        try:
            while not self._context.stop.is_set():
                now_s = self._context.monotonic_s()
                due = pace.take_due(now_s, MAX_CHUNK)
                if not due:
                    self._client.get().poll(min(_MAX_WAIT_S, pace.remaining_s(now_s)))
                elif not self._send_chunk(waiting, due, advance):
                    return
                self._note_acknowledged()
        except StoppedError:
            # It came while the next record was read: what is under way is waited for all the same.
            pass
        self.is_stopped = True

    def _send_chunk(self, waiting: Iterator[RedrivenRecord], due: int, advance: Callable[[int], Any]) -> bool:
        """Send the records that are due; return whether there were any."""
        chunk = list(islice(waiting, due))
        self._state.note_sending(one.key for one in chunk)
        for one in chunk:
            self._produce(self._client.get(), one)
        self._client.get().poll(0)
        advance(len(chunk))
        return bool(chunk)

    def _produce(self, producer: Producer, one: RedrivenRecord) -> None:
        kind, recorded_ms = one.message.timestamp()
        more: dict[str, Any] = {"timestamp": recorded_ms} if kind and recorded_ms > 0 else {}
        if self._is_source:
            more["partition"] = one.message.partition()
        headers = build_redriven_headers(read_headers(one.message), one.redrives)
        note = partial(self._note_answer, one.key)
        while True:
            try:
                producer.produce(
                    self._target.topic,
                    one.message.value(),
                    one.message.key(),
                    headers=headers,
                    on_delivery=note,
                    **more,
                )
            except BufferError:
                producer.poll(_MAX_WAIT_S)
                if self._context.stop.is_set():
                    return
                continue
            except KafkaException as error:
                self.failed[one.key] = describe_kafka_error(error)
            return

    def _note_answer(self, key: RedriveKey, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._acknowledged.append(key)
        else:
            self.failed[key] = describe_kafka_error(error)

    def _note_acknowledged(self) -> None:
        keys, self._acknowledged = self._acknowledged, []
        self._state.note_sent(keys)
        self.sent += keys
        if self._client.has_given_up:
            advice = "start again with the same --state"
            raise TapSourceError(f"the topic {self._target} cannot be written any more: {advice}")

    def _flush(self) -> None:
        """Wait for what is under way; a stop does not wait long for brokers that are down."""
        until_s = self._context.monotonic_s() + _STOP_S
        while left := self._client.get().flush(_FLUSH_S):
            self._note_acknowledged()
            if self._context.stop.is_set() and self._context.monotonic_s() >= until_s:
                break
        self._note_acknowledged()
        self.is_stopped = self.is_stopped or left > 0

    def _report_trouble(self, error: KafkaError) -> None:
        if self._troubles.is_new(str(error.code())):
            what = describe_kafka_error(error, self._target.brokers)
            self._context.report(f"the topic {self._target} has trouble: {what}: trying on")

    def _build_config(self) -> Config:
        return build_producer_config(self._target, self._access, _MAX_QUEUED_BYTES) | {
            "client.id": "hopwatch-redrive",
            "message.max.bytes": MAX_MESSAGE_BYTES,
            # As Java's clients do it, so that a key stays with its partition number where the counts are equal.
            "partitioner": "murmur2_random",
        }
