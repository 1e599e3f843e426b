"""Client of the gate for threads: ``send`` takes events, one thread of its own sends them."""

from __future__ import annotations

import atexit
import logging
import os
import random
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from hopwatch.client import event_records
from hopwatch.client.engine import SendEngine
from hopwatch.client.errors import ClientClosedError, ClientSpoolError, QueueFullError
from hopwatch.client.event_records import EventRecord
from hopwatch.client.gate_connection import GateConnection, Transport
from hopwatch.client.outcomes import ClientCounts, OutcomeResult, SendOutcome
from hopwatch.client.policy import ClientPolicy
from hopwatch.client.queues import EventQueue, MemoryQueue
from hopwatch.client.spool import SpoolQueue
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.once_per_cause import OncePerCause

CLOSE_S: Final = 5.0
"""Time that closing takes at most by default, and at the end of the process."""
SYNC_S: Final = 1.0
"""Time between two syncs of a spool that has events."""
ABORT_S: Final = 1.0
"""Time in which the thread ends once its request is broken."""
OutcomeCallback = Callable[[SendOutcome], object]
_log = logging.getLogger("hopwatch.client")


class GateClient:
    """Sender of events to one stream of a gate; thread-safe.

    An event that ``send`` has accepted is sent, with the same id, until the gate has taken it (*entered*, *held*) or
    refuses it (*rejected*). ``on_outcome`` is called with each :class:`SendOutcome`, by the client's thread: it has to
    be quick, and what it raises is logged. With ``spool``, a folder, events wait on disk, within
    ``policy.max_waiting_bytes``: they survive the end and a kill of the process, and the next client with the same
    folder and stream sends them. Without it they wait in memory, and those that are left when the client is closed get
    the outcome *unsent*.
    """

    def __init__(  # noqa: PLR0913 - what a sender can be told, each by its name
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
        """
        policy = policy or ClientPolicy()
        transport = GateConnection(url, stream, token, policy.timeout_s, tls)
        bound = policy.max_waiting_bytes
        queue: EventQueue = MemoryQueue(bound) if spool is None else SpoolQueue(Path(spool), stream, bound)
        self._start(policy, queue, transport, SystemClock(), on_outcome)

    def _start(
        self,
        policy: ClientPolicy,
        queue: EventQueue,
        transport: Transport,
        clock: Clock,
        on_outcome: OutcomeCallback | None,
    ) -> None:
        self._queue, self._transport, self._clock = queue, transport, clock
        self._engine = SendEngine(policy, queue)
        self._on_outcome, self._listeners = on_outcome, set[Callable[[], object]]()
        self._lock = threading.Lock()
        self._work, self._settled = threading.Condition(self._lock), threading.Condition(self._lock)
        self._waiting: dict[str, list[Future[SendOutcome]]] = {}
        self._accepted, self._results = 0, dict.fromkeys(OutcomeResult, 0)
        self._last_failure = ""
        self._is_closed = self._is_stopped = self._has_ended = False
        self._synced_s = self._now_s()
        self._outages, self._spool_faults = OncePerCause(), OncePerCause()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="hopwatch-client", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def send(
        self,
        data: object,
        *,
        event_id: UUID | str | None = None,
        event_time: datetime | int | None = None,
        wait_s: float = 0.0,
    ) -> str:
        """Accept an event, and return its id; with a full queue wait for room, up to ``wait_s``.

        ``data`` is the event as JSON has it. Without ``event_id`` it gets a UUID of version 7; without ``event_time``
        (a datetime with a zone, or µs since 1970) the time of its id, or now.

        Raises:
            ValueError: the data is no JSON or too large, or the id or the time is none.
            QueueFullError: there is no room; the event is not accepted.
            ClientSpoolError: the spool cannot be written; the event is not accepted.
            ClientClosedError: the client is closed, or belongs to the parent of this process.
        """
        record = self.build_record(data, event_id, event_time)
        self.accept(record, wait_s)
        return record.id_text

    def send_and_wait(
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
            ValueError: as of :meth:`send`, and so are the errors of the client.
        """
        until_s = self._now_s() + timeout_s
        record = self.build_record(data, event_id, event_time)
        future: Future[SendOutcome] = Future()
        self.accept(record, timeout_s, future)
        try:
            return future.result(max(until_s - self._now_s(), 0.0))
        except TimeoutError:
            raise TimeoutError(f"the gate has not answered for {record.id_text} within {timeout_s:g} s") from None
        finally:
            self.forget(record, future)

    def flush(self, timeout_s: float = 30.0) -> bool:
        """Send all events that were accepted so far without delay; return whether all are settled within this time.

        Raises:
            ClientClosedError: the client belongs to the parent of this process.
        """
        self._check_process()
        with self._lock:
            mark = self._queue.end_mark
            self._engine.request_flush(mark)
            self._work.notify()
            self._settled.wait_for(lambda: self._is_settled_to(mark) or self._has_ended, timeout_s)
            return self._is_settled_to(mark)

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Flush within this time, and end; return whether all events are settled.

        What is left stays in the spool, or is *unsent*. In the child of a fork it does nothing.
        """
        if self._process != os.getpid():
            return False
        with self._lock:
            self._is_closed = True
            self._settled.notify_all()
        is_own_thread = threading.current_thread() is self._thread
        if not is_own_thread:
            self.flush(timeout_s)
        with self._lock:
            self._is_stopped = True
            self._work.notify()
        self._transport.abort()
        atexit.unregister(self.close)
        if not is_own_thread:
            self._thread.join(ABORT_S)
        return self._is_settled_to(self._queue.end_mark) and not self._results[OutcomeResult.UNSENT]

    def add_listener(self, listener: Callable[[], object]) -> None:
        """Call a function after each request, by the client's thread: there may be room now."""
        with self._lock:
            self._listeners.add(listener)

    def remove_listener(self, listener: Callable[[], object]) -> None:
        """Call it no more."""
        with self._lock:
            self._listeners.discard(listener)

    def accept(self, record: EventRecord, wait_s: float = 0.0, future: Future[SendOutcome] | None = None) -> None:
        """Accept a record, as :meth:`send` does; its outcome is the result of ``future``.

        Raises:
            ClientError: it is not accepted.
        """
        self._check_process()
        until_s = self._now_s() + wait_s if wait_s > 0 else float("-inf")
        with self._lock:
            while True:
                if self._is_closed:
                    raise ClientClosedError("the client is closed: it takes no events any more")
                try:
                    self._queue.append(record)
                except QueueFullError:
                    left_s = until_s - self._now_s()
                    if left_s <= 0:
                        raise
                    self._settled.wait(left_s)
                else:
                    break
            self._accepted += 1
            if future is not None:
                self._waiting.setdefault(record.id_text, []).append(future)
            if self._engine.note_append(self._now_s()):
                self._work.notify()

    def forget(self, record: EventRecord, future: Future[SendOutcome]) -> None:
        """Give up a future of :meth:`accept`; its event is sent all the same."""
        with self._lock:
            if future in (futures := self._waiting.get(record.id_text, [])):
                futures.remove(future)
                if not futures:
                    del self._waiting[record.id_text]

    def build_record(self, data: object, event_id: UUID | str | None, event_time: datetime | int | None) -> EventRecord:
        """Return the record of an event that is sent now.

        Raises:
            ValueError: as of :meth:`send`.
        """
        return event_records.build_record(data, event_id, event_time, self._clock.wall_ns() // 1_000)

    def counts(self) -> ClientCounts:
        """Return the counts up to now.

        Raises:
            ClientClosedError: the client belongs to the parent of this process.
        """
        self._check_process()
        with self._lock:
            engine, queue, results = self._engine, self._queue, self._results
            return ClientCounts(
                accepted=self._accepted,
                recovered=queue.recovered,
                entered=results[OutcomeResult.ENTERED],
                held=results[OutcomeResult.HELD],
                rejected=results[OutcomeResult.REJECTED],
                unsent=results[OutcomeResult.UNSENT],
                unreadable=queue.unreadable,
                repeated=engine.repeated,
                requests=engine.requests,
                failed_requests=engine.failed_requests,
                waiting_bytes=queue.waiting_bytes,
                last_failure=self._last_failure,
            )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ClientClosedError("the client belongs to the parent of this process: make one behind the fork")

    def _is_settled_to(self, mark: int) -> bool:
        return self._queue.dropped_mark >= mark

    def _run(self) -> None:
        try:
            while batch := self._await_batch():
                self._send_batch(batch)
            self._end()
        except Exception:  # noqa: BLE001 - a fault of the client ends it, and is no matter of its host
            _log.exception("the client failed: it takes no events any more")
        with self._lock:
            self._is_closed = self._has_ended = True
            self._settled.notify_all()

    def _send_batch(self, batch: Sequence[EventRecord]) -> None:
        answer = self._transport.post(event_records.encode_batch([record.item for record in batch]))
        with self._lock:
            now_us = self._clock.wall_ns() // 1_000
            settled = self._engine.settle(answer, self._now_s(), now_us, random.random())  # noqa: S311 - no secret
            self._last_failure = settled.failure
        if settled.failure and self._outages.is_new():
            _log.warning("the gate does not take events: %s; they are sent again", settled.failure)
        elif settled.outcomes and not settled.failure and self._outages.rearm():
            _log.info("the gate takes events again")
        # Before the spool forgets them: after a kill between the two they are sent again, and their outcome is told.
        self._report(settled.outcomes)
        self._finish(settled.outcomes)

    def _await_batch(self) -> Sequence[EventRecord]:
        """Return the next batch, once it is due; an empty one when the client has stopped."""
        while True:
            if self._now_s() - self._synced_s >= SYNC_S:
                self._sync_spool()
            with self._lock:
                if self._is_stopped:
                    return ()
                try:
                    step = self._engine.next_step(self._now_s())
                except ClientSpoolError as error:
                    self._engine.delay(self._now_s(), random.random())  # noqa: S311 - no secret
                    self._log_spool_fault(str(error))
                    continue
                if step.batch:
                    return step.batch
                # Segments that could not be read were passed over.
                self._settled.notify_all()
                is_synced = not self._queue.list_unsynced()
                wait_s = step.wait_s if is_synced else min(SYNC_S, SYNC_S if step.wait_s is None else step.wait_s)
                self._work.wait(wait_s)

    def _sync_spool(self) -> None:
        self._synced_s = self._now_s()
        with self._lock:
            unsynced = self._queue.list_unsynced()
        for part in unsynced:
            try:
                part.sync()
            except OSError as error:
                self._log_spool_fault(f"the spool cannot be synced: {error.strerror}")

    def _report(self, outcomes: Sequence[SendOutcome]) -> None:
        if self._on_outcome is None:
            return
        for outcome in outcomes:
            try:
                self._on_outcome(outcome)
            except Exception:  # noqa: BLE001 - of the host, and no reason to stop
                _log.exception("on_outcome failed for %s", outcome.event_id)

    def _finish(self, outcomes: Sequence[SendOutcome]) -> None:
        with self._lock:
            self._engine.finish()
            self._resolve(outcomes)
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def _end(self) -> None:
        self._transport.close()
        if self._queue.is_durable:
            self._sync_spool()
            unsent = []
        else:
            with self._lock:
                unsent = self._engine.give_up()
            self._report(unsent)
        with self._lock:
            self._resolve(unsent)
            for future in (one for futures in self._waiting.values() for one in futures):
                if future.set_running_or_notify_cancel():
                    future.set_exception(ClientClosedError("the client was closed before the gate had answered"))
            self._waiting.clear()
            self._queue.close()

    def _resolve(self, outcomes: Sequence[SendOutcome]) -> None:
        for outcome in outcomes:
            self._results[outcome.result] += 1
            for future in self._waiting.pop(outcome.event_id, ()):
                if future.set_running_or_notify_cancel():
                    future.set_result(outcome)
        self._settled.notify_all()

    def _log_spool_fault(self, told: str) -> None:
        if self._spool_faults.is_new(told):
            _log.warning("%s", told)

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9
