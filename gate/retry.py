"""Retry of Kafka client calls until they succeed, fail for good, or a stop is requested."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from hopwatch.probes.kafka.client import describe_kafka_error, get_kafka_error, is_fatal_error
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.taps.context import RunContext

ANSWER_TIMEOUT_S: Final = 5.0
"""Timeout of one call; after it the call is retried."""
RETRY_S: Final = 0.5
STOP_GRACE_S: Final = 10.0
"""Time after a stop request for which unavailable brokers are still waited for."""

_TRANSIENT_ERRORS: Final = (
    KafkaError._TIMED_OUT,  # noqa: SLF001 - public in all but name, as those below
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    KafkaError._DESTROY_BROKER,  # type: ignore[attr-defined]  # noqa: SLF001 - one that was away; the stub is older
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
"""Errors that Kafka's own clients retry too: brokers are unavailable, or a leader is being elected."""
T = TypeVar("T")


class StoppedError(Exception):
    """A stop was requested while a call was retried."""


class KafkaRetry:
    """Retry policy for unavailable brokers; each outage is reported once."""

    def __init__(self, around: RunContext) -> None:
        """Begin without an outage."""
        self._context, self._reported, self._stopped_s = around, OncePerCause(), 0.0

    def call(self, call: Callable[[], T]) -> T:
        """Call until it succeeds, and return the result.

        Raises:
            StoppedError: it still fails some time after a stop was requested.
            KafkaException: the error is permanent.
        """
        while True:
            try:
                return call()
            except KafkaException as error:
                what = get_kafka_error(error)
                if is_fatal_error(what) or not (what.retriable() or what.code() in _TRANSIENT_ERRORS):
                    raise
                self.back_off(what)

    def back_off(self, what: KafkaError) -> None:
        """Wait before the next try, and report the error if it is the first of an outage.

        Raises:
            StoppedError: the stop was requested too long ago.
        """
        if self._reported.is_new():
            told = f"the calls to the brokers fail: {describe_kafka_error(what)}: retrying, nothing is lost"
            self._context.report(told)
        if not self._context.stop.wait(RETRY_S):
            return
        self._stopped_s = self._stopped_s or self._context.monotonic_s()
        if self._context.monotonic_s() - self._stopped_s > STOP_GRACE_S:
            raise StoppedError
        # Once a stop is requested, the wait above returns at once.
        _NEVER.wait(RETRY_S)

    def reset(self) -> None:
        """Report the end of an outage."""
        if self._reported.rearm():
            self._context.report("the brokers answer again")


_NEVER: Final = Event()
