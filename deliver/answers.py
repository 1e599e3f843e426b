"""Answers of receivers, judged for each message: delivered, recoverable or rejected. Pure.

===========================  ======================================================================================
answer                       judgement
===========================  ======================================================================================
2xx but 207                  all are delivered
207                          each by its own status, as the gate answers a batch: ``{"events": [{"id", "status"}]}``;
                             a message without a status that can be read is recoverable, as nobody knows its end
413                          the batch is split in two and sent again at once; a single message is rejected
5xx, 429 and what the policy recoverable; ``Retry-After`` is read, as seconds or as a date
names, no answer
other 4xx, 3xx, 1xx          rejected, and never sent again; redirects are not followed
===========================  ======================================================================================
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from hopwatch.probes.http.retry_after import parse_retry_after_s

MAX_KEPT_BYTES: Final = 1_024
"""Bytes of a rejecting answer that are kept with a message."""
_SUCCESS: Final = 2
_REDIRECT: Final = 3
_SERVER_ERROR: Final = 5
_STATUSES: Final = range(100, 600)
_NOT_NOW: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Statuses about the receiver's time, not about a message."""


class AttemptResult(Enum):
    """Results of a request, as metrics count them."""

    ACCEPTED = "accepted"
    PARTIAL = "partial"
    REJECTED = "rejected"
    TOO_LARGE = "too-large"
    RATE_LIMITED = "rate-limited"
    FAILED = "failed"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    """The connection ended before the answer."""
    UNREACHABLE = "unreachable"


class Answer(NamedTuple):
    """Answer of a receiver: its status, the beginning of its body, and its header ``Retry-After``."""

    status: int
    body: bytes = b""
    retry_after: str = ""


class NoAnswer(NamedTuple):
    """Failure to get an answer: ``TIMEOUT``, ``BROKEN`` or ``UNREACHABLE``; ``reason`` is one line without secrets."""

    result: AttemptResult
    reason: str


class Judgement(Enum):
    """Judgements of a message after a request."""

    DELIVERED = "delivered"
    RECOVERABLE = "recoverable"
    REJECTED = "rejected"


class MessageJudgement(NamedTuple):
    """Judgement of one message; ``body`` is the beginning of the answer, for a rejected one."""

    judgement: Judgement
    status: int = 0
    reason: str = ""
    body: bytes = b""


class BatchJudgement(NamedTuple):
    """Judgements of all messages of a request, in their order.

    With ``is_split`` there are none: the batch is sent again at once, in two halves. With ``is_suspect`` one message
    may have made the request fail for all: what is tried again is tried in halves. ``asked_wait_s`` is the wait that
    the receiver asks for; ``is_failure`` is true if it took no part of the batch and may take it later.
    """

    result: AttemptResult
    messages: tuple[MessageJudgement, ...] = ()
    is_split: bool = False
    is_suspect: bool = False
    asked_wait_s: float = 0.0
    is_failure: bool = False


def judge_answer(
    answer: Answer | NoAnswer, message_ids: Sequence[str], recoverable_statuses: Collection[int], now_us: int
) -> BatchJudgement:
    """Judge the answer to a request that carried the messages with these ids."""
    count = len(message_ids)
    if isinstance(answer, NoAnswer):
        judged = MessageJudgement(Judgement.RECOVERABLE, 0, answer.reason)
        is_suspect = answer.result is not AttemptResult.UNREACHABLE
        return BatchJudgement(answer.result, (judged,) * count, is_suspect=is_suspect, is_failure=True)
    status = answer.status
    if status == HTTPStatus.MULTI_STATUS:
        return _judge_multi_status(answer, message_ids, recoverable_statuses, now_us)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and count > 1:
        return BatchJudgement(AttemptResult.TOO_LARGE, is_split=True)
    judged = _judge_status(status, recoverable_statuses, answer.body[:MAX_KEPT_BYTES])
    is_failure = judged.judgement is Judgement.RECOVERABLE
    asked_wait_s = parse_retry_after_s(answer.retry_after, now_us) or 0.0 if is_failure else 0.0
    is_suspect = is_failure and status not in _NOT_NOW
    return BatchJudgement(
        _name_result(judged),
        (judged,) * count,
        is_suspect=is_suspect,
        asked_wait_s=asked_wait_s,
        is_failure=is_failure,
    )


