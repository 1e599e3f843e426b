"""Tests of the sender, stepped by hand on a manual clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes import drop_counts
from hopwatch.probes.contract.batch import BatchKind, Drop
from hopwatch.probes.recorder import Stamp, StampArrays, StampKind
from hopwatch.testing import EPOCH_US, MemorySink, observations
from tests.support.drops import drops
from tests.support.sender_bench import Bench

MINUTE_MS = EPOCH_US // 1_000


class RaisingSink(MemorySink):
    """A team's own sink, which raises where it should say no."""

    def send(self, record: bytes) -> bool:
        """Raise when full."""
        if self.is_full:
            raise ConnectionError("no route")
        return super().send(record)


def stamps(count: int) -> StampArrays:
    """Return arrays of so many arrivals."""
    return StampArrays(StampKind.ARRIVED, np.zeros((count, 2), np.uint64), np.full(count, EPOCH_US), EPOCH_US * 1_000)


def test_a_record_says_who_sends_it() -> None:
    """Names, epoch and labels of the instance stand in every record, and when it was sent."""
    bench = Bench(labels={"host": "a"})
    bench.arrive(1)
    bench.clock.advance(61)
    bench.sender.flush(BatchKind.BYE)
    for batch in bench.batches():
        assert (batch.stream, batch.node, batch.probe, batch.epoch_us) == ("orders", "router", "host-1", EPOCH_US)
        assert (batch.labels, batch.sent_at_us) == ({"host": "a"}, EPOCH_US + 61_000_000)
    assert [batch.window_start_ms for batch in bench.batches()] == [MINUTE_MS, MINUTE_MS + 60_000]


def test_it_flushes_every_two_seconds() -> None:
    """Before that nothing is sent, and with nothing to send nothing is sent either."""
    bench = Bench()
    bench.arrive(1)
    for _ in range(5):
        bench.clock.advance(1.0)
        bench.sender.step()
    assert bench.said() == [(0, BatchKind.OBSERVATIONS, 1, 2_000_000)]


@given(st.lists(st.integers(0, 40), min_size=12, max_size=30), st.sampled_from([None, 1.0, 3.0]))
def test_few_stamps_wait_longer_than_many(arrivals: list[int], flush_every_s: float | None) -> None:
    """By default a step sends all that waits 2 s after the last flush, fewer than 32 stamps 5 s after it.

    With an interval that was asked for, it sends all after that, be they few or many.
    """
    bench = Bench(flush_every_s=flush_every_s)
    number, waiting, since_s = 0, 0, 0.0
    for count in arrivals:
        bench.arrive(*range(number, number + count))
        number, waiting, since_s = number + count, waiting + count, since_s + 0.5
        bench.clock.advance(0.5)
        before = sum(batch.count for batch in bench.batches())
        bench.sender.step()
        is_due = since_s >= (flush_every_s or (5.0 if waiting < 32 else 2.0))
        assert sum(batch.count for batch in bench.batches()) - before == (waiting if is_due else 0)
        if is_due:
            waiting, since_s = 0, 0.0


def test_it_flushes_at_4096_observations() -> None:
    """The last of the 4,096 makes the flush due, and those of arrays count one by one."""
    bench = Bench()
    bench.arrive(*range(4_095))
    bench.sender.step()
    assert bench.said() == []
    bench.arrive(4_095)
    bench.sender.step()
    assert bench.sender.append_many(stamps(4_096), 10_000)
    bench.sender.step()
    assert [batch.count for batch in bench.batches()] == [4_096, 4_096]


def test_a_quiet_probe_says_that_it_lives_every_ten_seconds() -> None:
    """A heartbeat comes ten seconds after whatever was sent last."""
    bench = Bench()
    bench.clock.advance(5)
    bench.arrive(1)
    bench.sender.step()
    for _ in range(25):
        bench.clock.advance(1)
        bench.sender.step()
    assert bench.said() == [
        (0, BatchKind.OBSERVATIONS, 1, 5_000_000),
        (1, BatchKind.HEARTBEAT, 0, 15_000_000),
        (2, BatchKind.HEARTBEAT, 0, 25_000_000),
    ]


def test_a_heartbeat_completes_no_moment_of_what_still_waits() -> None:
    """A stamp taken since the last flush is sent with the moment, and keeps its own."""
    bench = Bench()
    bench.clock.advance(9.5)
    bench.sender.step()
    bench.arrive(1)
    bench.clock.advance(0.5)
    bench.sender.step()
    assert bench.said() == [(0, BatchKind.OBSERVATIONS, 1, 10_000_000)]
    assert observations(bench.sink)[0].in_us == EPOCH_US + 9_500_000


