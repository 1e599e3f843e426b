"""Kafka sink: records are acknowledged by all replicas, in order, once, with a bounded queue.

A record counts as accepted once it is in the client's queue. The queue is bounded in bytes; a broker that is down costs
the host this memory and nothing else. Records that the broker refuses for good come back by :meth:`KafkaSink.failed`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.kafka import OFFSET_HEADER, KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import (
    BrokersError,
    Config,
    build_producer_config,
    check_topic,
    describe_kafka_error,
)
from hopwatch.probes.kafka.producer import ReplaceableProducer
from hopwatch.probes.once_per_cause import OncePerCause

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes that wait for the brokers at most."""
RETRY_S: Final = 1.0
"""Pause before another client is made, after one could not be made or has given up."""

CLOCK_EVERY_S: Final = 10.0
"""Interval at which the clock is held against those of the brokers."""
CLOCK_WAIT_S: Final = 0.1
"""Time that the acknowledgement for it may take."""

_CHECK_S: Final = 5.0
_LOG_APPEND_TIME: Final = 2
"""The client's mark of a timestamp that the broker gave."""
_log = logging.getLogger("hopwatch.probe")


class KafkaSink:
    """Sink that sends the records of one probe instance under one key, so that they keep their order."""

    def __init__(
        self,
        place: KafkaPlace,
        instance: str,
        clock: Clock | None = None,
        *,
        access: KafkaAccess | None = None,
        most_bytes: int = MAX_BYTES,
    ) -> None:
        """Set the topic; no connection is made before the first record."""
        self.place, self.access, self.most_bytes = place, access or KafkaAccess(), most_bytes
        self._key = instance.encode()
        self._clock = clock or SystemClock()
        self._client = ReplaceableProducer(self._build_config, _log, self._on_error)
        self._waiting_bytes = 0
        self._failed: list[bytes] = []
        self._failed_s = float("-inf")
        self._logged = OncePerCause()
        self._measured_s = float("-inf")
        # By how much the clock is ahead of the broker's at most, µs, once it is measured and until that is told.
        self._offset_max_us: int | None = None
        self._is_measuring = False

    def check(self) -> None:
        """Check that the topic can be reached.

        Raises:
            OSError: confluent-kafka is not installed, no client can be made, no broker answers, or the topic does not
                exist.
        """
        try:
            producer = self._client.get()
        except ModuleNotFoundError as error:
            raise OSError(f"the topic {self.place} cannot be written: {describe_kafka_error(error)}") from None
        except _import_exception() as error:
            # Such as of a file with certificates that is not there.
            told = f"the brokers {self.place.brokers} cannot be reached: {describe_kafka_error(error)}"
            raise BrokersError(told) from None
        check_topic(producer, self.place, _CHECK_S)

    def send(self, record: bytes) -> bool:
        """Queue a record; False when the queue is full, or there is no client to queue it in."""
        producer = self._find_producer()
        if producer is None:
            return False
        producer.poll(0)
        if self._waiting_bytes + len(record) > self.most_bytes:
            self._log_once("is full", f"takes no more: {self.most_bytes} bytes wait for {self.place.brokers}")
            return False
        told: dict[str, str | bytes] = {}
        if self._offset_max_us is not None:
            told[OFFSET_HEADER] = str(self._offset_max_us)
        try:
            producer.produce(self.place.topic, record, self._key, headers=told, on_delivery=self._on_delivery)
        except (BufferError, _import_exception()) as error:
            self._log_once("not written", f"cannot be written: {describe_kafka_error(error)}")
            return False
        self._waiting_bytes += len(record)
        if self._offset_max_us is not None:
            self._offset_max_us, self._is_measuring = None, False
        if self._now_s() - self._measured_s >= CLOCK_EVERY_S:
            self._measure_clock()
        return True

    def _measure_clock(self) -> None:
        """Have what waits acknowledged at once: the next record says how far the clock may be ahead of the broker's.

        The record before was sent right before: that it arrived by the broker's clock says how far behind it may be.
        Acknowledgements that take longer give a bound, too, which is farther off.
        """
        self._measured_s = self._now_s()
        self._is_measuring = True
        self._client.flush(CLOCK_WAIT_S)

    def failed(self) -> list[bytes]:
        """Return, once, the accepted records that the brokers then refused for good."""
        failed, self._failed = self._failed, []
        return failed

    def tick(self) -> None:
        """Process delivery reports."""
        if self._client.current is not None:
            self._client.current.poll(0)

    def settle(self, patience_s: float) -> bool:
        """Wait until the brokers have acknowledged all accepted records; return whether they have."""
        self._client.flush(patience_s)
        return not self._waiting_bytes and not self._failed

    def close(self, patience_s: float = 0.0) -> None:
        """Wait for records in flight, and let the rest fail: a process that ends cannot wait for a broker."""
        left = self._client.discard(patience_s)
        if left:
            _log.warning("%d records for %s were not delivered in %.1f s", left, self.place, patience_s)

    def _build_config(self) -> Config:
        return build_producer_config(self.place, self.access, self.most_bytes)

    def _find_producer(self) -> Producer | None:
        """Return the client; make a new one if there is none or the last has given up, at most once per ``RETRY_S``."""
        if self._client.current is not None and not self._client.has_given_up:
            return self._client.current
        if self._now_s() - self._failed_s < RETRY_S:
            return None
        self._failed_s = self._now_s()
        self.close(0)
        try:
            return self._client.get()
        except Exception as error:  # noqa: BLE001 - no error of a new client may reach the host
            self._log_once("no client", f"cannot be reached: {describe_kafka_error(error)}")
            return None

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        record = message.value() or b""
        self._waiting_bytes -= len(record)
        kind, moment_ms = message.timestamp()
        if self._is_measuring and error is None and kind == _LOG_APPEND_TIME:
            ahead_us = self._clock.wall_ns() // 1_000 - moment_ms * 1_000
            self._offset_max_us = ahead_us if self._offset_max_us is None else min(ahead_us, self._offset_max_us)
        if error is not None:
            self._failed.append(bytes(record))
            self._log_once(f"refused, {error.code()}", f"refused a record: {describe_kafka_error(error)}")

    def _on_error(self, error: KafkaError) -> None:
        self._log_once(f"trouble, {error.code()}", f"has trouble: {describe_kafka_error(error, self.place.brokers)}")

    def _log_once(self, reason: str, why: str) -> None:
        """Log each reason of a failure once, keyed by ``reason``: the client's own words hold durations and counts."""
        if self._logged.is_new(reason):
            _log.warning("the topic %s %s", self.place, why)

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9


def _import_exception() -> type[Exception]:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - a probe that spools does without it

    return KafkaException
