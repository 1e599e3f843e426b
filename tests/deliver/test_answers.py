"""Tests of the judgement of answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver import answers
from hopwatch.deliver.answers import Answer, AttemptResult, BatchJudgement, Judgement, MessageJudgement, NoAnswer

NOW_US = 1_700_000_000_000_000
IDS = ("a", "b", "c")
D, R, X = Judgement.DELIVERED, Judgement.RECOVERABLE, Judgement.REJECTED


def judge(answer: Answer | NoAnswer, ids: Sequence[str] = IDS) -> BatchJudgement:
    """Judge an answer by the default statuses."""
    return answers.judge_answer(answer, ids, {429}, NOW_US)


def judge_items(*items: object) -> list[Judgement]:
    """Return the judgements of a 207 with these items."""
    return [one.judgement for one in judge(Answer(207, json.dumps({"events": items}).encode())).messages]


@pytest.mark.parametrize(
    ("status", "judgement", "result"),
    [
        (200, D, AttemptResult.ACCEPTED),
        (201, D, AttemptResult.ACCEPTED),
        (202, D, AttemptResult.ACCEPTED),
        (204, D, AttemptResult.ACCEPTED),
        (101, X, AttemptResult.REJECTED),
        (301, X, AttemptResult.REJECTED),
        (304, X, AttemptResult.REJECTED),
        (400, X, AttemptResult.REJECTED),
        (401, X, AttemptResult.REJECTED),
        (404, X, AttemptResult.REJECTED),
        (408, X, AttemptResult.REJECTED),
        (410, X, AttemptResult.REJECTED),
        (422, X, AttemptResult.REJECTED),
        (429, R, AttemptResult.RATE_LIMITED),
        (500, R, AttemptResult.FAILED),
        (503, R, AttemptResult.FAILED),
        (599, R, AttemptResult.FAILED),
    ],
)
def test_a_status_judges_all_messages(status: int, judgement: Judgement, result: AttemptResult) -> None:
    """2xx is delivered, 5xx and 429 may pass, everything else is rejected."""
    judged = judge(Answer(status, b"why"))
    assert [one.judgement for one in judged.messages] == [judgement] * 3
    assert {one.status for one in judged.messages} == {status}
    assert (judged.result, judged.is_failure) == (result, judgement is R)
    assert {one.body for one in judged.messages} == {b"why" if judgement is X else b""}


@pytest.mark.parametrize(
    ("result", "is_suspect"),
    [(AttemptResult.TIMEOUT, True), (AttemptResult.BROKEN, True), (AttemptResult.UNREACHABLE, False)],
)
def test_no_answer_may_pass(result: AttemptResult, is_suspect: bool) -> None:  # noqa: FBT001
    """A message can be the cause of a timeout, or of a connection that breaks, and of no refused one."""
    judged = judge(NoAnswer(result, "why"))
    assert judged == BatchJudgement(
        result, (MessageJudgement(R, 0, "why"),) * 3, is_suspect=is_suspect, is_failure=True
    )


@pytest.mark.parametrize(("status", "is_suspect"), [(500, True), (502, True), (503, False), (429, False), (404, False)])
def test_a_message_may_be_the_cause_of_a_failure(status: int, is_suspect: bool) -> None:  # noqa: FBT001
    """503 and 429 are about the receiver's time, and rejected messages are not tried again at all."""
    assert judge(Answer(status)).is_suspect is is_suspect


def test_413_splits_a_batch_and_rejects_one_message() -> None:
    """Only a single message can be too large itself."""
    assert judge(Answer(413)) == BatchJudgement(AttemptResult.TOO_LARGE, is_split=True)
    assert judge(Answer(413), ["a"]).messages[0].judgement is X


def test_a_kept_body_is_short() -> None:
    """1 KiB of it."""
    assert judge(Answer(400, b"x" * 9_999)).messages[0].body == b"x" * 1_024


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (format_datetime(datetime.fromtimestamp(NOW_US / 1e6 + 90, UTC), usegmt=True), 90.0),
        (format_datetime(datetime.fromtimestamp(NOW_US / 1e6 - 90, UTC), usegmt=True), 0.0),
        ("-1", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("9" * 99, 999_999_999.0),
    ],
)
def test_retry_after_is_read(said: str, seconds: float) -> None:
    """Seconds or a date; what is neither asks for nothing."""
    assert judge(Answer(503, b"", said)).asked_wait_s == seconds
    assert judge(Answer(207, b"{}", said)).asked_wait_s == seconds
    assert judge(Answer(404, b"", said)).asked_wait_s == 0.0


