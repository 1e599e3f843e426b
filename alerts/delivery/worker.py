"""A carrier: takes what is due for one channel out of the outbox, sends it, and notes what came of it.

Sending is never within a transaction. What was sent and could not be noted is noted before anything else is sent, so
that only a process that dies between the two sends it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Accepted, Channel, Failure, Outcome
from hopwatch.alerts.delivery import log, retry_policy
from hopwatch.alerts.delivery.store_lock import StoreLock
from hopwatch.alerts.storage import outbox
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock

MAX_CONSECUTIVE_FAILURES: Final = 3
"""So many different notifications fail in a row, and the channel is down: the others of the round are not tried."""

NOT_TRIED: Final = "not tried, as the channel fails: "


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What came of one delivery; ``is_sent`` is false where the channel was known to be down and was not asked."""

    delivery: Delivery
    outcome: Outcome
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class ChannelCounts:
    """What one channel did since the monitor started: how many were sent, and what came of them."""

    attempts: int = 0
    taken: int = 0
    failed: int = 0
    handed_over: int = 0
    given_up: int = 0


@dataclass(slots=True)
class ChannelWorker:
    """Carries what is for one channel; of one thread at a time. ``counts`` may be read by others."""

    name: str
    channel: Channel
    fallback: str | None
    engine: Engine
    clock: Clock
    pen: StoreLock
    counts: ChannelCounts = field(default_factory=ChannelCounts)
    _owed: tuple[DeliveryResult, int] | None = None
    """What was sent, when, and is still to be noted."""
    _alone: tuple[int, int, str] | None = None
    """From when until when the other side asks to be left alone, and its words."""
    _is_failing: bool = False

    def round(self, is_over: Callable[[], bool] = lambda: False) -> list[DeliveryResult]:
        """Carry what is due now, up to a hundred; stops early once ``is_over``. Returns what came of each.

        Raises:
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        if self._owed is not None:
            self._note(*self._owed)
        receipts: list[DeliveryResult] = []
        failures: list[Failure] = []
        for delivery in sorted(
            outbox.query_due(self.engine, self.clock.now_us(), channel=self.name), key=retry_policy.sort_key
        ):
            if is_over():
                break
            receipt = self._receipt(delivery, failures)
            outcome = receipt.outcome
            failures = [*failures, outcome] if isinstance(outcome, Failure) and not outcome.is_for_good else []
            receipts.append(receipt)
            self._count(receipt)
            self._note(receipt, self.clock.now_us())
        return receipts

    def _receipt(self, delivery: Delivery, failures: Sequence[Failure]) -> DeliveryResult:
        """Send a delivery, unless the channel is known to take none."""
        now_us = self.clock.now_us()
        if self._alone is not None and self._alone[0] <= now_us < self._alone[1]:
            left_s = (self._alone[1] - now_us) / 1e6
            return DeliveryResult(delivery, Failure(NOT_TRIED + self._alone[2], wait_s=left_s), is_sent=False)
        if len(failures) >= MAX_CONSECUTIVE_FAILURES:
            one = failures[MAX_CONSECUTIVE_FAILURES - 1]
            return DeliveryResult(delivery, Failure(NOT_TRIED + one.why, within_s=one.within_s), is_sent=False)
        self.pen.check()
        return DeliveryResult(delivery, self._sent(delivery, now_us))

    def _sent(self, delivery: Delivery, now_us: int) -> Outcome:
        try:
            outcome = self.channel.send(delivery, now_us)
        except Exception as error:  # noqa: BLE001 - whatever a channel does, others are told
            outcome = Failure(log.describe_fault(error))
        self._alone = None
        if isinstance(outcome, Failure) and (asked_s := retry_policy.requested_wait_s(outcome)):
            from_us = self.clock.now_us()
            self._alone = from_us, from_us + round(asked_s * 1e6), outcome.why
        self._tell(outcome)
        return outcome

    def _tell(self, outcome: Outcome) -> None:
        """Say once that a channel fails, and once that it does not any more."""
        if isinstance(outcome, Accepted):
            if self._is_failing:
                log.info("a channel takes notifications again", channel=self.name)
        elif not self._is_failing:
            log.warning("a channel has not taken a notification", channel=self.name, why=outcome.why)
        self._is_failing = isinstance(outcome, Failure)

    def _count(self, receipt: DeliveryResult) -> None:
        is_taken = isinstance(receipt.outcome, Accepted)
        if receipt.is_sent:
            now = self.counts
            taken, failed = now.taken + is_taken, now.failed + (not is_taken)
            self.counts = replace(now, attempts=now.attempts + 1, taken=taken, failed=failed)

    def _note(self, receipt: DeliveryResult, now_us: int) -> None:
        """Note what came of a delivery; what cannot be noted now is owed."""
        self._owed = receipt, now_us
        self.pen.write(partial(self._write, receipt, now_us))
        self._owed = None

    def _write(self, receipt: DeliveryResult, now_us: int) -> None:
        delivery, outcome = receipt.delivery, receipt.outcome
        if isinstance(outcome, Accepted):
            after_s = outcome.again_after_s
            again_at_us = None if after_s is None else now_us + round(retry_policy.resend_interval_s(after_s) * 1e6)
            outbox.mark_sent(self.engine, delivery, again_at_us)
            return
        resort = retry_policy.decide_retry(delivery, outcome)
        # First of all: killed in between, it is handed over again, which changes nothing.
        if resort.is_handed_over and self.fallback is not None:
            self._hand_over(delivery, self.fallback)
        if resort.wait_s is None:
            self._give_up(delivery, outcome)
        else:
            outbox.mark_failed(self.engine, delivery, outcome.why, now_us + round(resort.wait_s * 1e6))

    def _hand_over(self, delivery: Delivery, fallback: str) -> None:
        if outbox.enqueue_fallback(self.engine, delivery, fallback):
            self.counts = replace(self.counts, handed_over=self.counts.handed_over + 1)
            told = {"channel": self.name, "fallback": fallback, "key": delivery.notification.key}
            log.warning("a notification is handed over to another channel", **told)

    def _give_up(self, delivery: Delivery, failure: Failure) -> None:
        outbox.mark_dead(self.engine, delivery, failure.why)
        self.counts = replace(self.counts, given_up=self.counts.given_up + 1)
        told = {"channel": self.name, "key": delivery.notification.key, "what": delivery.notification.event.value}
        log.error("a notification is given up: look at the channel", **told, why=failure.why)
