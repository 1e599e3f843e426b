"""Tests of the injector and of the sink of a probe that dies."""

from __future__ import annotations

import threading

from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.selftest.injector import MAX_WAITING, MinuteInjector, start_injector
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.selftest.mortal_sink import MortalSink
from hopwatch.monitor.selftest.stream import SELFTEST_CONFIG, SELFTEST_STREAM
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.testing import ManualClock, MemorySink


def run_minutes(injector: MinuteInjector, clock: ManualClock, minutes: int) -> None:
    """Let time pass."""
    until_us = clock.us + minutes * WINDOW_US
    while clock.us < until_us:
        clock.advance(max(injector.step(), 1e-6))


def test_minutes_wait_for_a_store_that_is_down() -> None:
    """Minutes are stored in order once it can be written; of very many the newest are kept."""
    clock, stored, is_down = ManualClock(), list[InjectedMinute](), True

    def record(minute: InjectedMinute) -> None:
        if is_down:
            raise StoreError("it is down")
        stored.append(minute)

    injector = MinuteInjector(lambda _: MemorySink(), record, 60, "a seed", clock=clock)
    run_minutes(injector, clock, MAX_WAITING + 10)
    assert stored == []
    is_down = False
    run_minutes(injector, clock, 2)
    starts = [minute.start_us for minute in stored]
    assert len(starts) >= MAX_WAITING
    assert starts == list(range(starts[0], starts[-1] + 1, WINDOW_US))
    injector.close()


def test_a_minute_in_which_probes_dropped_stamps_is_said_to_be_so() -> None:
    """A transport that takes nothing leaves nothing to compare; minutes before and behind are as they were planned."""
    clock, stored, sinks = ManualClock(), list[InjectedMinute](), list[MemorySink]()

    def open_sink(_: str) -> MemorySink:
        sinks.append(MemorySink())
        return sinks[-1]

    injector = MinuteInjector(open_sink, stored.append, 60, "a seed", clock=clock)
    run_minutes(injector, clock, 3)
    injector.flush()
    for is_full in (True, False):
        for sink in sinks:
            sink.is_full = is_full
        run_minutes(injector, clock, 1)
        injector.flush()
    run_minutes(injector, clock, 3)
    known = [bool(minute.known) for minute in stored]
    assert known[:2] == [True, True]
    assert known[-1]
    assert not all(known)
    assert all(bool(minute.known) != bool(minute.dropped) for minute in stored)
    injector.close()


def test_an_injector_runs_in_a_thread_and_says_bye() -> None:
    """Each of its probes announces itself, and ends in good order when the monitor does; the thread is gone."""
    sinks: list[MemorySink] = []

    def open_sink(instance: str) -> MemorySink:
        assert instance.startswith(f"{SELFTEST_STREAM}.")
        sinks.append(MemorySink())
        return sinks[-1]

    stop = start_injector(open_sink, lambda _: None, 60, "a seed")
    stop()
    kinds = [[decode(record).kind for record in sink.records] for sink in sinks]
    assert kinds == [[BatchKind.HEARTBEAT, BatchKind.BYE]] * len(SELFTEST_CONFIG.pathway.nodes)
    assert "hopwatch-selftest" not in {thread.name for thread in threading.enumerate()}


def test_a_sink_that_is_dead_takes_records_and_sends_none() -> None:
    """All that was sent before is there, and nothing of what comes; the probe behind it notices nothing."""
    inner = MemorySink()
    sink = MortalSink(inner)
    assert sink.send(b"before")
    inner.failing.append(b"failed")
    assert sink.failed() == [b"failed"]
    sink.kill()
    inner.failing.append(b"failed")
    assert sink.send(b"behind")
    assert sink.settle(1.0)
    assert sink.failed() == ()
    sink.tick()
    sink.close()
    assert inner.records == [b"before"]
