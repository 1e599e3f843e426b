"""Engine of a delivery: it polls messages, sends them in batches, in parallel, and hands on their settlements.

A message is in hand from the poll until its settlement is durable. The messages in hand are bounded by count and bytes,
and with them everything that the engine keeps: a receiver that hangs stops the polling, and nothing grows.

While the circuit breaker is open nothing is polled. A message that waits for it longer than ``local_time_limit_s`` is
deferred without a request; in order by key it waits on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from typing import Final

from hopwatch.deliver.answers import Answer, BatchJudgement, Judgement, MessageJudgement, judge_answer
from hopwatch.deliver.batch_queue import BatchQueue, MessageInHand
from hopwatch.deliver.change_signal import ChangeSignal
from hopwatch.deliver.circuit_breaker import BreakerState, CircuitBreaker, Permit
from hopwatch.deliver.interfaces import (
    DeliveryObserver,
    MessageSource,
    Receiver,
    SettlementError,
    SettlementSink,
    SilentObserver,
)
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.policy import DeliveryPolicy, Order
from hopwatch.deliver.request_body import find_fault
from hopwatch.deliver.request_builder import RequestBuilder
from hopwatch.deliver.retry_policy import EXPIRED, FailedTry, NextStep, NextTry, decide_deferral, decide_retry
from hopwatch.deliver.retry_schedule import RetrySchedule
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.deliver.settlement_buffer import SettlementBuffer
from hopwatch.probes.clock import Clock, SystemClock

BREAKER_REASON: Final = "the circuit breaker is open"
"""Reason for deferring a message that was not sent in time."""
DRAIN_GRACE_S: Final = 5.0
"""Time after a stop for what is under way, on top of the timeout of a request."""
SETTLE_GRACE_S: Final = 30.0
"""Time after a stop for the sink to make the last settlements durable."""
_FIRST_ESTIMATE_BYTES: Final = 16 * 1024
"""Size that messages are thought to have before the first was seen."""


class DeliveryEngine:
    """Engine of one delivery, for the event loop that runs it; :meth:`stop_polling` may be called from it too."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        policy: DeliveryPolicy,
        source: MessageSource,
        sink: SettlementSink,
        receiver: Receiver,
        *,
        observer: DeliveryObserver | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """Take the parts; nothing is polled yet.

        Raises:
            ValueError: a signing secret is none.
        """
        self._policy, self._source, self._receiver = policy, source, receiver
        self._observer: DeliveryObserver = observer or SilentObserver()
        self._clock: Clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter, no secret
        self._requests = RequestBuilder(policy)
        self._breaker = CircuitBreaker(policy.breaker)
        self._breaker_state = self._breaker.state
        self._queue, self._retries = BatchQueue(policy), RetrySchedule()
        self._settlements = SettlementBuffer(sink, self._is_settling, self._forget_settled)
        self._in_hand: dict[SourcePosition, MessageInHand] = {}
        self._in_hand_bytes, self._largest_bytes = 0, _FIRST_ESTIMATE_BYTES
        self._requests_under_way: set[asyncio.Task[None]] = set()
        self._changed = ChangeSignal()
        self._failure: BaseException | None = None
        self._is_stopping = False

    @property
    def in_hand_count(self) -> int:
        """Number of messages in hand."""
        return len(self._in_hand)

    @property
    def breaker_state(self) -> BreakerState:
        """State of the circuit breaker."""
        return self._breaker.state

    def stop_polling(self) -> None:
        """Let :meth:`run` end: nothing new is polled or sent, and what is under way ends or is given up."""
        self._is_stopping = True
        self._changed.send()

    def drop_partitions(self, partitions: Collection[tuple[str, int]]) -> None:
        """Forget the messages of partitions, by topic and number, that belong to another process now.

        Those that are waiting are not sent; of those under way the settlements are not handed on.
        """
        dropped = [held for held in self._in_hand.values() if held.message.position[:2] in partitions]
        if not dropped:
            return
        for held in dropped:
            self._forget(held)
        self._queue.remove_messages(self._is_foreign)
        self._retries.remove_messages(self._is_foreign)
        for held in dropped:
            self._queue.release_key(held)
        self._changed.send()

    async def run(self) -> None:
        """Deliver until :meth:`stop_polling` is called, then drain.

        Raises:
            Exception: that of the source or the sink, if one of them failed; what is not settled is sent again later.
        """
        settling = asyncio.create_task(self._settlements.run())
        working = {asyncio.create_task(self._poll_messages()), asyncio.create_task(self._send_batches())}
        try:
            await self._await_end(working, settling)
            await self._await_requests(settling)
            self._settlements.close()
            await self._await_settlements(settling)
        finally:
            await _cancel_all({settling, *working, *self._requests_under_way})
        if self._failure is not None:
            raise self._failure

    async def _await_end(self, working: set[asyncio.Task[None]], settling: asyncio.Task[None]) -> None:
        """Wait until polling and sending have ended as asked, or one part has failed."""
        while not all(task.done() for task in working):
            waited = {task for task in (*working, settling) if not task.done()}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            for task in (*working, settling):
                self._note_failure(task)

    async def _await_requests(self, settling: asyncio.Task[None]) -> None:
        """Wait for the requests under way, as long as they may take, unless one part has failed."""
        if self._requests_under_way and self._failure is None:
            await asyncio.wait(self._requests_under_way, timeout=self._policy.timeout_s + DRAIN_GRACE_S)
        self._note_failure(settling)

    async def _await_settlements(self, settling: asyncio.Task[None]) -> None:
        """Wait until all settlements are durable, unless one part has failed.

        Raises:
            SettlementError: the sink did not make them durable in time.
        """
        if self._failure is not None:
            return
        await asyncio.wait({settling}, timeout=SETTLE_GRACE_S)
        if not settling.done():
            told = f"settlements were not made durable within {SETTLE_GRACE_S:g} s after the stop"
            raise SettlementError(f"{told}: their messages are sent again by the next process")
        self._note_failure(settling)

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if task.done() and not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
            self.stop_polling()

    async def _poll_messages(self) -> None:
        while not self._is_stopping:
            most = self._count_room()
            if most == 0:
                await self._changed.wait(self._breaker.remaining_s(self._now_s()) or None)
                continue
            messages = await self._source.poll(most)
            for message in messages:
                self._take_message(message)
            if messages:
                self._observer.record_in_hand(len(self._in_hand), self._in_hand_bytes)
                self._changed.send()
            await asyncio.sleep(0)  # a source that always has messages at once must not stop the others

    def _count_room(self) -> int:
        """Count the messages that may be polled now."""
        policy = self._policy
        if self._breaker.state is not BreakerState.CLOSED:
            # Only the probe's own batch: what is not polled needs no retry.
            is_probe_due = self._breaker.remaining_s(self._now_s()) == 0.0 and not self._in_hand
            return policy.batch_max_events if is_probe_due else 0
        left_bytes = policy.max_in_hand_bytes - self._in_hand_bytes
        if left_bytes <= 0:
            return 0
        left = policy.max_in_hand_events - len(self._in_hand)
        return max(min(left, max(left_bytes // self._largest_bytes, 1)), 0)

    def _take_message(self, message: DeliveryMessage) -> None:
        if message.position in self._in_hand:
            return  # its partition went and came back, and its settlement is still to come
        held = MessageInHand(message, self._now_s())
        self._in_hand[message.position] = held
        self._in_hand_bytes += held.held_bytes
        self._largest_bytes = max(self._largest_bytes, held.held_bytes)
        fault = find_fault(message, self._policy.body_format)
        if fault:
            self._hand_on(held, Settlement(message, Ending.REJECTED, self._now_us(), 0, fault))
        else:
            self._queue.add_message(held)

    async def _send_batches(self) -> None:
        while not self._is_stopping:
            now_s = self._now_s()
            self._defer_overdue(now_s)
            wait_s = self._find_wait_s(now_s)
            if wait_s != 0.0:
                await self._changed.wait(wait_s)
                continue
            batch = self._retries.take_due(now_s) or self._queue.take_batch()
            permit = self._breaker.acquire_permit(now_s)
            if permit is None:
                raise RuntimeError(f"a batch was due while the circuit breaker was {self._breaker.state.value}")
            task = asyncio.create_task(self._send_batch(batch, permit))
            self._requests_under_way.add(task)
            task.add_done_callback(self._end_request)
            self._tell_breaker_state()

    def _end_request(self, task: asyncio.Task[None]) -> None:
        self._requests_under_way.discard(task)
        self._note_failure(task)
        self._changed.send()

    def _find_wait_s(self, now_s: float) -> float | None:
        """Return the seconds until something is to be done; None if only a change brings anything."""
        if len(self._requests_under_way) >= self._policy.parallel:
            return None
        due = [one for one in (self._retries.remaining_s(now_s), self._queue.remaining_s(now_s)) if one is not None]
        if not due:
            return None
        breaker_s = self._breaker.remaining_s(now_s)
        waits = [] if breaker_s is None else [max(min(due), breaker_s)]
        overdue_s = self._find_overdue_s(now_s)
        return min([*waits, *overdue_s], default=None)

    def _find_overdue_s(self, now_s: float) -> list[float]:
        """Return the seconds until the first waiting message is deferred, while the breaker grants no permit."""
        if not self._is_deferring(now_s):
            return []
        taken_s = [held.taken_s for held in (*self._queue.list_messages(), *self._retries.list_messages())]
        # Never 0, which would send a batch: what is due now was deferred before.
        return [max(min(taken_s) + self._policy.local_time_limit_s - now_s, 0.001)] if taken_s else []

    def _is_deferring(self, now_s: float) -> bool:
        # When the breaker grants a permit, one batch is its probe, and is waited for.
        return self._policy.order is Order.NONE and self._breaker.remaining_s(now_s) != 0.0

    def _defer_overdue(self, now_s: float) -> None:
        """Defer what has waited too long for the breaker."""
        if not self._is_deferring(now_s):
            return
        limit_s = now_s - self._policy.local_time_limit_s

        def is_overdue(held: MessageInHand) -> bool:
            return held.taken_s <= limit_s

        for held in (*self._queue.remove_messages(is_overdue), *self._retries.remove_messages(is_overdue)):
            held.reason = held.reason or BREAKER_REASON
            self._settle_deferred(held, decide_deferral(self._policy, held.tries))

    async def _send_batch(self, batch: list[MessageInHand], permit: Permit) -> None:
        now_us, started_s = self._now_us(), self._now_s()
        for held in filter(self._is_foreign, batch):
            self._queue.release_key(held)
        batch = [held for held in batch if not self._is_foreign(held)]
        if not batch or not self._breaker.is_valid(permit):
            # Between the permit and the beginning of this task its partition went, or another request failed.
            self._breaker.return_permit(permit, started_s)
            self._retry_batch(batch, started_s, is_halved=False)
            return
        for held in batch:
            held.first_sent_us = held.first_sent_us or now_us
        request = self._requests.build_request([held.message for held in batch], now_us)
        self._observer.record_request(len(batch), len(request.body))
        try:
            answer = await self._receiver.post(request.body, request.headers)
        except BaseException:
            self._observer.record_cancellation()
            raise
        ids = [held.message.message_id for held in batch]
        judged = judge_answer(answer, ids, self._policy.recoverable_statuses, self._now_us())
        self._observer.record_result(len(batch), judged.result, self._now_s() - started_s)
        self._record_in_breaker(permit, judged)
        self._apply_judgement(batch, judged, answer.status if isinstance(answer, Answer) else 0)

    def _record_in_breaker(self, permit: Permit, judged: BatchJudgement) -> None:
        if judged.is_failure:
            wait_s = min(judged.asked_wait_s, self._policy.retry_after_max_s)
            self._breaker.record_failure(permit, self._now_s(), wait_s)
        else:
            self._breaker.record_success(permit)
        self._tell_breaker_state()

    def _tell_breaker_state(self) -> None:
        if self._breaker.state is not self._breaker_state:
            self._breaker_state = self._breaker.state
            self._observer.record_breaker_state(self._breaker_state)
            if self._breaker_state is BreakerState.OPEN:
                waiting = [*self._queue.list_messages(), *self._retries.list_messages()]
                self._tell_wait(waiting, self._breaker.remaining_s(self._now_s()) or 0.0)

    def _apply_judgement(self, batch: list[MessageInHand], judged: BatchJudgement, status: int) -> None:
        if judged.is_split:
            # The request said nothing about its messages, and is no try of them.
            left = [held for held in batch if not self._is_foreign(held)]
            self._retry_batch(left, self._now_s(), is_halved=True)
            return
        failed = []
        for held, one in zip(batch, judged.messages, strict=True):
            held.count_try(one.status or status, one.reason)
            if one.judgement is Judgement.RECOVERABLE:
                failed.append(held)
            else:
                self._settle_judged(held, one)
        if failed:
            self._decide_retries(failed, judged)

    def _settle_judged(self, held: MessageInHand, judged: MessageJudgement) -> None:
        is_delivered = judged.judgement is Judgement.DELIVERED
        ending = Ending.DELIVERED if is_delivered else Ending.REJECTED
        self._settle(held, ending, judged.status, judged.reason, body=judged.body)
        if is_delivered:
            # A rejection first has to be durable: otherwise a restart could deliver it behind the next of its key.
            self._queue.release_key(held)

    def _decide_retries(self, failed: list[MessageInHand], judged: BatchJudgement) -> None:
        now_us, now_s, chance = self._now_us(), self._now_s(), self._chance.random()
        retried, wait_s = [], 0.0
        for held in failed:
            if self._is_foreign(held):
                continue
            age_s = (now_us - held.first_sent_us) / 1e6
            what = FailedTry(held.tries, held.local_tries, now_s - held.taken_s, age_s, judged.asked_wait_s)
            next_try = decide_retry(self._policy, what, chance)
            if next_try.step is NextStep.RETRY:
                retried.append(held)
                wait_s = max(wait_s, next_try.wait_s)
            elif next_try.step is NextStep.DEFER:
                self._settle_deferred(held, next_try)
            else:
                self._settle(held, Ending.REJECTED, held.status, f"{EXPIRED}: {held.reason}")
        if retried:
            self._retry_batch(retried, now_s + wait_s, is_halved=judged.is_suspect)

    def _retry_batch(self, batch: list[MessageInHand], due_s: float, *, is_halved: bool) -> None:
        middle = len(batch) // 2 if is_halved else 0
        for part in (batch[:middle], batch[middle:]):
            if part:
                self._retries.add_batch(part, due_s)
        behind = (one for held in batch for one in self._queue.list_behind(held))
        self._tell_wait([*batch, *behind], due_s - self._now_s())

    def _tell_wait(self, waiting: Sequence[MessageInHand], wait_s: float) -> None:
        """Tell the observer of messages that wait in hand; without order they are deferred before that takes long."""
        if self._policy.order is Order.KEY and waiting and wait_s > 0:
            until_us = self._now_us() + round(wait_s * 1e6)
            self._observer.record_wait([held.build_message() for held in waiting], until_us)

    def _settle_deferred(self, held: MessageInHand, next_try: NextTry) -> None:
        until_us = self._now_us() + round(next_try.wait_s * 1e6)
        self._settle(held, Ending.DEFERRED, held.status, held.reason, until_us=until_us, tier=next_try.tier)

    def _settle(  # noqa: PLR0913 - the fields of a settlement
        self,
        held: MessageInHand,
        ending: Ending,
        status: int,
        reason: str,
        *,
        body: bytes = b"",
        until_us: int = 0,
        tier: int = 0,
    ) -> None:
        if self._is_foreign(held):
            return
        message, now_us = held.build_message(), self._now_us()
        self._hand_on(held, Settlement(message, ending, now_us, status, reason, body, until_us, tier))

    def _hand_on(self, held: MessageInHand, settlement: Settlement) -> None:
        held.settlement = settlement
        self._settlements.add_settlement(settlement)

    def _forget_settled(self, settlements: Sequence[Settlement], durable: Sequence[Settlement]) -> None:
        """Forget messages whose settlements are durable, and those of partitions that went.

        A message that was read again since, as its partition came back, is in hand until it is settled itself.
        """
        are_durable = {one.message.position for one in durable}
        for settlement in settlements:
            held = self._in_hand.get(settlement.message.position)
            if held is None:
                continue  # its partition went while the sink wrote
            if held.settlement is not settlement and held.message.position not in are_durable:
                continue
            self._forget(held)
            self._queue.release_key(held)
        self._changed.send()
        self._observer.record_in_hand(len(self._in_hand), self._in_hand_bytes)

    def _forget(self, held: MessageInHand) -> None:
        del self._in_hand[held.message.position]
        self._in_hand_bytes -= held.held_bytes

    def _is_settling(self, settlement: Settlement) -> bool:
        """Return whether the message of a settlement is in hand: it was neither dropped nor settled meanwhile."""
        return settlement.message.position in self._in_hand

    def _is_foreign(self, held: MessageInHand) -> bool:
        """Return whether a message is not in hand any more."""
        return self._in_hand.get(held.message.position) is not held

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9

    def _now_us(self) -> int:
        return self._clock.wall_ns() // 1_000


async def _cancel_all(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
