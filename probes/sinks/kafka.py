"""Kafka sink: records are acknowledged by all replicas, in order, once, with a bounded queue.

A record counts as accepted once it is in the client's queue. The queue is bounded in bytes; a broker that is down costs
the host this memory and nothing else. Records that the broker refuses for good come back by :meth:`KafkaSink.failed`.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.kafka import SECRETS, KafkaAccess, KafkaPlace, describe_error, read_secret
from hopwatch.probes.contract.limits import MAX_RECORD_BYTES
from hopwatch.probes.once_per_cause import OncePerCause

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes that wait for the brokers at most."""
RETRY_S: Final = 1.0
"""Pause before another client is made, after one could not be made or has given up."""

_PREFIX: Final = "HOPWATCH_TRANSPORT__KAFKA__"
_ENVELOPE_BYTES: Final = 1_024
"""Bytes that Kafka adds to a record at most: key, headers, lengths."""
_log = logging.getLogger("hopwatch.probe")


def build_producer_config(place: KafkaPlace, access: KafkaAccess, most_bytes: int) -> dict[str, str | int | bool]:
    """Build the client's configuration, under librdkafka's names."""
    return {
        **access.for_librdkafka(place.brokers),
        "client.id": "hopwatch-probe",
        "acks": "all",
        "enable.idempotence": True,
        "compression.type": "zstd",
        "linger.ms": 50,
        "message.max.bytes": MAX_RECORD_BYTES + _ENVELOPE_BYTES,
        # Our own bound comes first; this one is for what the client itself adds.
        "queue.buffering.max.kbytes": 2 * most_bytes // 1_024 + 1,
        # No time-out: a record that waits costs no more than one that is refused in its place.
        "message.timeout.ms": 0,
        "log.connection.close": False,
        # The client logs every failed attempt to connect; its callbacks report the errors that matter.
        "log_level": 2,
    }


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
        self._monotonic_ns = (clock or SystemClock()).monotonic_ns
        self._producer: Producer | None = None
        self._waiting_bytes = 0
        self._failed: list[bytes] = []
        self._failed_s = float("-inf")
        self._has_given_up = False
        self._logged = OncePerCause()

    def check(self) -> None:
        """Check that the topic can be reached.

        Raises:
            OSError: confluent-kafka is not installed, no broker answers, or the topic does not exist.
        """
        try:
            from confluent_kafka import KafkaException  # noqa: PLC0415 - a probe that spools does without it
        except ModuleNotFoundError as error:
            raise OSError(f"the topic {self.place} cannot be written: {describe_exception(error)}") from None
        try:
            topic = self._get_producer().list_topics(self.place.topic, timeout=RETRY_S * 5).topics[self.place.topic]
        except KafkaException as error:
            raise OSError(f"the brokers {self.place.brokers} cannot be reached: {describe_exception(error)}") from None
        if topic.error is not None:
            raise OSError(f"the topic {self.place.topic} cannot be written: {topic.error.str()}")

    def send(self, record: bytes) -> bool:
        """Queue a record; False when the queue is full, or there is no client to queue it in."""
        producer = self._find_producer()
        if producer is None:
            return False
        producer.poll(0)
        if self._waiting_bytes + len(record) > self.most_bytes:
            self._log_once("is full", f"takes no more: {self.most_bytes} bytes wait for {self.place.brokers}")
            return False
        try:
            producer.produce(self.place.topic, record, self._key, on_delivery=self._on_delivery)
        except (BufferError, _import_exception()) as error:
            self._log_once("not written", f"cannot be written: {describe_exception(error)}")
            return False
        self._waiting_bytes += len(record)
        return True

    def failed(self) -> list[bytes]:
        """Return, once, the accepted records that the brokers then refused for good."""
        failed, self._failed = self._failed, []
        return failed

    def tick(self) -> None:
        """Process delivery reports."""
        if self._producer is not None:
            self._producer.poll(0)

    def settle(self, patience_s: float) -> bool:
        """Wait until the brokers have acknowledged all accepted records; return whether they have."""
        if self._producer is not None:
            self._producer.flush(patience_s)
        return not self._waiting_bytes and not self._failed

    def close(self, patience_s: float = 0.0) -> None:
        """Wait for records in flight, and let the rest fail: a process that ends cannot wait for a broker."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        left = producer.flush(patience_s)
        if left:
            _log.warning("%d records for %s were not delivered in %.1f s", left, self.place, patience_s)
            producer.purge()
            producer.flush(RETRY_S)
        _release(producer)

    def _find_producer(self) -> Producer | None:
        """Return the client; make a new one if there is none or the last has given up, at most once per ``RETRY_S``."""
        if self._producer is not None and not self._has_given_up:
            return self._producer
        if self._now_s() - self._failed_s < RETRY_S:
            return None
        self._failed_s = self._now_s()
        self.close(0)
        self._has_given_up = False
        try:
            return self._get_producer()
        except Exception as error:  # noqa: BLE001 - no error of a new client may reach the host
            self._log_once("no client", f"cannot be reached: {describe_exception(error)}")
            return None

    def _get_producer(self) -> Producer:
        from confluent_kafka import Producer  # noqa: PLC0415 - a probe that spools does without it

        if self._producer is None:
            config = build_producer_config(self.place, self.access, self.most_bytes) | {"error_cb": self._on_error}
            self._producer = Producer(config, logger=_log)
            _keep_alive(self._producer)
        return self._producer

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        record = message.value() or b""
        self._waiting_bytes -= len(record)
        if error is not None:
            self._failed.append(bytes(record))
            self._log_once(f"refused, {error.code()}", f"refused a record: {error.str()}")

    def _on_error(self, error: KafkaError) -> None:
        """Handle background errors; the client recovers from all but fatal ones by itself."""
        self._has_given_up = self._has_given_up or error.fatal()
        self._log_once(f"trouble, {error.code()}", f"has trouble: {describe_error(error.str(), self.place.brokers)}")

    def _log_once(self, reason: str, why: str) -> None:
        """Log each reason of a failure once, keyed by ``reason``: the client's own words hold durations and counts."""
        if self._logged.is_new(reason):
            _log.warning("the topic %s %s", self.place, why)

    def _now_s(self) -> float:
        return self._monotonic_ns() / 1e9


def read_access(environ: Mapping[str, str]) -> KafkaAccess:
    """Read the Kafka credentials from the environment, under the names that the monitor uses, too.

    Raises:
        ValueError: a value is invalid, or a secret is given twice.
        OSError: a file with a secret cannot be read.
    """
    said = {name.removeprefix(_PREFIX).lower(): value for name, value in environ.items() if name.startswith(_PREFIX)}
    said |= {secret: read_secret(secret, said, _read_text) for secret in SECRETS}
    return KafkaAccess(**{name: said[name] for name in KafkaAccess.__dataclass_fields__ if name in said})


def _read_text(file: str) -> str:
    return Path(file).read_text("utf-8")


def describe_exception(error: Exception) -> str:
    """Return the text of an error; for a missing client, tell how to install it."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "confluent_kafka":
        return "confluent-kafka is not installed: pip install 'hopwatch[kafka]'"
    say = getattr(next(iter(error.args), None), "str", None)
    return describe_error(str(say() if callable(say) else error))


def _import_exception() -> type[Exception]:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - a probe that spools does without it

    return KafkaException


def _keep_alive(producer: Producer) -> None:
    """Keep a client beyond its last reference: the child of a fork inherits it without its threads.

    The destructor joins these threads, and would wait for ever there. Only the process that made the client may destroy
    it, by :func:`_release`.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(producer))


def _release(producer: Producer) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(producer))
