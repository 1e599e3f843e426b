"""Kafka producer that is made on demand, and given up after a fatal error or by its owner."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hopwatch.probes.kafka.client import Config

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

PURGE_S: Final = 1.0
"""Time that the reports of purged records have to arrive."""


class ReplaceableProducer:
    """One producer at a time: the next one is made when the last has been given up."""

    def __init__(
        self,
        build_config: Callable[[], Config],
        log: logging.Logger,
        on_error: Callable[[KafkaError], object] | None = None,
    ) -> None:
        """Set what builds the configuration of each client; ``on_error`` hears of background errors."""
        self._build_config, self._log, self._report_error = build_config, log, on_error
        self.current: Producer | None = None
        self.has_given_up = False
        """Whether the last client had a fatal error: it takes no more records, and no other one was made since."""

    def get(self) -> Producer:
        """Return the current client; make one if there is none.

        Raises:
            ImportError: confluent-kafka is not installed.
            KafkaException: the client cannot be made.
        """
        # Tracers replace the class in confluent_kafka: records of probes are no messages of the service.
        from confluent_kafka import cimpl  # noqa: PLC0415 - a probe that spools does without it

        if self.current is None:
            self.current = cimpl.Producer(self._build_config() | {"error_cb": self.on_error}, logger=self._log)
            self.has_given_up = False
            _keep_alive(self.current)
        return self.current

    def discard(self, patience_s: float = 0.0) -> int:
        """Wait for pending records, let the rest fail, and release the client; return how many were left."""
        producer, self.current = self.current, None
        if producer is None:
            return 0
        try:
            left = _flush(producer, patience_s)
            if left:
                producer.purge()
                _flush(producer, PURGE_S)
        finally:
            _release(producer)
        return left

    def flush(self, patience_s: float) -> int:
        """Send all pending records at once, and wait for their reports; return how many are left."""
        return _flush(self.current, patience_s) if self.current is not None else 0

    def on_error(self, error: KafkaError) -> None:
        """Handle background errors; the client recovers from all but fatal ones by itself."""
        self.has_given_up = self.has_given_up or error.fatal()
        if self._report_error is not None:
            self._report_error(error)


def _flush(producer: Producer, patience_s: float) -> int:
    """Wait for pending records, and return how many are left; a fatal error, which the client raises here, ends it."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - as above

    try:
        return producer.flush(patience_s)
    except KafkaException:
        return len(producer)


def _keep_alive(producer: Producer) -> None:
    """Keep a client beyond its last reference: the child of a fork inherits it without its threads.

    The destructor joins these threads, and would wait for ever there. Only the process that made the client may destroy
    it, by :func:`_release`.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(producer))


def _release(producer: Producer) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(producer))
