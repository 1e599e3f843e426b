"""Engine of a client: what is sent next, and what an answer means for each event. No threads, no I/O but the queue's.

1. One request at a time, events in the order in which they were accepted. A batch is sent when it is full, when its
   first event has waited ``linger_s``, or when a flush waits for it.
2. The gate answers 207 with a status for each event. 201 and 202 settle an event, and so do statuses that are not
   recoverable. The rest of the batch is sent again, with the same ids, before any later event; within a batch an event
   that could not be written is overtaken by those that could.
3. 408, 425, 429, 5xx and no answer are recoverable. The wait before the next request is drawn evenly between 0 and a
   bound that doubles with each failure in a row, from ``backoff_base_s`` up to ``backoff_max_s`` (full jitter, as Marc
   Brooker's "Exponential Backoff and Jitter", AWS 2015, has it); ``Retry-After`` is the least, up to
   ``retry_after_max_s``.
4. 413 halves the batch, and so does a 4xx for all of it: one event may be the reason. A single event is rejected.
5. 2xx other than 207, 1xx and 3xx are no answers of a gate, and 401, 403, 404, 405 and 407 are about the sender or the
   URL, not about an event: nothing is settled by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from hopwatch.client.event_records import EventRecord
from hopwatch.client.outcomes import OutcomeResult, SendOutcome
from hopwatch.client.policy import ClientPolicy
from hopwatch.client.queues import EventQueue
from hopwatch.deliver import answers
from hopwatch.deliver.answers import Answer, BatchJudgement, Judgement, MessageJudgement, NoAnswer
from hopwatch.probes.http.retry_after import parse_retry_after_s

RECOVERABLE_STATUSES: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_CLIENT_ERRORS: Final = range(400, 500)
_OF_THE_SENDER: Final = {
    HTTPStatus.UNAUTHORIZED: "look at the token",
    HTTPStatus.FORBIDDEN: "look at the token and its streams",
    HTTPStatus.NOT_FOUND: "look at the URL and the stream",
    HTTPStatus.METHOD_NOT_ALLOWED: "look at the URL",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "look at the proxy",
}
"""Statuses of a whole request that no event is the reason for, and what to look at."""
_MAX_DOUBLINGS: Final = 32


class SendStep(NamedTuple):
    """Next step: a batch to send, or a wait without one; None waits for the next event."""

    batch: Sequence[EventRecord] = ()
    wait_s: float | None = None


class SettledBatch(NamedTuple):
    """Result of a request: the outcomes of what is settled, and the reason why the rest is sent again."""

    outcomes: list[SendOutcome]
    failure: str


class SendEngine:
    """Engine over one queue; times are seconds of a clock that never goes back."""

    def __init__(self, policy: ClientPolicy, queue: EventQueue) -> None:
        """Begin; what a spool has left is due at once."""
        self._policy, self._queue = policy, queue
        self._in_hand: list[EventRecord] = []
        self._posted = 0
        self._limit = policy.batch_max_events
        self._failures, self._not_before_s = 0, float("-inf")
        self._since_s = float("-inf")
        self._fresh = self._flush_mark = 0
        self.repeated = self.requests = self.failed_requests = 0

    def note_append(self, now_s: float) -> bool:
        """Note that the queue has one event more; return whether the next step may be another one by that."""
        if self._fresh == 0:
            self._since_s = now_s
        before, self._fresh = self._fresh, self._fresh + 1
        return before == 0 or self._is_full()

    def request_flush(self, mark: int) -> None:
        """Let all events up to a mark of the queue be due now."""
        self._flush_mark = max(self._flush_mark, mark)

    def next_step(self, now_s: float) -> SendStep:
        """Return the next step.

        Raises:
            ClientSpoolError: the spool cannot be read.
        """
        if now_s < self._not_before_s:
            return SendStep(wait_s=self._not_before_s - now_s)
        if not self._in_hand:
            wait_s = self._remaining_linger_s(now_s)
            if wait_s is None or wait_s > 0:
                return SendStep(wait_s=wait_s)
            self._in_hand = self._queue.read_first(self._policy.batch_max_events, self._policy.batch_max_bytes)
            # What is left in the queue begins to wait now.
            self._fresh = max(self._queue.waiting_events - len(self._in_hand), 0)
            self._since_s = now_s
            if not self._in_hand:
                return SendStep()
        batch = self._in_hand[: self._limit]
        self._posted = len(batch)
        return SendStep(batch)

    def settle(self, answer: Answer | NoAnswer, now_s: float, now_us: int, chance: float) -> SettledBatch:
        """Judge the answer to the last batch; ``chance`` is drawn evenly from 0 to 1. :meth:`finish` comes next."""
        posted, rest = self._in_hand[: self._posted], self._in_hand[self._posted :]
        self.requests += 1
        judged = answers.judge_answer(answer, [one.id_text for one in posted], RECOVERABLE_STATUSES, now_us)
        if isinstance(answer, Answer) and (reason := _find_reason_to_wait(answer.status)):
            judged = _judge_unsettled(answer, reason, len(posted), now_us)
        if judged.is_split or (isinstance(answer, Answer) and len(posted) > 1 and _is_refused(answer.status)):
            self._limit = max(len(posted) // 2, 1)
            return SettledBatch([], "")
        outcomes, left, failure = list[SendOutcome](), list[EventRecord](), ""
        for record, one in zip(posted, judged.messages, strict=True):
            if one.judgement is Judgement.RECOVERABLE:
                left.append(record)
                failure = failure or one.reason
            else:
                outcomes.append(_build_outcome(record, one))
        self._in_hand = left + rest
        self._back_off(judged, len(left), now_s, chance, has_progress=bool(outcomes))
        return SettledBatch(outcomes, failure)

    def finish(self) -> None:
        """Drop the batch that was taken from the queue if all of it is settled."""
        if not self._in_hand:
            self._limit = self._policy.batch_max_events
            self._queue.drop()

    def delay(self, now_s: float, chance: float) -> None:
        """Wait as after a failure, such as of the spool."""
        self._failures += 1
        self._not_before_s = now_s + chance * self._max_backoff_s()

    def give_up(self) -> list[SendOutcome]:
        """Return an outcome for each event that is still in the queue, and empty it."""
        outcomes = list[SendOutcome]()
        told = "the client was closed before the gate had answered for it"
        left = self._in_hand
        while True:
            outcomes += [SendOutcome(one.id_text, OutcomeResult.UNSENT, 0, told, one.item) for one in left]
            self._queue.drop()
            self._in_hand = []
            left = self._queue.read_first(self._policy.batch_max_events, self._policy.batch_max_bytes)
            if not left:
                return outcomes

    def _is_full(self) -> bool:
        # Marks count the overhead of records too: a little early is no harm.
        waiting_bytes = self._queue.end_mark - self._queue.dropped_mark
        return self._fresh >= self._policy.batch_max_events or waiting_bytes >= self._policy.batch_max_bytes

    def _remaining_linger_s(self, now_s: float) -> float | None:
        """Return the time until a batch is due; None if there are no events."""
        queue = self._queue
        if queue.dropped_mark >= queue.end_mark:
            return None
        is_due = queue.dropped_mark < self._flush_mark or self._is_full() or not self._fresh
        return 0.0 if is_due else max(self._since_s + self._policy.linger_s - now_s, 0.0)

    def _back_off(self, judged: BatchJudgement, left: int, now_s: float, chance: float, *, has_progress: bool) -> None:
        if not left:
            self._failures, self._not_before_s = 0, float("-inf")
            return
        self.failed_requests += 1
        self.repeated += left
        self._failures = 1 if has_progress else self._failures + 1
        asked_s = min(max(judged.asked_wait_s, 0.0), self._policy.retry_after_max_s)
        self._not_before_s = now_s + max(chance * self._max_backoff_s(), asked_s)

    def _max_backoff_s(self) -> float:
        doublings = min(self._failures - 1, _MAX_DOUBLINGS)
        return min(self._policy.backoff_base_s * 2.0**doublings, self._policy.backoff_max_s)


def _find_reason_to_wait(status: int) -> str:
    """Return why an answer for the whole request settles no event; empty if it may."""
    said = answers.describe_status(status)
    if status in _OF_THE_SENDER:
        return f"{said}: {_OF_THE_SENDER[HTTPStatus(status)]}"
    is_of_a_gate = status == HTTPStatus.MULTI_STATUS or status >= HTTPStatus.BAD_REQUEST
    return "" if is_of_a_gate else f"{said} is no answer of a gate, which is 207: look at the URL"


def _is_refused(status: int) -> bool:
    """Return whether all events of a request are refused by one status."""
    return status in _CLIENT_ERRORS and status not in RECOVERABLE_STATUSES


def _judge_unsettled(answer: Answer, reason: str, count: int, now_us: int) -> BatchJudgement:
    judged = MessageJudgement(Judgement.RECOVERABLE, answer.status, reason)
    asked_wait_s = parse_retry_after_s(answer.retry_after, now_us) or 0.0
    return BatchJudgement(answers.AttemptResult.FAILED, (judged,) * count, asked_wait_s=asked_wait_s, is_failure=True)


def _build_outcome(record: EventRecord, judged: MessageJudgement) -> SendOutcome:
    if judged.judgement is Judgement.REJECTED:
        result = OutcomeResult.REJECTED
    elif judged.status == HTTPStatus.ACCEPTED:
        result = OutcomeResult.HELD
    else:
        result = OutcomeResult.ENTERED
    return SendOutcome(record.id_text, result, judged.status, judged.reason, record.item, judged.body)
