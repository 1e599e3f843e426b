"""Kafka transactions: write output records and commit the offsets of their input atomically."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, Generic, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from hopwatch.gate.outlets import MAX_WAITING_BYTES
from hopwatch.gate.retry import ANSWER_TIMEOUT_S, KafkaRetry
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import (
    Config,
    ask_topic,
    build_client_config,
    build_producer_config,
    describe_kafka_error,
    get_kafka_error,
)
from hopwatch.probes.kafka.producer import ReplaceableProducer
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError

TRANSACTION_TIMEOUT_S: Final = 10.0
"""Timeout of a transaction, in s. After a kill, the open transaction blocks read_committed consumers and the group for
that time, and for up to 10 s more."""
_QUEUE_FULL_S: Final = 0.1
_POLL_S: Final = 1.0
_PERMANENT_ERRORS: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise its max.message.bytes",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create it",
    KafkaError.OFFSET_METADATA_TOO_LARGE: "raise the brokers' offset.metadata.max.bytes to 4096, which is its default",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "let this client write it",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "let this client use transactional ids that begin with its group",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "let this client read and commit as its group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "let this client write idempotently",
}
"""Errors that need an operator, with the remedy."""
_ANSWER_MARGIN_S: Final = 2.0
"""Extra wait for the client's answer after its own timeout, in s."""
_REBALANCE_ERRORS: Final = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
)
"""Errors after a rebalance of the group, which are not reported."""
_log = logging.getLogger("hopwatch.gate")

KafkaHeaders = list[tuple[str, str | bytes]]


class OutputRecord(NamedTuple):
    """Output record; ``recorded_ms`` is its timestamp, ms since 1970, 0 for none."""

    topic: str
    value: bytes
    key: bytes | None
    headers: KafkaHeaders
    recorded_ms: int = 0


class RecordTooLargeError(TapSourceError):
    """A topic does not take a record of this size; ``records`` are those that were refused with it, it among them."""

    def __init__(self, told: str, records: Sequence[OutputRecord]) -> None:
        """Take the message and the records."""
        super().__init__(told)
        self.records = tuple(records)


class RecordTimeError(Exception):
    """A topic does not take the time of a record, by its ``message.timestamp.after.max.ms`` or the one before."""


class OutputTopics(NamedTuple):
    """Output topics of a validator; without ``waiting`` no record waits."""

    validated: str
    rejected: str
    waiting: str = ""


Topics = TypeVar("Topics", bound=tuple[str, ...])
"""Output topics of a writer: a tuple of their names, such as :class:`OutputTopics`."""


