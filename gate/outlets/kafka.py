"""Kafka outlet: a record is written once all in-sync replicas have acknowledged it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from hopwatch.gate import ids
from hopwatch.gate.outlets import MAX_WAITING_BYTES, OutgoingRecord, OutletError, WriteCallback
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
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.once_per_cause import OncePerCause

ARRIVED_HEADER: Final = "hopwatch-arrived"
"""Header with the arrival time at the gate: text, µs since 1970."""
WRITE_TIMEOUT_S: Final = 10.0
"""Delivery timeout of a record, in s, and so the maximum wait for the answer."""
LINGER_MS: Final = 2
_CHECK_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.1
_RETRY_S: Final = 1.0
_log = logging.getLogger("hopwatch.gate")


class _Delivery:
    """Records handed to the client together; calls back once all are acknowledged or failed."""

    def __init__(self, count: int, done: WriteCallback, reported: OncePerCause) -> None:
        self._waiting, self._done, self._reported = count, done, reported
        self._failed: list[bytes] = []

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(ids.parse_uuid((message.key() or b"").decode()))
            if self._reported.is_new(describe_kafka_error(error)):
                told = "the topic %s does not take events: %s; their senders are told to send them again"
                _log.warning(told, message.topic(), describe_kafka_error(error))
        elif self._reported.rearm():
            _log.warning("the topic %s takes events again", message.topic())
        self._waiting -= 1
        if not self._waiting:
            self._done(frozenset(self._failed))

    def on_refused(self, event_id: bytes) -> None:
        """Count a record that the client itself refused."""
        self._failed.append(event_id)
        self._waiting -= 1
        if not self._waiting:
            self._done(frozenset(self._failed))


class KafkaOutlet:
    """Outlet to one topic; the key is the event's id, headers carry id and times."""

    def __init__(
        self,
        place: KafkaPlace,
        access: KafkaAccess | None = None,
        *,
        most_bytes: int = MAX_WAITING_BYTES,
        write_s: float = WRITE_TIMEOUT_S,
    ) -> None:
        """Build the client, without waiting for a connection."""
        self.place, self._access, self._max_waiting_bytes = place, access or KafkaAccess(), most_bytes
        self._write_ms = int(write_s * 1_000)
        self._waiting_bytes, self._reported = 0, OncePerCause()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._client = ReplaceableProducer(self._build_config, _log)
        self._producer = self._client.get()
        self._poller = threading.Thread(target=self._poll_until_stopped, name="hopwatch-gate-kafka", daemon=True)
        self._poller.start()

    def write(self, leaving: Sequence[OutgoingRecord], done: WriteCallback) -> None:
        """Hand records to the client; ``done`` is called once the brokers have acknowledged or refused each.

        Raises:
            OutletError: too much is waiting.
        """
        if not leaving:
            done(frozenset())
            return
        size = sum(len(one.record) for one in leaving)
        if self._waiting_bytes + size > self._max_waiting_bytes:
            raise OutletError(f"{self._waiting_bytes:,} bytes wait for the brokers {self.place.brokers} already")
        # In this order: a client that is current after the last one was given up is the next one.
        has_given_up, producer = self._client.has_given_up, self._client.current
        if has_given_up or producer is None:
            raise OutletError(f"the client for {self.place.brokers} had a fatal error, and is being replaced")
        with self._lock:
            self._waiting_bytes += size

        def told(failed: frozenset[bytes]) -> None:
            with self._lock:
                self._waiting_bytes -= size
            done(failed)

        delivery = _Delivery(len(leaving), told, self._reported)
        produce, topic, heard = producer.produce, self.place.topic, delivery.on_delivery
        for one in leaving:
            key = ids.format_uuid(one.event_id).encode()
            headers: list[tuple[str, str | bytes]] = [
                (ID_HEADER, key),
                (TIME_HEADER, b"%d" % one.event_us),
                (ARRIVED_HEADER, b"%d" % one.arrived_us),
            ]
            try:
                produce(topic, one.record, key, on_delivery=heard, headers=headers)
            except (BufferError, KafkaException) as error:
                if self._reported.is_new(describe_kafka_error(error)):
                    _log.warning("the topic %s cannot be written: %s", topic, describe_kafka_error(error))
                delivery.on_refused(one.event_id)

    def check(self) -> None:
        """Ask the brokers for the topic.

        Raises:
            OutletError: no broker answers, or the topic does not exist.
        """
        try:
            check_topic(self._producer, self.place, _CHECK_TIMEOUT_S)
        except BrokersError as error:
            raise OutletError(f"{error}: check the address, and what [transport.kafka] says of access") from None
        except TopicError as error:
            raise OutletError(f"{error}: create it") from None

    def close(self) -> None:
        """Wait until each record is acknowledged, refused or timed out."""
        self._producer.flush(self._write_ms / 1_000)
        self._stop.set()
        self._poller.join()
        self._client.discard()

    def _build_config(self) -> Config:
        return build_producer_config(self.place, self._access, self._max_waiting_bytes) | {
            "client.id": "hopwatch-gate",
            "linger.ms": LINGER_MS,
            "message.timeout.ms": self._write_ms,
            "queue.buffering.max.messages": 0,
            "compression.type": "lz4",
        }

    def _replace_producer(self) -> None:
        """Replace a client after a fatal error; its pending records fail."""
        self._client.discard()
        self._producer = self._client.get()

    def _poll_until_stopped(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(_POLL_S)
            if self._client.has_given_up:
                try:
                    self._replace_producer()
                except KafkaException as error:
                    _log.warning(
                        "no client for the topic %s can be created: %s", self.place.topic, describe_kafka_error(error)
                    )
                    self._stop.wait(_RETRY_S)
