"""Worker of one notification channel: reads due deliveries from the outbox, sends them and records the outcomes.

No transaction is open while it sends. An outcome that could not be recorded is recorded before anything else is sent,
so that only a process that dies between sending and recording sends twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Accepted, Channel, Failure, Outcome
from hopwatch.alerts.delivery import log, retry_policy
from hopwatch.alerts.delivery.store_writer import StoreWriter
from hopwatch.alerts.storage import outbox
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.probes.once_per_cause import OncePerCause

MAX_CONSECUTIVE_FAILURES: Final = 3
"""After so many failures in a row the channel counts as down: the other due notifications are not tried."""

NOT_TRIED: Final = "not tried, as the channel fails: "


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Outcome of one delivery; ``is_sent`` is false if it was not tried because the channel is down."""

    delivery: Delivery
    outcome: Outcome
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class ChannelCounts:
    """Counts of one channel since the monitor started: attempts and their outcomes."""

    attempts: int = 0
    taken: int = 0
    failed: int = 0
    handed_over: int = 0
    given_up: int = 0


@dataclass(slots=True)
class ChannelWorker:
    """Delivers the notifications of one channel; used by one thread at a time. Any thread may read ``counts``."""

    name: str
    channel: Channel
    fallback: str | None
    engine: Engine
    clock: Clock
    writer: StoreWriter
    counts: ChannelCounts = field(default_factory=ChannelCounts)
    _unrecorded: tuple[DeliveryResult, int] | None = None
    """Result that could not be recorded yet, and when it was sent."""
    _pause: tuple[int, int, str] | None = None
    """Start and end of the wait that the receiver asked for, and its reason."""
    _failing: OncePerCause = field(default_factory=OncePerCause)

    def deliver_due(self, is_over: Callable[[], bool] = lambda: False) -> list[DeliveryResult]:
        """Deliver what is due now, up to a hundred; stops early once ``is_over``. Returns the result of each.

        Raises:
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        if self._unrecorded is not None:
            self._record(*self._unrecorded)
        results: list[DeliveryResult] = []
        failures: list[Failure] = []
        for delivery in sorted(
            outbox.query_due(self.engine, self.clock.now_us(), channel=self.name), key=retry_policy.sort_key
        ):
            if is_over():
                break
            result = self._deliver(delivery, failures)
            outcome = result.outcome
            failures = [*failures, outcome] if isinstance(outcome, Failure) and not outcome.is_for_good else []
            results.append(result)
            self._count(result)
            self._record(result, self.clock.now_us())
        return results

    def _deliver(self, delivery: Delivery, failures: Sequence[Failure]) -> DeliveryResult:
        """Send a delivery, unless the channel is paused or down."""
        now_us = self.clock.now_us()
        if self._pause is not None and self._pause[0] <= now_us < self._pause[1]:
            left_s = (self._pause[1] - now_us) / 1e6
            return DeliveryResult(delivery, Failure(NOT_TRIED + self._pause[2], wait_s=left_s), is_sent=False)
        if len(failures) >= MAX_CONSECUTIVE_FAILURES:
            failure = failures[MAX_CONSECUTIVE_FAILURES - 1]
            return DeliveryResult(delivery, Failure(NOT_TRIED + failure.why, within_s=failure.within_s), is_sent=False)
        self.writer.check()
        return DeliveryResult(delivery, self._send(delivery, now_us))

    def _send(self, delivery: Delivery, now_us: int) -> Outcome:
        try:
            outcome = self.channel.send(delivery, now_us)
        except Exception as error:  # noqa: BLE001 - whatever a channel does, others are told
            outcome = Failure(log.describe_fault(error))
        self._pause = None
        if isinstance(outcome, Failure) and (asked_s := retry_policy.requested_wait_s(outcome)):
            from_us = self.clock.now_us()
            self._pause = from_us, from_us + round(asked_s * 1e6), outcome.why
        self._log_change(outcome)
        return outcome

    def _log_change(self, outcome: Outcome) -> None:
        """Log once that a channel fails, and once that it works again."""
        if isinstance(outcome, Accepted):
            if self._failing.rearm():
                log.info("a channel takes notifications again", channel=self.name)
        elif self._failing.is_new():
            log.warning("a channel has not taken a notification", channel=self.name, why=outcome.why)

    def _count(self, result: DeliveryResult) -> None:
        is_taken = isinstance(result.outcome, Accepted)
        if result.is_sent:
            counts = self.counts
            taken, failed = counts.taken + is_taken, counts.failed + (not is_taken)
            self.counts = replace(counts, attempts=counts.attempts + 1, taken=taken, failed=failed)

    def _record(self, result: DeliveryResult, now_us: int) -> None:
        """Record the result of a delivery; if the store fails, it is kept for the next call."""
        self._unrecorded = result, now_us
        self.writer.write(partial(self._write, result, now_us))
        self._unrecorded = None

    def _write(self, result: DeliveryResult, now_us: int) -> None:
        delivery, outcome = result.delivery, result.outcome
        if isinstance(outcome, Accepted):
            after_s = outcome.again_after_s
            again_at_us = None if after_s is None else now_us + round(retry_policy.resend_interval_s(after_s) * 1e6)
            outbox.mark_sent(self.engine, delivery, again_at_us)
            return
        resort = retry_policy.decide_retry(delivery, outcome)
        # This comes first: after a kill in between it is repeated, which changes nothing.
        if resort.is_handed_over and self.fallback is not None:
            self._hand_over(delivery, self.fallback)
        if resort.wait_s is None:
            self._give_up(delivery, outcome)
        else:
            outbox.mark_failed(self.engine, delivery, outcome.why, now_us + round(resort.wait_s * 1e6))

    def _hand_over(self, delivery: Delivery, fallback: str) -> None:
        if outbox.enqueue_fallback(self.engine, delivery, fallback):
            self.counts = replace(self.counts, handed_over=self.counts.handed_over + 1)
            fields = {"channel": self.name, "fallback": fallback, "key": delivery.notification.key}
            log.warning("a notification is handed over to another channel", **fields)

    def _give_up(self, delivery: Delivery, failure: Failure) -> None:
        outbox.mark_dead(self.engine, delivery, failure.why)
        self.counts = replace(self.counts, given_up=self.counts.given_up + 1)
        fields = {"channel": self.name, "key": delivery.notification.key, "what": delivery.notification.event.value}
        log.error("a notification is given up: look at the channel", **fields, why=failure.why)
