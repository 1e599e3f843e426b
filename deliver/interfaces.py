"""Interfaces between the engine of a delivery and its surroundings: source, sink, receiver and observer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.deliver.circuit_breaker import BreakerState
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.settlement import Settlement


class SettlementError(Exception):
    """Settlements could not be made durable now; the engine hands the same ones on again, after a wait."""


class MessageSource(Protocol):
    """Source of messages, each of which it hands out once as long as this process has its partition."""

    async def poll(self, most: int) -> list[DeliveryMessage]:
        """Return up to ``most`` messages, 1 or more, those of a partition in their order; none after at most 0.2 s.

        While no more may be in hand it is not called. An error ends the engine.
        """


class SettlementSink(Protocol):
    """Sink of settlements."""

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        """Make them durable together: rejected and deferred messages, and offsets.

        Return those that are durable; the others are of partitions that went, whose messages are read again.

        Raises:
            SettlementError: none is durable, and they are to be handed on again. Any other error ends the engine.
        """


class Receiver(Protocol):
    """Receiver of requests."""

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer | NoAnswer:
        """Post once, within the timeout, without following redirects; it raises nothing but cancellation."""


class DeliveryObserver(Protocol):
    """Observer of a delivery, for metrics, logs and stamps; its calls are short and raise nothing."""

    def record_request(self, events: int, size_bytes: int) -> None:
        """Record the start of a request."""

    def record_result(self, events: int, result: AttemptResult, round_trip_s: float) -> None:
        """Record the end of a request that was recorded before."""

    def record_cancellation(self) -> None:
        """Record a request that was recorded before and given up when the engine stopped."""

    def record_breaker_state(self, state: BreakerState) -> None:
        """Record another state of the circuit breaker."""

    def record_wait(self, messages: Sequence[DeliveryMessage], until_us: int) -> None:
        """Record messages that wait in hand for their next try, at ``until_us`` at the earliest, as order asks.

        They are those that failed, those of their keys behind them, and all that wait while the breaker is open.
        """

    def record_in_hand(self, messages: int, size_bytes: int) -> None:
        """Record how many messages, and bytes of them, are in hand now."""


class SilentObserver:
    """Observer that records nothing."""

    def record_request(self, events: int, size_bytes: int) -> None:
        """Record nothing."""

    def record_result(self, events: int, result: AttemptResult, round_trip_s: float) -> None:
        """Record nothing."""

    def record_cancellation(self) -> None:
        """Record nothing."""

    def record_breaker_state(self, state: BreakerState) -> None:
        """Record nothing."""

    def record_wait(self, messages: Sequence[DeliveryMessage], until_us: int) -> None:
        """Record nothing."""

    def record_in_hand(self, messages: int, size_bytes: int) -> None:
        """Record nothing."""
