"""Kafka topic for the registrations of the registry."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from hopwatch.gate.outlets import OutletError
from hopwatch.gate.registry.changes import ChangeRecord
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import (
    BrokersError,
    Config,
    TopicError,
    build_producer_config,
    check_topic,
    describe_kafka_error,
)
from hopwatch.probes.kafka.producer import ReplaceableProducer

WRITE_TIMEOUT_S: Final = 10.0
_CHECK_TIMEOUT_S: Final = 5.0
_MAX_WAITING_BYTES: Final = 16 * 1024 * 1024
_log = logging.getLogger("hopwatch.gate")


class ChangeTopic:
    """Topic whose records are acknowledged by all in-sync replicas before the next ones are written."""

    def __init__(self, place: KafkaPlace, access: KafkaAccess) -> None:
        """Take the topic; nothing is connected yet."""
        self.place, self._access = place, access
        self._client = ReplaceableProducer(self._build_config, _log)
        self._errors: list[str] = []

    def check(self) -> None:
        """Ask the brokers for the topic.

        Raises:
            OutletError: no broker answers, or the topic does not exist.
        """
        try:
            check_topic(self._client.get(), self.place, _CHECK_TIMEOUT_S)
        except BrokersError as error:
            raise OutletError(f"{error}: check the address, and what [transport.kafka] says of access") from None
        except TopicError as error:
            raise OutletError(f"{error}: create it, or leave [gate.registry] changes_topic out") from None

    def write(self, records: Sequence[ChangeRecord]) -> str:
        """Write records in order, and return why one of them was not taken; empty once all are acknowledged."""
        self._errors = []
        if self._client.has_given_up:
            self._client.discard()
        try:
            producer = self._client.get()
            for one in records:
                producer.produce(self.place.topic, one.value, one.key, on_delivery=self._on_delivery)
            left = producer.flush(WRITE_TIMEOUT_S + 1)
        except (BufferError, KafkaException) as error:
            self._client.discard()
            return describe_kafka_error(error, self.place.brokers)
        if left:
            self._client.discard()
            return f"{self.place.brokers} did not acknowledge in time"
        return self._errors[0] if self._errors else ""

    def close(self) -> None:
        """Release the client."""
        self._client.discard()

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._errors.append(describe_kafka_error(error, self.place.brokers))

    def _build_config(self) -> Config:
        return build_producer_config(self.place, self._access, _MAX_WAITING_BYTES) | {
            "client.id": "hopwatch-gate",
            "message.timeout.ms": int(WRITE_TIMEOUT_S * 1_000),
        }
