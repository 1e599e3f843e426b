"""Tests of the sender beside its host: the thread, what the host waits for, and the end."""

from __future__ import annotations

import logging
import threading

import pytest

from hopwatch.probes.contract.batch import BatchKind, Drop
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US, MemorySink, observations
from tests.support.drops import drops
from tests.support.sender_bench import Bench

MINUTE_MS = EPOCH_US // 1_000


def test_a_drop_waits_for_no_sink() -> None:
    """While a sink takes its time, the host counts a drop without waiting."""
    entered, leave = threading.Event(), threading.Event()

    class SlowSink(MemorySink):
        def send(self, record: bytes) -> bool:
            entered.set()
            return leave.wait(30) and super().send(record)

    bench = Bench(SlowSink())
    bench.arrive(1)
    sending = threading.Thread(target=bench.sender.flush)
    sending.start()
    assert entered.wait(30)
    host = threading.Thread(target=bench.sender.drop, args=({(MINUTE_MS, "queue full"): 1},))
    host.start()
    host.join(30)
    assert not host.is_alive()
    assert sending.is_alive()
    leave.set()
    sending.join(30)
    bench.sender.flush()
    assert [row.message_id for row in observations(bench.sink)] == [id_bytes(1)]
    assert drops(bench.sink.records) == [Drop(MINUTE_MS, 1, "queue full")]


def test_a_sink_is_in_the_hands_of_one_thread_at_a_time() -> None:
    """While it sends, does what is due or closes, no other thread can get at it."""
    free: list[bool] = []

    class Watched(MemorySink):
        def look(self, _: float = 0.0) -> None:
            other = threading.Thread(target=lambda: free.append(bench.sender._sending.acquire(blocking=False)))
            other.start()
            other.join(30)

        def send(self, record: bytes) -> bool:
            self.look()
            return super().send(record)

        tick = close = look  # type: ignore[assignment]  # nothing is given to either here

    bench = Bench(Watched())
    bench.arrive(1)
    bench.clock.advance(2)
    bench.sender.step()
    bench.sender.tick()
    bench.sender.close(30)
    assert free == [False] * 5


def test_closing_sends_what_is_left_and_says_bye() -> None:
    """The bye is the last record, with the drops that nothing else told."""
    bench = Bench()
    bench.sender.start()
    bench.arrive(1)
    bench.clock.advance(1)
    bench.sender.close(30)
    assert bench.said() == [
        (0, BatchKind.HEARTBEAT, 0, 0),
        (1, BatchKind.OBSERVATIONS, 1, 1_000_000),
        (2, BatchKind.BYE, 0, 1_000_000),
    ]


def test_what_ends_has_one_deadline() -> None:
    """Patience counts from when the end was asked for, however late it is waited for, and nothing is complete after."""
    patience_s: list[float] = []

    class Patient(MemorySink):
        def close(self, patience_s_: float = 0.0) -> None:
            patience_s.append(patience_s_)

    bench = Bench(Patient())
    bench.sender.end(2.0)
    bench.clock.advance(1.5)
    bench.sender.wait()
    bench.sender.wait()
    assert patience_s == [0.5]
    assert bench.said() == [(0, BatchKind.BYE, 0, 0)]


def test_the_thread_ends_by_itself() -> None:
    """The thread of a sender that was asked to end closes the sink by itself."""
    closed = threading.Event()

    class Told(MemorySink):
        def close(self, patience_s: float = 0.0) -> None:
            assert patience_s
            closed.set()

    bench = Bench(Told())
    bench.sender.start()
    bench.sender.end(30)
    assert closed.wait(30)
    bench.sender.wait()
    assert [kind for _, kind, *_ in bench.said()] == [BatchKind.HEARTBEAT, BatchKind.BYE]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_a_sink_has_ended_is_stood_in_for() -> None:
    """If a sink ends the thread, closing the sender sends the rest."""
    entered = threading.Event()

    class Ending(MemorySink):
        def tick(self) -> None:
            if not entered.is_set():
                entered.set()
                raise SystemExit

    bench = Bench(Ending())
    bench.sender.start()
    bench.sender.wake()
    assert entered.wait(30)
    bench.arrive(1)
    bench.sender.close(30)
    assert [kind for _, kind, *_ in bench.said()] == [BatchKind.HEARTBEAT, BatchKind.OBSERVATIONS, BatchKind.BYE]


def test_closing_waits_no_longer_for_a_send_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """The thread stays in it, and the host goes on."""
    entered, leave = threading.Event(), threading.Event()

    class Hanging(MemorySink):
        def send(self, record: bytes) -> bool:
            if not self.records:
                return super().send(record)
            entered.set()
            return leave.wait(30) and super().send(record)

    bench = Bench(Hanging())
    bench.sender.start()
    bench.arrive(1)
    bench.clock.advance(2)
    bench.sender.wake()
    assert entered.wait(30)
    bench.arrive(2)
    bench.sender.close(0.01)
    assert caplog.messages == ["a probe gave up after 0.01 s: its sink is busy, 1 stamps are unsent"]
    leave.set()


def test_closing_gives_up_on_a_sink_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The host goes on, and reads how many stamps are unsent."""
    bench = Bench()
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with bench.sender._sending:
            entered.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(30)
    bench.arrive(1)
    with caplog.at_level(logging.WARNING):
        bench.sender.close(0.01)
    leave.set()
    holder.join(30)
    assert "a probe gave up after 0.01 s: its sink is busy, 1 stamps are unsent" in caplog.text
    assert bench.sink.records == []


def test_the_thread_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """A sink that fails at what time makes due stops nothing."""
    ticked = threading.Event()

    class FailingTick(MemorySink):
        def tick(self) -> None:
            ticked.set()
            raise OSError("disk on fire")

    bench = Bench(FailingTick())
    bench.sender.start()
    for _ in range(2):
        ticked.clear()
        bench.sender.wake()
        assert ticked.wait(30)
    bench.sender.close(30)
    assert "disk on fire" in caplog.text
    assert [batch.kind for batch in bench.batches()] == [BatchKind.HEARTBEAT, BatchKind.BYE]
