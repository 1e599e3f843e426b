"""Client of the gate for an event loop: the same client and thread, which nothing in the loop waits for."""

from __future__ import annotations

import asyncio
import os
import ssl
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self
from uuid import UUID

from hopwatch.client.errors import QueueFullError
from hopwatch.client.event_records import EventRecord
from hopwatch.client.gate_client import CLOSE_S, GateClient, OutcomeCallback
from hopwatch.client.outcomes import ClientCounts, SendOutcome
from hopwatch.client.policy import ClientPolicy


class AsyncGateClient:
    """Sender of events to one stream of a gate, as :class:`GateClient`; made and used in one event loop.

    ``on_outcome`` is called in the loop.
    """

    def __init__(  # noqa: PLR0913 - those of GateClient
        self,
        url: str,
        stream: str,
        *,
        token: str = "",
        spool: str | os.PathLike[str] | None = None,
        on_outcome: OutcomeCallback | None = None,
        policy: ClientPolicy | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take the gate's URL, such as ``http://gate:8081``, and start the thread.

        Raises:
            ValueError: an argument is wrong.
            ClientSpoolError: the spool cannot be used.
            RuntimeError: no event loop runs.
        """
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()

        def report(outcome: SendOutcome) -> None:
            if on_outcome is not None:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(on_outcome, outcome)

        self._client = GateClient(
            url, stream, token=token, spool=spool, on_outcome=report if on_outcome else None, policy=policy, tls=tls
        )
        self._client.add_listener(self._note_room)

    async def send(
        self,
        data: object,
        *,
        event_id: UUID | str | None = None,
        event_time: datetime | int | None = None,
        wait_s: float = 0.0,
    ) -> str:
        """Accept an event, and return its id; with a full queue wait for room, up to ``wait_s``.

        Raises:
            ValueError: as of :meth:`GateClient.send`, and so are the errors of the client.
        """
        record = self._client.build_record(data, event_id, event_time)
        await self._accept(record, wait_s)
        return record.id_text

    async def send_and_wait(
        self,
        data: object,
        *,
        event_id: UUID | str | None = None,
        event_time: datetime | int | None = None,
        timeout_s: float = 30.0,
    ) -> SendOutcome:
        """Send an event, and return its outcome.

        Raises:
            TimeoutError: there is none yet; the event is accepted, and sent all the same.
            ValueError: as of :meth:`GateClient.send`, and so are the errors of the client.
        """
        record = self._client.build_record(data, event_id, event_time)
        until_s = self._loop.time() + timeout_s
        future: Future[SendOutcome] = Future()
        await self._accept(record, timeout_s, future)
        try:
            async with asyncio.timeout_at(until_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise TimeoutError(f"the gate has not answered for {record.id_text} within {timeout_s:g} s") from None
        finally:
            self._client.forget(record, future)

    async def flush(self, timeout_s: float = 30.0) -> bool:
        """Send all events that were accepted so far without delay; return whether all are settled within this time."""
        return await asyncio.to_thread(self._client.flush, timeout_s)

    async def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Flush within this time, and end; return whether all events are settled, as :meth:`GateClient.close`."""
        return await asyncio.to_thread(self._client.close, timeout_s)

    def counts(self) -> ClientCounts:
        """Return the counts up to now."""
        return self._client.counts()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    async def _accept(self, record: EventRecord, wait_s: float, future: Future[SendOutcome] | None = None) -> None:
        until_s = self._loop.time() + wait_s
        while True:
            self._room.clear()
            try:
                self._client.accept(record, future=future)
            except QueueFullError:
                left_s = until_s - self._loop.time()
                if left_s <= 0:
                    raise
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._room.wait(), left_s)
            else:
                return

    def _note_room(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._room.set)