class TransactionalWriter(Generic[Topics]):
    """Transactional producer; replaced when fenced."""

    def __init__(  # noqa: PLR0913 - what a client is made of
        self,
        brokers: str,
        outputs: Topics,
        access: KafkaAccess,
        *,
        group: str,
        patience: KafkaRetry,
        client_id: str = "hopwatch-validate",
    ) -> None:
        """Take the parts; nothing is connected yet."""
        self.outputs, self._client_id = outputs, client_id
        self._place = KafkaPlace(brokers, outputs[0])
        self._access, self._group, self._retry = access, group, patience
        self._client = ReplaceableProducer(self._build_config, _log)
        self._delivery_errors: list[tuple[KafkaError, OutputRecord]] = []

    def check(self, cluster: str) -> None:
        """Check that the output topics exist in the cluster of the source.

        Raises:
            TapSourceError: no broker answers, or a topic does not exist.
            TapUsageError: they are in another cluster.
        """
        asking = Producer(build_client_config(self._place.brokers, self._access))
        for topic in filter(None, self.outputs):
            where = f"the topic {topic} at {self._place.brokers}"
            try:
                found = ask_topic(asking, topic, ANSWER_TIMEOUT_S)
            except KafkaException as error:
                raise TapSourceError(
                    f"{where} cannot be reached: {describe_kafka_error(error)}: check address and access"
                ) from None
            if found.error is not None:
                what = describe_kafka_error(found.error)
                raise TapSourceError(f"{where} cannot be written: {what}: create it, then start again")
            if found.cluster_id != cluster:
                raise TapUsageError(f"{where} is in another cluster than --from: a transaction lies within one")

    def write(self, outs: Sequence[OutputRecord], read: Sequence[TopicPartition], group_metadata: object) -> bool:
        """Write records and the offsets read in one transaction, records alone without a group.

        Return False if it failed or its outcome is unknown.

        Raises:
            RecordTooLargeError: a topic does not take a record of this size.
            RecordTimeError: a topic does not take the time of a record.
            TapSourceError: only an operator can fix it.
            StoppedError: a stop was requested, and the brokers did not answer.
        """
        self._delivery_errors.clear()
        try:
            producer = self._get_producer()
            producer.begin_transaction()
            for out in outs:
                self._produce(producer, out)
            if group_metadata is not None:
                _send_offsets(producer, read, group_metadata)
            producer.commit_transaction(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            self._abort(get_kafka_error(error))
            return False
        self._retry.reset()
        return True

    def close(self) -> None:
        """Close the client."""
        self._discard_producer()

    def _get_producer(self) -> Producer:
        if self._client.current is not None:
            return self._client.current
        producer = self._client.get()
        producer.init_transactions(ANSWER_TIMEOUT_S)
        return producer

    def _build_config(self) -> Config:
        timeout_ms = int(TRANSACTION_TIMEOUT_S * 1_000)
        # A random id for each producer, so that none has to be configured; the group's generation fences an earlier
        # owner of a partition (KIP-447).
        return build_producer_config(self._place, self._access, MAX_WAITING_BYTES) | {
            "client.id": self._client_id,
            "transactional.id": f"{self._group}.hopwatch.{uuid.uuid4()}",
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "linger.ms": 5,
            "retry.backoff.ms": 20,
            "compression.type": "lz4",
            # As Java's clients do it, so that a key stays with its partition number where the counts are equal.
            "partitioner": "murmur2_random",
        }

    def _produce(self, producer: Producer, out: OutputRecord) -> None:
        while True:
            try:
                producer.produce(
                    out.topic,
                    out.value,
                    out.key,
                    on_delivery=partial(self._on_delivery, out),
                    timestamp=out.recorded_ms,
                    headers=out.headers,
                )
            except BufferError:
                producer.poll(_QUEUE_FULL_S)
            except KafkaException as error:
                self._delivery_errors.append((get_kafka_error(error), out))
                raise
            else:
                return

    def _on_delivery(self, out: OutputRecord, error: KafkaError | None, _: Message) -> None:
        """Collect a delivery error; the first one of a transaction has its cause, the later ones only its abort."""
        if error is not None:
            self._delivery_errors.append((error, out))

    def _abort(self, last: KafkaError) -> None:
        """Abort a failed transaction, so that none of its records become visible.

        No call is retried on the same client: one whose coordinator went away may never answer (measured with
        librdkafka 2.16.0). The client is discarded, and the brokers end its transaction at its timeout.

        Raises:
            RecordTooLargeError: a topic does not take a record of this size.
            RecordTimeError: a topic does not take the time of a record.
            TapSourceError: the next transaction would fail too.
            StoppedError: a stop was requested.
        """
        producer = self._client.current
        is_of_a_record = last.code() in _PERMANENT_ERRORS or last.code() == KafkaError.INVALID_TIMESTAMP
        if producer is not None and not self._delivery_errors and is_of_a_record:
            # The transaction may fail before the delivery callback of the record that caused it.
            producer.poll(_POLL_S)
        self._check_times(producer)
        firsts = [(error, f"the topic {out.topic}") for error, out in self._delivery_errors[:1]]
        for error, where in (*firsts, (last, f"the group {self._group}")):
            if (code := error.code()) in _PERMANENT_ERRORS:
                too_large = code == KafkaError.MSG_SIZE_TOO_LARGE
                if too_large and producer is not None:
                    # Whoever writes it shorter goes on: the group would be blocked until the timeout otherwise.
                    with suppress(KafkaException):
                        producer.abort_transaction(ANSWER_TIMEOUT_S)
                self._discard_producer()
                what = describe_kafka_error(KafkaError(code))
                told = f"{where} cannot be written: {what}: {_PERMANENT_ERRORS[code]}, then start again"
                if too_large:
                    raise RecordTooLargeError(told, [out for one, out in self._delivery_errors if one.code() == code])
                raise TapSourceError(told)
        try:
            if producer is None or last.retriable() or not last.txn_requires_abort():
                raise KafkaException(last)  # noqa: TRY301 - the same end
            producer.abort_transaction(ANSWER_TIMEOUT_S)
        except KafkaException:
            self._discard_producer()
        if last.code() not in _REBALANCE_ERRORS:
            self._retry.back_off(last)

    def _check_times(self, producer: Producer | None) -> None:
        """Check that the first error of the transaction is not about the time of a record; abort if it is.

        Raises:
            RecordTimeError: a topic does not take the time of a record.
        """
        is_of_a_time = any(error.code() == KafkaError.INVALID_TIMESTAMP for error, _ in self._delivery_errors[:1])
        if producer is None or not is_of_a_time or not any(out.recorded_ms for _, out in self._delivery_errors):
            return
        try:
            producer.abort_transaction(ANSWER_TIMEOUT_S)
        except KafkaException:
            self._discard_producer()
        topic = self._delivery_errors[0][1].topic
        raise RecordTimeError(f"the topic {topic} does not take the time of a record")

    def _discard_producer(self) -> None:
        with suppress(KafkaException):
            self._client.discard()


def _send_offsets(producer: Producer, read: Sequence[TopicPartition], group_metadata: object) -> None:
    """Add the offsets read to the transaction, with a timeout of our own beyond the client's.

    librdkafka may wait forever for a coordinator that is unavailable (its issue 5456, as of 2.16): then the waiting
    thread is left behind with its client, which is discarded.

    Raises:
        KafkaException: the client reports an error, or did not answer.
    """
    answers: SimpleQueue[KafkaException | None] = SimpleQueue()

    def send() -> None:
        try:
            producer.send_offsets_to_transaction(list(read), group_metadata, ANSWER_TIMEOUT_S)
        except KafkaException as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=send, name="hopwatch-offsets", daemon=True).start()
    try:
        error = answers.get(timeout=ANSWER_TIMEOUT_S + _ANSWER_MARGIN_S)
    except Empty:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the group's coordinator does not answer")) from None  # noqa: SLF001 - Kafka's name
    if error is not None:
        raise error
