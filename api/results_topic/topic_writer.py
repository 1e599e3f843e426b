"""Transactional producer of the topic of results.

Its transactional id is that of the store: whoever opens a producer ends that of any other monitor of the store, whose
records are refused from then on. What fails is given up with its client; the next one ends its transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hopwatch.api.results_topic.records import ResultRecord
from hopwatch.monitor import topics
from hopwatch.monitor.errors import TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import Config, build_producer_config, describe_kafka_error, get_kafka_error
from hopwatch.probes.kafka.producer import ReplaceableProducer
from hopwatch.probes.once_per_cause import OncePerCause

ID_PREFIX: Final = "hopwatch-results-"
"""What transactional ids begin with; the id of the store follows."""
ANSWER_TIMEOUT_S: Final = 10.0
TRANSACTION_TIMEOUT_S: Final = 10.0
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_POLL_S: Final = 0.1
_CLEANUP: Final = "cleanup.policy"
_ADVICE: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise its max.message.bytes",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "let this client describe and write it",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"let this client use transactional ids of {ID_PREFIX}*",
    KafkaError.UNKNOWN_TOPIC_OR_PART: f"make it with {_CLEANUP}=compact",
}
"""Errors that need an operator, with the remedy."""
_client_log = logging.getLogger("hopwatch")
_log = structlog.get_logger("hopwatch")


class ResultsTopicWriter:
    """Writes records in transactions: all of one, in order, or none."""

    def __init__(self, place: KafkaPlace, access: KafkaAccess, store_id: str) -> None:
        """Take the topic; nothing is connected yet."""
        self._place, self._access, self._store_id = place, access, store_id
        self._client = ReplaceableProducer(self._build_config, _client_log)
        self._errors: list[KafkaError] = []
        self._topic, self._told = "", OncePerCause()

    def open(self) -> str:
        """Connect unless that is done, and return the name of the topic, which no other one has.

        What is read of the store after this call is not older than what any producer before wrote.

        Raises:
            TransportError: no broker answers, or the topic is not there or may not be written.
        """
        if self._client.current is not None and not self._client.has_given_up:
            return self._topic
        self.close()
        found = topics.describe_topic(self._place, self._access)
        if found is None:
            what = f"the topic of results {self._place.topic} is not on {self._place.brokers}"
            raise TransportError(f"{what}: make it with {_CLEANUP}=compact, or correct [results] topic")
        self._check_cleanup(found.config.get(_CLEANUP, "delete"))
        try:
            self._client.get().init_transactions(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise self._give_up(error) from None
        # A topic that was deleted and made again has another id, and nothing of what was written.
        self._topic = f"{self._place.topic} {found.topic_id}"
        return self._topic

    def write(self, records: Iterable[ResultRecord]) -> None:
        """Write records in one transaction of the open producer.

        Raises:
            TransportError: they were not written, or nobody knows.
        """
        self._errors.clear()
        producer = self._client.get()
        try:
            producer.begin_transaction()
            for one in records:
                self._produce(producer, one)
            producer.commit_transaction(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise self._give_up(error) from None

    def close(self) -> None:
        """Release the client; its open transaction is ended by the brokers."""
        self._client.discard()

    def _produce(self, producer: Producer, one: ResultRecord) -> None:
        while True:
            try:
                producer.produce(self._place.topic, one.value, one.key, on_delivery=self._on_delivery)
            except BufferError:
                producer.poll(_POLL_S)
            else:
                return

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._errors.append(error)

    def _give_up(self, error: KafkaException) -> TransportError:
        """Release the client, and return the error with its cause: that of the first record, if one has failed."""
        self._client.discard()
        cause = self._errors[0] if self._errors else get_kafka_error(error)
        what = f"the topic of results {self._place.topic} was not written"
        advice = _ADVICE.get(cause.code(), "check the brokers, and what [transport.kafka] says of access")
        return TransportError(f"{what}: {describe_kafka_error(cause, self._place.brokers)}: {advice}")

    def _check_cleanup(self, policy: str) -> None:
        if "compact" not in policy and self._told.is_new(policy):
            what = f"the topic has {_CLEANUP}={policy}, and results that nothing changes age out: set it to compact"
            _log.warning(what, topic=self._place.topic)

    def _build_config(self) -> Config:
        timeout_ms = int(TRANSACTION_TIMEOUT_S * 1_000)
        return build_producer_config(self._place, self._access, MAX_WAITING_BYTES) | {
            "client.id": "hopwatch-results",
            "transactional.id": f"{ID_PREFIX}{self._store_id}",
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "linger.ms": 5,
            # As Java's clients do it, so that records of a key lie where a team's own producers put that key.
            "partitioner": "murmur2_random",
        }