def test_of_the_batches_of_a_flush_only_the_last_carries_the_moment() -> None:
    """The others repeat the moment before."""
    bench = Bench()
    bench.arrive(*range(5_000))
    bench.clock.advance(2)
    bench.sender.flush()
    assert bench.said() == [(0, BatchKind.OBSERVATIONS, 4_096, 0), (1, BatchKind.OBSERVATIONS, 904, 2_000_000)]


def test_a_wall_clock_that_steps_back_completes_nothing_twice() -> None:
    """The moment stays, and what is stamped meanwhile comes behind it."""
    bench = Bench()
    bench.clock.advance(2)
    bench.arrive(1)
    bench.sender.flush()
    bench.clock.us -= 1_000_000
    bench.arrive(2)
    bench.sender.flush()
    assert [through for *_, through in bench.said()] == [2_000_000, 2_000_000]
    assert [row.in_us for row in observations(bench.sink)] == [EPOCH_US + 2_000_000, EPOCH_US + 2_000_001]


@pytest.mark.parametrize(("sink", "used_up"), [(MemorySink(), 0), (RaisingSink(), 3)])
def test_a_sink_that_refuses_hides_no_drop(sink: MemorySink, used_up: int) -> None:
    """The moment waits, and drops are told with the next record; where it raised, nobody knows if a number is used."""
    bench = Bench(sink)
    sink.is_full = True
    bench.arrive(1, 2)
    bench.arrive(3, event_us=EPOCH_US + 60_000_000)
    bench.clock.advance(2)
    bench.sender.step()
    assert (bench.sender.seq, bench.sender.complete_through_us, bench.sender.dropped_total) == (used_up, EPOCH_US, 3)
    sink.is_full = False
    bench.arrive(4)
    bench.clock.advance(2)
    bench.sender.step()
    assert bench.said() == [(used_up, BatchKind.OBSERVATIONS, 1, 4_000_000)]
    assert drops(sink.records) == [Drop(MINUTE_MS, 2, "sink refused"), Drop(MINUTE_MS + 60_000, 1, "sink refused")]
    assert not bench.sender.drops


def test_a_batch_refused_alone_is_told_at_once() -> None:
    """If the sink takes the next record, the moment is complete with the drop."""

    class FirstRefused(MemorySink):
        def send(self, record: bytes) -> bool:
            taken, self.is_full = super().send(record), False
            return taken

    bench = Bench(FirstRefused())
    bench.sink.is_full = True
    bench.arrive(1)
    bench.sender.flush()
    assert bench.said() == [(0, BatchKind.HEARTBEAT, 0, 0)]
    assert drops(bench.sink.records) == [Drop(MINUTE_MS, 1, "sink refused")]


def test_drops_are_told_though_nothing_else_is() -> None:
    """Drops are told with the next flush, by window and cause, in a heartbeat."""
    bench = Bench()
    bench.arrive(-1, -2)
    bench.sender.queue.append(Stamp(StampKind.ARRIVED, 1, -1, bench.clock.wall_ns()))
    bench.clock.advance(2)
    bench.sender.step()
    assert bench.said() == [(0, BatchKind.HEARTBEAT, 0, 2_000_000)]
    assert drops(bench.sink.records) == [Drop(MINUTE_MS, 1, "bad event time"), Drop(MINUTE_MS, 2, "bad message id")]
    assert bench.sender.dropped_total == 3


@pytest.mark.parametrize("numbers", [(), (1,)])
def test_more_than_1024_drops_are_told_in_several_records(numbers: tuple[int, ...]) -> None:
    """The moment is complete with the last of them, and each is told once."""
    bench = Bench()
    lost = {(minute * 60_000, "queue full"): minute + 1 for minute in range(2_500)}
    bench.sender.drop(lost)
    bench.arrive(*numbers)
    bench.clock.advance(2)
    bench.sender.step()
    assert [len(batch.drops) for batch in bench.batches()] == [1_024, 1_024, 452]
    assert [through for *_, through in bench.said()] == [0, 0, 2_000_000]
    assert {(drop.window_start_ms, drop.cause): drop.count for drop in drops(bench.sink.records)} == lost