def describe_status(status: int) -> str:
    """Return a status in words, such as ``HTTP 404 Not Found``."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _judge_status(status: int, recoverable_statuses: Collection[int], body: bytes) -> MessageJudgement:
    if status // 100 == _SUCCESS:
        return MessageJudgement(Judgement.DELIVERED, status)
    reason = describe_status(status)
    if status // 100 == _SERVER_ERROR or status in recoverable_statuses:
        return MessageJudgement(Judgement.RECOVERABLE, status, reason)
    if status // 100 == _REDIRECT:
        reason += ": redirects are not followed"
    return MessageJudgement(Judgement.REJECTED, status, reason, body)


def _name_result(judged: MessageJudgement) -> AttemptResult:
    if judged.judgement is Judgement.DELIVERED:
        return AttemptResult.ACCEPTED
    if judged.judgement is Judgement.REJECTED:
        return AttemptResult.REJECTED
    if judged.status == HTTPStatus.TOO_MANY_REQUESTS:
        return AttemptResult.RATE_LIMITED
    return AttemptResult.FAILED


def _judge_multi_status(
    answer: Answer, message_ids: Sequence[str], recoverable_statuses: Collection[int], now_us: int
) -> BatchJudgement:
    items = _match_items(_parse_items(answer.body), message_ids)
    judged = tuple(_judge_item(item, recoverable_statuses) for item in items)
    is_failure = all(one.judgement is Judgement.RECOVERABLE for one in judged)
    asked_wait_s = 0.0
    if any(one.judgement is Judgement.RECOVERABLE for one in judged):
        asked_wait_s = parse_retry_after_s(answer.retry_after, now_us) or 0.0
    is_accepted = all(one.judgement is Judgement.DELIVERED for one in judged)
    result = AttemptResult.ACCEPTED if is_accepted else AttemptResult.FAILED if is_failure else AttemptResult.PARTIAL
    # Of a batch whose answer cannot be read at all a part may have one that can: a shorter one, for instance.
    is_suspect = is_failure and all(one.status == HTTPStatus.MULTI_STATUS for one in judged)
    return BatchJudgement(result, judged, is_suspect=is_suspect, asked_wait_s=asked_wait_s, is_failure=is_failure)


def _parse_items(body: bytes) -> list[dict[str, Any]]:
    """Return the items of a 207 that have an id and a status; an empty list for what is no such answer."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return []
    listed = said.get("events") if isinstance(said, dict) else None
    if not isinstance(listed, list):
        return []
    return [item for item in listed if isinstance(item, dict) and isinstance(item.get("id"), str)]


def _match_items(items: list[dict[str, Any]], message_ids: Sequence[str]) -> list[dict[str, Any] | None]:
    """Return the item of each message: by place if all are there in order, otherwise by id.

    Receivers may write UUIDs in another case. Where ids of the request differ in nothing else, an item has to have the
    very id of its message.
    """
    spellings = Counter(map(str.casefold, set(message_ids)))

    def fold(said: str) -> str:
        return said if spellings[said.casefold()] > 1 else said.casefold()

    wanted = [fold(one) for one in message_ids]
    if [fold(item["id"]) for item in items] == wanted:
        return list(items)
    by_id: dict[str, dict[str, Any] | None] = {}
    for item in items:
        known = fold(item["id"])
        # Two statuses under one id: nobody knows whose is whose.
        is_unclear = known in by_id and (by_id[known] or {}).get("status") != item.get("status")
        by_id[known] = None if is_unclear else item
    return [by_id.get(one) for one in wanted]


def _judge_item(item: dict[str, Any] | None, recoverable_statuses: Collection[int]) -> MessageJudgement:
    status = None if item is None else item.get("status")
    if not isinstance(status, int) or isinstance(status, bool) or status not in _STATUSES:
        reason = "HTTP 207 without a status for the message"
        return MessageJudgement(Judgement.RECOVERABLE, HTTPStatus.MULTI_STATUS, reason)
    return _judge_status(status, recoverable_statuses, _dump_beginning(item))


def _dump_beginning(item: dict[str, Any] | None) -> bytes:
    try:
        said = json.dumps(item, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:  # nested more deeply than it writes, though it reads that
        return b""
    return said.encode("utf-8", "replace")[:MAX_KEPT_BYTES]
