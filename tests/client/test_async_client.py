"""Tests of the client for an event loop."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path

import pytest

from hopwatch.client import AsyncGateClient, ClientPolicy, OutcomeResult, QueueFullError, SendOutcome
from servers.process import free_ports
from tests.support import http_receiver
from tests.support.client_parts import PATIENCE_S, QUICK
from tests.support.http_receiver import Behaviour, Receiver, receiving


def takes_all(receiver: list[Receiver]) -> Behaviour:
    """Answer as a gate that takes each event of the last request."""

    def behave(sock: socket.socket, over: threading.Event) -> None:
        events = [{"id": event["id"], "status": 201} for event in json.loads(receiver[0].requests[-1].body)]
        http_receiver.answers(207, json.dumps({"events": events}).encode(), Connection="close")(sock, over)

    return behave


async def send_until_full(client: AsyncGateClient) -> None:
    """Send events until there is no room."""
    while True:
        await client.send("x" * 100_000)


def test_events_are_sent_from_a_loop(tmp_path: Path) -> None:
    """Events enter, their outcomes are told in the loop, and the spool is empty in the end."""
    told = list[tuple[SendOutcome, object]]()
    receivers = list[Receiver]()

    async def send(url: str) -> list[str]:
        def note(outcome: SendOutcome) -> None:
            told.append((outcome, asyncio.get_running_loop()))

        async with AsyncGateClient(url, "orders", spool=tmp_path, on_outcome=note, policy=QUICK) as client:
            sent = [await client.send(number) for number in range(5)]
            assert await client.flush(PATIENCE_S)
            outcome = await client.send_and_wait(5, timeout_s=PATIENCE_S)
            assert outcome.result is OutcomeResult.ENTERED
            assert client.counts().entered == 6
            await asyncio.sleep(0)
            return [*sent, outcome.event_id]

    with receiving(takes_all(receivers)) as receiver:
        receivers.append(receiver)
        sent = asyncio.run(send(receiver.url()))
    assert [outcome.event_id for outcome, _ in told] == sent
    assert len({loop for _, loop in told}) == 1
    assert list((tmp_path / "orders").iterdir()) == []


def test_a_full_queue_makes_the_loop_wait_for_nothing() -> None:
    """An event waits for room as long as it may, then it is refused; a cancelled wait leaves nothing behind."""
    (port,) = free_ports(1)
    policy = ClientPolicy(max_waiting_bytes=1024 * 1024)

    async def fill() -> None:
        client = AsyncGateClient(f"http://127.0.0.1:{port}", "orders", policy=policy)
        with pytest.raises(QueueFullError):
            await send_until_full(client)
        with pytest.raises(QueueFullError):
            await client.send("x" * 100_000, wait_s=0.2)
        with pytest.raises(TimeoutError, match=r"the gate has not answered for [0-9a-f-]{36} within 0.05 s"):
            await client.send_and_wait(1, timeout_s=0.05)
        waiting = asyncio.create_task(client.send_and_wait(1))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert client._client._waiting == {}
        assert not await client.close(0.05)

    asyncio.run(fill())


def test_room_wakes_an_event_that_waits() -> None:
    """An event that waits for room is accepted once the gate has taken others."""
    receivers = list[Receiver]()

    async def send(url: str) -> None:
        async with AsyncGateClient(url, "orders", policy=ClientPolicy(max_waiting_bytes=1024 * 1024)) as client:
            for _ in range(30):
                await client.send("x" * 100_000, wait_s=PATIENCE_S)
            assert await client.flush(PATIENCE_S)
            assert client.counts().entered == 30

    with receiving(takes_all(receivers)) as receiver:
        receivers.append(receiver)
        asyncio.run(send(receiver.url()))