def test_drops_of_too_many_windows_leave_a_number_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are counted; which windows they were of is unknown, so the account of that time has a hole."""
    monkeypatch.setattr(drop_counts, "MAX_COUNTED", 2)
    bench = Bench()
    bench.clock.advance(2)
    bench.sender.flush(BatchKind.HEARTBEAT)
    bench.sender.drop({(MINUTE_MS + minute * 60_000, "queue full"): 1 for minute in range(9)})
    for _ in range(200):
        bench.clock.advance(2)
        bench.sender.step()
    # The moment waits while windows that were dropped may be ahead of it.
    assert [through for *_, through in bench.said()][:2] == [2_000_000, 2_000_000]
    behind = next(number for number, (*_, through) in enumerate(bench.said()) if through > 2_000_000)
    assert bench.said()[behind][3] == 304_000_000
    seqs = [batch.seq for batch in bench.batches()]
    assert seqs == [number for number in range(len(seqs) + 1) if number != behind]
    assert sorted(drops(bench.sink.records), key=lambda drop: drop.cause) == [
        Drop(MINUTE_MS, 1, "queue full"),
        Drop(MINUTE_MS + 60_000, 1, "queue full"),
        Drop(MINUTE_MS, 7, "too many windows"),
    ]


def test_a_probe_that_goes_on_losing_count_makes_few_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number every five minutes, which is soon enough for a monitor not to take it for silent."""
    monkeypatch.setattr(drop_counts, "MAX_COUNTED", 0)
    bench = Bench()
    for _ in range(1_800):
        bench.sender.drop({(bench.clock.us // 60_000_000 * 60_000, "queue full"): 1})
        bench.clock.advance(1)
        bench.sender.step()
    moments = sorted({through for *_, through in bench.said()})
    assert moments == [minute * 60_000_000 for minute in range(0, 31, 5)]
    assert bench.sender.seq == len(bench.batches()) + 6


def test_no_bye_vouches_for_windows_ahead_of_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Event times may be ahead: who ends so soon after it has lost count ends in silence."""
    monkeypatch.setattr(drop_counts, "MAX_COUNTED", 0)
    bench = Bench()
    bench.arrive(-1)
    bench.sender.close(1)
    assert bench.said() == [(0, BatchKind.HEARTBEAT, 0, 0)]
    assert drops(bench.sink.records) == [Drop(MINUTE_MS, 1, "too many windows")]


def test_each_cause_of_drops_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each cause of drops is logged once."""
    bench = Bench()
    for _ in range(3):
        bench.sender.queue.append(Stamp(StampKind.ARRIVED, 1, 17.5, 0))  # type: ignore[arg-type]  # as a host may pass it
        bench.sender.queue.append(Stamp(StampKind.ARRIVED, -1, EPOCH_US, 0))
        bench.sender.drop({(0, "queue full"): 1})
        bench.sender.flush()
    beginning = "a probe of orders at router drops observations:"
    loudly = "strict=True raises at the call"
    assert caplog.messages == [
        f"{beginning} an event time is an aware datetime or int µs since 1970; strict=True raises at the call",
        f"{beginning} a message id is a UUID, 16 bytes, an int or a str; {loudly}; got int out of range",
        f"{beginning} queue full",
    ]


def test_what_breaks_the_wire_is_dropped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """A batch that no reader would take is not sent; the probe goes on."""
    bench = Bench()
    bench.arrive(1)
    bench.sender.queue.append(Stamp(StampKind.FILTERED, 2, EPOCH_US, bench.clock.wall_ns(), "\ud800"))
    bench.sender.flush()
    assert drops(bench.sink.records) == [Drop(MINUTE_MS, 2, "unsendable")]
    assert "a probe made a record that breaks the wire" in caplog.text


def test_arrays_that_fill_a_batch_wake_the_thread() -> None:
    """A host that stamps fast in arrays is not held to the pace of the clock."""
    sender = Bench().sender
    assert sender.append_many(stamps(4_095), 10_000)
    assert not sender._wake.is_set()
    assert sender.append_many(stamps(1), 10_000)
    assert sender._wake.is_set()


def test_arrays_find_room_by_what_waits() -> None:
    """Refused once more would wait than may; an arrival and its departure fit however long; room comes back."""
    sender = Bench().sender
    assert [sender.append_many(stamps(60), 100) for _ in range(3)] == [True, True, False]
    assert sender.waiting == 120
    sender.flush()
    assert sender.waiting == 0
    assert sender.append_many(stamps(60), 100)
