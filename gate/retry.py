"""Calls of Kafka's clients that are made again until they succeed, cannot, or nobody wants them any more."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.topic import get_kafka_error

ANSWER_TIMEOUT_S: Final = 5.0
"""So long one call waits for the brokers; then it is made again."""
RETRY_S: Final = 0.5
STOP_GRACE_S: Final = 10.0
"""So long after the wish to stop brokers that are away are still waited for."""

_TRANSIENT_ERRORS: Final = (
    KafkaError._TIMED_OUT,  # noqa: SLF001 - public in all but name, as those below
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.LISTENER_NOT_FOUND,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
"""What Kafka's own clients ask again after, too: the brokers are away, or agree on a new leader."""
T = TypeVar("T")


class StoppedError(Exception):
    """It was to stop while it waited."""


class KafkaRetry:
    """Tries on while brokers are away, and says so once for each time."""

    def __init__(self, around: RunContext) -> None:
        """Begin with all well."""
        self._context, self._is_reported, self._stopped_s = around, False, 0.0

    def call(self, call: Callable[[], T]) -> T:
        """Return what a call returns, once it does.

        Raises:
            StoppedError: it still did not, some time after the wish to stop.
            KafkaException: it never will.
        """
        while True:
            try:
                return call()
            except KafkaException as error:
                what = get_kafka_error(error)
                if what.fatal() or not (what.retriable() or what.code() in _TRANSIENT_ERRORS):
                    raise
                self.back_off(what)

    def back_off(self, what: KafkaError) -> None:
        """Wait a little after something went wrong, and tell it unless that was done.

        Raises:
            StoppedError: the wish to stop is too old.
        """
        if not self._is_reported:
            self._is_reported = True
            self._context.report(f"the brokers do not do what they are asked: {what.str()}: trying on, nothing is lost")
        if not self._context.stop.wait(RETRY_S):
            return
        self._stopped_s = self._stopped_s or self._context.monotonic_s()
        if self._context.monotonic_s() - self._stopped_s > STOP_GRACE_S:
            raise StoppedError
        # That a stop is wished for wakes whoever waits for it at once.
        _NEVER.wait(RETRY_S)

    def reset(self) -> None:
        """Tell that what went wrong goes well again."""
        if self._is_reported:
            self._is_reported = False
            self._context.report("the brokers answer again")


_NEVER: Final = Event()
