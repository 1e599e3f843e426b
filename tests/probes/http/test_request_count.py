"""Tests of the account of requests."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import pytest

from hopwatch.probes.http.limits import Receive, Scope, Send
from hopwatch.probes.http.request_count import RequestCountMiddleware
from hopwatch.probes.metrics.account import Account, AccountSnapshot, DropReason, EventOutcome


def counted(kind: str, *messages: dict[str, Any], fault: Exception | None = None) -> AccountSnapshot:
    """Return the account of one request to an app that sends these messages."""
    account, sent = Account(), []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        assert account.snapshot().in_flight == (kind != "lifespan")
        for message in messages:
            await send(message)
        if fault is not None:
            raise fault

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("nothing is read")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    with suppress(ValueError):
        asyncio.run(RequestCountMiddleware(app, account)({"type": kind}, receive, send))
    assert sent == list(messages)
    parts = account.snapshot()
    assert parts.in_flight == 0
    return parts


@pytest.mark.parametrize(
    ("kind", "messages", "code"),
    [
        ("http", [{"type": "http.response.start", "status": 201}, {"type": "http.response.body"}], "201"),
        ("http", [{"type": "http.response.start", "status": 401}], "401"),
        ("websocket", [{"type": "websocket.accept"}, {"type": "websocket.close"}], "101"),
        ("websocket", [{"type": "websocket.close"}], "403"),
        ("websocket", [{"type": "websocket.http.response.start", "status": 404}], "404"),
    ],
)
def test_a_request_counts_once_by_the_status_of_its_answer(
    kind: str, messages: list[dict[str, Any]], code: str
) -> None:
    """Also one that fails after the answer has begun."""
    assert counted(kind, *messages).settled == {(EventOutcome.ANSWERED, code): 1}
    assert counted(kind, *messages, fault=ValueError("odd")).settled == {(EventOutcome.ANSWERED, code): 1}


def test_a_request_without_an_answer_is_dropped() -> None:
    """Its client hung up, or the app failed."""
    assert counted("http").settled == {(EventOutcome.DROPPED, DropReason.NO_ANSWER): 1}
    assert counted("http", fault=ValueError("odd")).settled == {(EventOutcome.DROPPED, DropReason.NO_ANSWER): 1}


def test_the_start_and_the_end_of_an_app_are_no_requests() -> None:
    """Nothing is counted."""
    assert counted("lifespan", {"type": "lifespan.startup.complete"}).received == 0
