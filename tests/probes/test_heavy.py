"""Tests of what waits in a probe: bounded in bytes, too, whatever ids a host has."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from hopwatch.probes import Probe, drop_ledger
from hopwatch.probes.backlog import MAX_LIGHT_CHARS, Backlog, weigh_call
from hopwatch.probes.recorder import Stamp, StampArrays
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations
from tests.support.drops import drops

MOST_BYTES = 100_000
LONG = 1_000
"""So many characters has an id; 25 of them find room."""


def long_id(number: int) -> str:
    """Return an id of its own that is long."""
    return f"{number:0{LONG}}"


def passing(probe: Probe, number: int) -> None:
    """Stamp both sides of a message."""
    with probe.passing(long_id(number), EPOCH_US):
        pass


STAMPS: dict[str, tuple[Callable[[Probe, int], object], int]] = {
    "arrived": (lambda probe, number: probe.arrived(long_id(number), EPOCH_US), 25),
    "departed": (lambda probe, number: probe.departed(long_id(number), EPOCH_US), 25),
    "passing": (passing, 25),
    "filtered": (lambda probe, number: probe.filtered(long_id(number), EPOCH_US), 25),
    "bytes": (lambda probe, number: probe.arrived(long_id(number).encode(), EPOCH_US), 25),
    "arrays": (lambda probe, number: probe.arrived_many([long_id(number)] * 2, [EPOCH_US] * 2), 100),
}


@pytest.mark.parametrize(("stamp", "most"), STAMPS.values(), ids=STAMPS)
def test_long_ids_that_wait_are_bounded(stamp: Callable[[Probe, int], object], most: int) -> None:
    """Long ids without room are dropped and counted, and there is room again once those that waited are sent."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock(), most_bytes=MOST_BYTES) as probe:
        for _ in range(2):
            before = probe.dropped
            for number in range(60):
                stamp(probe, number)
            assert len(probe._queue) <= most
            taken = probe._sender.waiting if probe._sender else 0
            dropped = probe.dropped - before
            assert taken + dropped in {60, 120}
            assert {drop.cause for drop in drops(sink.records)} <= {"queue full", "bad message id"}
            probe.flush()
        assert probe.dropped > 0


def test_many_long_ids_cost_what_is_said() -> None:
    """While the sink takes nothing, memory stays below the bound and what a few of them cost."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock(), most_bytes=1_000_000) as probe:
        tracemalloc.start()
        for number in range(2_000):
            probe.arrived(f"{number:010000}", EPOCH_US)
        used_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used_bytes < 1_000_000
        assert probe.dropped == 2_000 - 25


def test_small_ids_are_not_weighed() -> None:
    """Small ids are stamped, however little room there is for long ones."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock(), most_bytes=1) as probe:
        probe.arrived("x" * MAX_LIGHT_CHARS, EPOCH_US)
        probe.arrived("x" * (MAX_LIGHT_CHARS + 1), EPOCH_US)
        probe.flush()
    assert (len(observations(sink)), probe.dropped) == (1, 1)


def test_what_was_taken_weighs_nothing_more() -> None:
    """Of stamps and arrays alike, also of a queue that has some already, as in the child of a fork."""
    heavy = Stamp(0, long_id(1), EPOCH_US, EPOCH_US * 1_000)
    first = Backlog()
    first.queue.append(heavy)
    backlog = Backlog(first.queue)
    assert backlog._waiting_bytes == weigh_call(heavy) == 4 * LONG
    assert backlog.append_heavy(heavy)
    assert backlog._waiting_bytes == 8 * LONG
    backlog.pack(0)
    assert (backlog._waiting_bytes, len(backlog.packed)) == (0, 1)


def test_two_arrays_of_one_length_find_room_whatever_their_texts_weigh() -> None:
    """As an arrival and its departure belong together; a third one waits for them."""
    backlog = Backlog()
    backlog.max_bytes = 10
    texts = [b"x" * 100] * 3
    arrays = StampArrays(0, np.zeros((3, 2), np.uint64), np.full(3, EPOCH_US), EPOCH_US * 1_000, id_texts=texts)
    assert [backlog.append_many(arrays, 1_000) for _ in range(3)] == [True, True, False]


def test_a_long_id_waits_for_the_probe_to_begin_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other does: it is in the queue that the probe begins with, and not taken and forgotten."""
    with Probe("orders", "router", MemorySink()) as probe:
        probe.start_anew()
        monkeypatch.setattr(Probe, "_wake", lambda _: None)
        probe.arrived(long_id(1), EPOCH_US)
        assert [one.message_id for one in probe._queue if isinstance(one, Stamp)] == [long_id(1)]
        monkeypatch.undo()
        assert probe.flush(60)


def test_causes_that_a_host_makes_up_are_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many are logged; all are counted."""
    monkeypatch.setattr(drop_ledger, "MAX_CAUSES", 10)
    with Probe("orders", "router", MemorySink(), clock=ManualClock()) as probe, caplog.at_level(logging.WARNING):
        for number in range(100):
            probe.missed(f"cause {number}")
        probe.flush()
        assert probe._sender is not None
        assert len(probe._sender.drops._causes) == 10
        assert probe.dropped == 100
    assert len([one for one in caplog.records if "cause" in one.getMessage()]) == 10


def test_what_no_text_weighs() -> None:
    """Arrays of ids without texts are bounded by their number alone."""
    with Probe("orders", "router", MemorySink(), clock=ManualClock(), most_bytes=1) as probe:
        probe.arrived_many([1, 2, 3], [EPOCH_US] * 3)
        (call,) = probe._queue
        assert isinstance(call, StampArrays)
        assert (weigh_call(call), probe.dropped) == (0, 0)