def test_a_multi_status_judges_each() -> None:
    """Statuses are taken by id, in whatever order they come, upper or lower case."""
    items = [{"id": "C", "status": 503}, {"id": "a", "status": 201}, {"id": "B", "status": 409}]
    assert judge_items(*items) == [D, X, R]
    judged = judge(Answer(207, json.dumps({"events": items}).encode()))
    assert (judged.result, judged.is_failure) == (AttemptResult.PARTIAL, False)
    assert json.loads(judged.messages[1].body) == {"id": "B", "status": 409}


def test_messages_with_one_id_are_told_apart_by_their_places() -> None:
    """Statuses under one id count by their places where all are answered in order, and else leave it open."""
    body = json.dumps({"events": [{"id": "a", "status": 201}, {"id": "a", "status": 422}]}).encode()
    assert [one.judgement for one in judge(Answer(207, body), ["a", "a"]).messages] == [D, X]
    assert [one.judgement for one in judge(Answer(207, body), ["a", "b"]).messages] == [R, R]


@pytest.mark.parametrize(
    ("items", "judgements"),
    [
        ([("a", 404), ("b", 200)], [R, X, D]),
        ([("a", 200)], [R, D, R]),
        ([("a", 404), ("A", 200), ("B", 200)], [D, X, D]),
        ([("A", 200), ("a", 404), ("B", 200)], [D, X, D]),
    ],
)
def test_ids_that_differ_in_their_case_alone_are_not_mixed_up(
    items: list[tuple[str, int]], judgements: list[Judgement]
) -> None:
    """The status of one is not that of the other, about which the receiver may have said nothing."""
    body = json.dumps({"events": [{"id": one, "status": status} for one, status in items]}).encode()
    assert [one.judgement for one in judge(Answer(207, body), ["A", "a", "b"]).messages] == judgements


def test_a_batch_whose_answer_cannot_be_read_is_tried_again_in_halves() -> None:
    """An answer may be longer than is read of it; where the receiver says that it failed, a half would fail, too."""
    assert judge(Answer(207, b'{"events": [{"id": "a", "sta')).is_suspect
    assert not judge(Answer(207, b'{"events": [{"id": "a", "status": 503}]}')).is_suspect


def test_a_multi_status_of_failures_is_a_failure() -> None:
    """A gate whose transport is away answers so."""
    judged = judge(Answer(207, json.dumps({"events": [{"id": one, "status": 503} for one in IDS]}).encode()))
    assert (judged.result, judged.is_failure) == (AttemptResult.FAILED, True)


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a"},
        {"id": "a", "status": "201"},
        {"id": "a", "status": True},
        {"id": "a", "status": 99},
        {"id": "a", "status": 600},
        {"id": "a", "status": 201.0},
        {"id": 1, "status": 201},
        {"status": 201},
        ["a", 201],
        None,
    ],
)
def test_an_item_that_cannot_be_read_leaves_it_open(item: object) -> None:
    """Nobody knows the end of its message, which is sent again; the others have theirs."""
    assert judge_items(item, {"id": "b", "status": 200}, {"id": "c", "status": 400}) == [R, D, X]


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_rubbish_delivers_and_rejects_nothing(body: bytes) -> None:
    """A 207 without a status for a message leaves it to be tried again, with that reason."""
    judged = judge(Answer(207, body))
    assert [one.judgement for one in judged.messages] == [R, R, R]
    assert {one.reason for one in judged.messages} == {"HTTP 207 without a status for the message"}


def test_a_deep_answer_is_no_fault_of_ours() -> None:
    """The beginning of a deep item is kept, one that is too deep is none, what cannot be written has no body."""
    deep = b'{"events":[{"id":"a","status":400,"x":' + b"[" * 500 + b"]" * 500 + b"}]}"
    (judged,) = judge(Answer(207, deep), ["a"]).messages
    assert judged[:3] == (X, 400, "HTTP 400 Bad Request")
    assert judged.body == deep[len(b'{"events":[') :][: answers.MAX_KEPT_BYTES]
    item: dict[str, Any] = {"status": 400}
    for _ in range(100_000):
        item = {"x": item}
    assert answers._dump_beginning(item) == b""
    too_deep = b"[" * 100_000
    assert judge(Answer(207, too_deep), ["a"]).messages[0].judgement is R
