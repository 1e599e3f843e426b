"""Tests of the dispatcher's threads: channels do not hold each other up, nothing gets out, and a stop has an end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs

from hopwatch.alerts.channels.channel import Accepted, Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery import threads
from hopwatch.alerts.delivery.dispatcher import Dispatcher
from hopwatch.alerts.delivery.threads import DispatchThreads
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store.dialect.lock import MemoryLock
from servers.process import until
from tests.support.notifications import notification
from tests.support.outbox import put, states

PATIENCE_S: Final = 120.0


@dataclass
class Gate:
    """A channel that hangs until it is opened."""

    is_open: threading.Event = field(default_factory=threading.Event)
    is_asked: threading.Event = field(default_factory=threading.Event)
    heard: list[str] = field(default_factory=list)
    is_closed: bool = False

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Take it, once it is open."""
        del now_us
        self.is_asked.set()
        self.is_open.wait(PATIENCE_S)
        self.heard.append(delivery.notification.key)
        return Accepted()

    def close(self) -> None:
        """Note that it was let go of."""
        self.is_closed = True


def opened() -> Gate:
    """Return a channel that does not hang."""
    gate = Gate()
    gate.is_open.set()
    return gate


@contextmanager
def running(engine: Engine, **channels: Gate) -> Iterator[DispatchThreads]:
    """Yield a dispatcher that runs on a store."""
    with threads.run_dispatcher(
        engine.url.render_as_string(hide_password=False), Routing(channels), MemoryLock()
    ) as one:
        yield one


def is_sent(engine: Engine, channel: str, number: int = 1) -> Callable[[], bool]:
    """Return a question: whether so many were sent."""
    return lambda: states(engine).get((channel, "sent"), 0) == number


def test_a_channel_that_hangs_holds_up_no_other(engine: Engine) -> None:
    """Each has a thread; what hangs is delivered when it does not any more."""
    stuck, well = Gate(), opened()
    put(engine, notification(), channels=("stuck", "well"))
    with running(engine, stuck=stuck, well=well) as dispatcher:
        until(is_sent(engine, "well"), "the delivery", PATIENCE_S)
        assert stuck.is_asked.wait(PATIENCE_S)
        assert stuck.heard == []
        put(engine, notification(stream="more"), channels=("stuck", "well"))
        dispatcher.wake()
        until(is_sent(engine, "well", 2), "the second delivery", PATIENCE_S)
        stuck.is_open.set()
        until(is_sent(engine, "stuck", 2), "the deliveries that hung", PATIENCE_S)
    assert stuck.is_closed
    assert well.is_closed
    assert dispatcher.collect_figures()["well"].taken == 2


def test_a_note_waits_for_the_job_s_transaction(engine: Engine) -> None:
    """A note waits for the transaction of the job, and the notification is sent once."""
    gate = Gate()
    put(engine, notification())
    with running(engine, pager=gate):
        assert gate.is_asked.wait(PATIENCE_S)
        with engine.execution_options(writes=True).begin():
            gate.is_open.set()
            until(lambda: bool(gate.heard), "the delivery", PATIENCE_S)
            assert states(engine) == {("pager", "waiting"): 1}
        until(is_sent(engine, "pager"), "the note", PATIENCE_S)
    assert gate.heard == ["loss/page/orders"]


def test_what_a_commit_has_put_is_sent_when_it_is_told(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without waiting for the next look."""
    monkeypatch.setattr(threads, "POLL_S", 1_000.0)
    gate = opened()
    with running(store, pager=gate) as dispatcher:
        until(
            lambda: not dispatcher._woken.is_set() and dispatcher._dispatcher._has_begun, "the first look", PATIENCE_S
        )
        put(store, notification())
        dispatcher.wake()
        until(is_sent(store, "pager"), "the delivery", PATIENCE_S)


def test_what_is_due_at_a_stop_is_sent(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last micro-batch may have put it a moment before."""
    monkeypatch.setattr(threads, "POLL_S", 1_000.0)
    gate = opened()
    with running(store, pager=gate) as dispatcher:
        until(lambda: dispatcher._dispatcher._has_begun, "the first look", PATIENCE_S)
        put(store, notification(), notification(stream="more"))
    assert sorted(gate.heard) == ["loss/page/more", "loss/page/orders"]


def test_a_stop_waits_for_no_receiver_that_hangs(store: Engine) -> None:
    """A stop waits up to its deadline for a hanging receiver."""
    gate = Gate()
    put(store, notification())
    dispatcher = DispatchThreads(Dispatcher(store, Routing({"pager": gate}), SystemClock()), SystemClock())
    dispatcher.start()
    assert gate.is_asked.wait(PATIENCE_S)
    dispatcher.stop(patience_s=0.1)
    assert any(worker.is_alive() for worker in dispatcher._workers)
    assert states(store) == {("pager", "waiting"): 1}
    gate.is_open.set()
    for worker in dispatcher._workers:
        worker.join(PATIENCE_S)


class Failing(MemoryLock):
    """A hold on a store that fails so many times."""

    def __init__(self, error: Exception, times: int) -> None:
        """Keep what is to be raised."""
        self.error, self.times = error, times

    def renew(self) -> None:
        """Fail, if it is time."""
        self.times -= 1
        if self.times >= 0:
            raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreError("the store here failed: it is down"), "the store here failed: it is down"),
        (ValueError("s3cret"), "a fault of Hopwatch's own: ValueError in renew, line "),
    ],
)
def test_a_store_that_fails_is_told_once(
    error: Exception, told: str, store: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing store is logged once and polled again, and waiting deliveries are sent."""
    monkeypatch.setattr(threads, "POLL_S", 0.01)
    put(store, notification())
    with capture_logs() as log:
        ways = Routing({"pager": opened()})
        with threads.run_dispatcher(str(store.url), ways, Failing(error, 4)):
            until(is_sent(store, "pager"), "the delivery", PATIENCE_S)
    assert [(one["log_level"], one["event"], one["what"]) for one in log] == [
        ("warning", "alerts wait, nothing is lost", "the outbox"),
        ("info", "alerts are delivered again", "the outbox"),
    ]
    assert log[0]["why"].startswith(told)


def test_a_log_that_cannot_be_written_holds_nothing_up(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a terminal that is gone."""
    from hopwatch.alerts.delivery import log  # noqa: PLC0415 - of this test alone

    class Gone:
        def __getattr__(self, _: str) -> Callable[..., None]:
            raise BrokenPipeError

    monkeypatch.setattr(log, "_log", Gone())
    monkeypatch.setattr(threads, "POLL_S", 0.01)
    put(store, notification())
    with threads.run_dispatcher(str(store.url), Routing({"pager": opened()}), Failing(StoreError("down"), 1)):
        until(is_sent(store, "pager"), "the delivery", PATIENCE_S)
