"""Tests of ``Probe`` as a host uses it; its thread sleeps, and flushes are asked for."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from hopwatch import Probe
from hopwatch.probes.contract.batch import BatchKind, Drop
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.recorder import MessageId
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.drops import drops

MINUTE_MS = EPOCH_US // 1_000
MESSAGE = uuid.UUID(int=1)


@pytest.fixture
def probe(sink: MemorySink, clock: ManualClock) -> Iterator[Probe]:
    """Yield a probe with room for four stamps; no test lets two seconds pass, so that its thread sends nothing."""
    with Probe("orders", "router", sink, probe="host-1", clock=clock, most_stamps=4) as opened:
        yield opened


def test_arrivals_and_departures_are_stamped_when_they_are_called(
    probe: Probe, sink: MemorySink, clock: ManualClock
) -> None:
    """A message that arrived and left is one observation with both moments."""
    probe.arrived(MESSAGE, EPOCH_US)
    clock.advance(0.5)
    probe.departed(MESSAGE, EPOCH_US)
    probe.flush()
    assert observations(sink) == [Observation(MESSAGE.bytes, EPOCH_US, EPOCH_US + 1, EPOCH_US + 500_000)]


def test_a_block_stamps_both_ends_by_the_clock_that_never_steps(
    probe: Probe, sink: MemorySink, clock: ManualClock
) -> None:
    """A wall clock that is set back meanwhile does not show in the time inside."""
    clock.advance(1)
    with probe.passing(MESSAGE, EPOCH_US):
        clock.advance(0.25)
        clock.us -= 3_600_000_000
    probe.flush()
    assert observations(sink) == [Observation(MESSAGE.bytes, EPOCH_US, EPOCH_US + 1_000_000, EPOCH_US + 1_250_000)]


def test_a_block_of_asyncio_stamps_both_ends(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """An exception in it stamps no ``out``; blocks that run beside each other keep their own moments."""

    async def handle(message_id: int, *, fails: bool = False) -> None:
        async with probe.passing(message_id, EPOCH_US):
            await asyncio.sleep(0)
            clock.advance(0.25)
            if fails:
                raise KeyError("the host's own")

    async def run() -> None:
        clock.advance(1)
        raised = await asyncio.gather(handle(1), handle(2, fails=True), return_exceptions=True)
        assert [type(one) for one in raised] == [type(None), KeyError]

    asyncio.run(run())
    probe.flush()
    start_us = EPOCH_US + 1_000_000
    assert {row.message_id: (row.in_us, row.out_us) for row in observations(sink)} == {
        id_bytes(1): (start_us, start_us + 250_000),
        id_bytes(2): (start_us, None),
    }


def test_a_block_that_raises_stamps_no_out(probe: Probe, sink: MemorySink) -> None:
    """The exception goes on to the host, and the message did not leave."""

    def fail() -> None:
        with probe.passing(MESSAGE, EPOCH_US):
            raise KeyError("the host's own")

    with pytest.raises(KeyError, match="the host's own"):
        fail()
    probe.flush()
    assert [(row.in_us is None, row.out_us) for row in observations(sink)] == [(False, None)]


def test_blocks_may_nest_and_cross(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Each block keeps its own moments."""
    clock.advance(0.5)
    with probe.passing(1, EPOCH_US), probe.passing(2, EPOCH_US):
        clock.advance(0.5)
    probe.flush()
    assert {row.message_id for row in observations(sink)} == {id_bytes(1), id_bytes(2)}
    assert {(row.in_us, row.out_us) for row in observations(sink)} == {(EPOCH_US + 500_000, EPOCH_US + 1_000_000)}


def test_messages_that_end_here_say_so(probe: Probe, sink: MemorySink) -> None:
    """Filtered and rejected stamp in and carry their reason, cut to what the wire takes."""
    probe.filtered(1, EPOCH_US, reason="test traffic")
    probe.rejected(2, EPOCH_US, "x" * 100)
    probe.rejected(3, EPOCH_US)
    probe.flush()
    assert [(row.outcome, row.reason, row.out_us) for row in observations(sink)] == [
        (1, "test traffic", None),
        (2, "x" * 64, None),
        (2, None, None),
    ]


def test_messages_that_wait_say_until_when(probe: Probe, sink: MemorySink) -> None:
    """Deferred stamps in and carries the moment, as event times are, and a reason; all in one batch with others."""
    probe.deferred(1, EPOCH_US, EPOCH_US + 30_000_000, "503")
    probe.deferred(2, EPOCH_US, datetime(2023, 11, 14, 23, 0, tzinfo=UTC))
    probe.arrived(3, EPOCH_US)
    probe.flush()
    assert [(row.outcome, row.reason, row.until_us, row.in_us is None, row.out_us) for row in observations(sink)] == [
        (3, "503", EPOCH_US + 30_000_000, False, None),
        (3, None, 1_700_002_800_000_000, False, None),
        (0, None, None, False, None),
    ]


@pytest.mark.parametrize("until", [None, "soon", -1, 2**63, datetime(2024, 1, 1)])  # noqa: DTZ001 - naive, hence bad
def test_a_bad_moment_to_wait_until_is_counted(probe: Probe, sink: MemorySink, until: object) -> None:
    """Nobody knows how long the message is in flight: it is told as a drop, so that it is no loss; strictly, raised."""
    probe.deferred(1, EPOCH_US, until)  # type: ignore[arg-type]  # a host may pass anything
    probe.flush()
    assert drops(sink.records) == [Drop(MINUTE_MS, 1, "bad moment to wait until")]
    strict = Probe("orders", "router", MemorySink(), strict=True, clock=ManualClock())
    with pytest.raises(ProbeError, match="a message waits until a moment as event times are: an event time "):
        strict.deferred(1, EPOCH_US, until)  # type: ignore[arg-type]  # a host may pass anything
    strict.close()


class Unspeakable:
    """Reason of a host that has no text."""

    def __str__(self) -> str:
        """Fail as a host's own class may."""
        raise RuntimeError("no text")


@pytest.mark.parametrize(("reason", "kept"), [(7, "7"), ("half \ud800", "half ?"), ("", None), (Unspeakable(), None)])
def test_a_strange_reason_costs_no_stamp(probe: Probe, sink: MemorySink, reason: object, kept: str | None) -> None:
    """The observation is sent, with as much of the reason as can be told."""
    probe.filtered(1, EPOCH_US, reason)  # type: ignore[arg-type]  # a host may pass anything
    probe.flush()
    assert [(row.outcome, row.reason) for row in observations(sink)] == [(1, kept)]
    assert probe.dropped == 0


@pytest.mark.parametrize("message_id", [MESSAGE, MESSAGE.bytes, 1, "order 1"])
def test_ids_and_times_come_in_every_kind_that_is_promised(
    probe: Probe, sink: MemorySink, message_id: MessageId
) -> None:
    """UUID, bytes, int and str; an aware datetime is its µs since 1970."""
    probe.arrived(message_id, datetime(2023, 11, 14, 22, 14, tzinfo=UTC))
    probe.departed(message_id, EPOCH_US)
    probe.flush()
    assert [row[:2] for row in observations(sink)] == [(id_bytes(message_id), EPOCH_US)]


BAD_IDS = [None, b"short", -1, 2**128, 1.5, object()]
BAD_TIMES = [None, "now", -1, 2**63, 1.5, datetime(2024, 1, 1)]  # noqa: DTZ001 - naive, hence bad


@pytest.mark.parametrize(
    ("message_id", "event_time", "cause"),
    [(bad, EPOCH_US, "bad message id") for bad in BAD_IDS] + [(1, bad, "bad event time") for bad in BAD_TIMES],
)
@pytest.mark.parametrize("method", ["arrived", "departed", "filtered", "rejected", "passing"])
def test_bad_input_raises_nothing_and_is_counted(
    probe: Probe, sink: MemorySink, method: str, message_id: object, event_time: object, cause: str
) -> None:
    """In production the host goes on, and the drop is told with its cause."""
    call: Callable[..., None] = getattr(probe, method)
    if method == "passing":
        with probe.passing(message_id, event_time):  # type: ignore[arg-type]  # a host may pass anything
            pass
    else:
        call(message_id, event_time)
    probe.flush()
    stamps = 2 if method == "passing" else 1
    assert drops(sink.records) == [Drop(MINUTE_MS, stamps, cause)]
    assert (observations(sink), probe.dropped) == ([], stamps)


def test_what_finds_no_room_is_counted_by_its_window(probe: Probe, sink: MemorySink) -> None:
    """The queue is bounded: the stamps that waited are sent, those that did not fit are told as drops."""
    for number in range(4):
        probe.arrived(number, EPOCH_US)
    probe.arrived(4, EPOCH_US + 60_000_000)
    probe.departed(5, "no time")  # type: ignore[arg-type]  # a host may pass anything
    probe.filtered(6, datetime(2023, 11, 14, 22, 15, tzinfo=UTC))
    with probe.passing(7, EPOCH_US):
        pass
    probe.flush()
    assert [row.message_id for row in observations(sink)] == [id_bytes(number) for number in range(4)]
    assert drops(sink.records) == [
        Drop(MINUTE_MS, 1, "bad event time"),
        Drop(MINUTE_MS, 2, "queue full"),
        Drop(MINUTE_MS + 60_000, 2, "queue full"),
    ]
    assert probe.dropped == 5


def test_closing_says_bye_once(probe: Probe, sink: MemorySink) -> None:
    """Closing sends all stamps and one bye; a closed probe takes any call, counts it, and sends nothing more."""
    probe.arrived(MESSAGE, EPOCH_US)
    probe.arrived(MESSAGE, -1)
    for _ in range(2):
        probe.close()
        probe.arrived(MESSAGE, EPOCH_US)
        probe.arrived_many([1], [EPOCH_US])
        probe.filtered(MESSAGE, EPOCH_US)
        with probe.passing(MESSAGE, EPOCH_US):
            probe.flush()
    assert [(decode(record).kind, decode(record).count) for record in sink.records] == [
        (BatchKind.HEARTBEAT, 0),
        (BatchKind.OBSERVATIONS, 1),
        (BatchKind.BYE, 0),
    ]
    assert probe.dropped == 1 + 2 * 5


def test_a_context_closes_its_probe(sink: MemorySink) -> None:
    """At the end of the block the bye is sent, without a flush before."""
    with Probe("orders", "router", sink, labels={"host": "a"}, clock=ManualClock()) as probe:
        probe.arrived(MESSAGE, EPOCH_US)
    assert [decode(record).kind for record in sink.records] == [
        BatchKind.HEARTBEAT,
        BatchKind.OBSERVATIONS,
        BatchKind.BYE,
    ]
    assert {tuple(decode(record).labels.items()) for record in sink.records} == {(("host", "a"),)}


class RaisingSink(MemorySink):
    """A transport that raises wherever it can."""

    def send(self, record: bytes) -> bool:
        """Raise."""
        raise OSError(f"no room for {len(record)} bytes")

    def tick(self) -> None:
        """Raise."""
        raise OSError("no time")

    def settle(self, patience_s: float) -> bool:
        """Raise."""
        raise OSError(f"not in {patience_s} s")

    def close(self, patience_s: float = 0.0) -> None:
        """Raise."""
        raise OSError(f"no end in {patience_s} s")


def test_a_sink_that_raises_never_reaches_the_host(clock: ManualClock) -> None:
    """The host goes on; what waits for the hello to be taken is counted at the end."""
    probe = Probe("orders", "router", RaisingSink(), clock=clock, strict=True)
    probe.arrived(MESSAGE, EPOCH_US)
    assert not probe.flush()
    assert probe.dropped == 0
    probe.arrived(MESSAGE, EPOCH_US)
    probe.close()
    assert probe.dropped == 2


def test_a_flush_says_whether_all_is_settled(probe: Probe, sink: MemorySink) -> None:
    """A flush returns whether all is settled; stamps that the sink refuses are drops of the next flush."""
    probe.arrived(MESSAGE, EPOCH_US)
    assert probe.flush()
    sink.is_full = True
    probe.arrived(MESSAGE, EPOCH_US)
    assert not probe.flush(patience_s=1)
    sink.is_full = False
    assert probe.flush()
    assert (probe.dropped, [drop.count for drop in drops(sink.records)]) == (1, [1])


def test_what_has_no_sink_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that does nothing leaves nothing open."""
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    assert Probe("orders", "router").flush()


def test_a_probe_that_follows_completes_only_what_it_has_caught_up_with(sink: MemorySink, clock: ManualClock) -> None:
    """Nothing at first, never more than the clock says, and never less than before."""
    with Probe("orders", "router", sink, clock=clock, follows=True, flush_every_s=1e6, heartbeat_every_s=1e6) as probe:
        for caught_up_s in (None, 1, 0, 100):
            clock.advance(2)
            probe.arrived(MESSAGE, EPOCH_US)
            if caught_up_s is not None:
                probe.caught_up(EPOCH_US + caught_up_s * 1_000_000)
            probe.flush()
    through_us = [decode(record).complete_through_us for record in sink.records]
    caught_up_us = [EPOCH_US + 1_000_000, EPOCH_US + 1_000_000, EPOCH_US + 8_000_000, EPOCH_US + 8_000_000]
    assert through_us == [0, 0, *caught_up_us]


def test_a_probe_that_does_not_follow_goes_by_the_clock(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Without ``follows`` a probe completes by the clock, and ``caught_up`` changes nothing."""
    clock.advance(1)
    probe.arrived(MESSAGE, EPOCH_US)
    probe.caught_up(EPOCH_US)
    probe.flush()
    assert decode(sink.records[-1]).complete_through_us == EPOCH_US + 1_000_000


def test_a_probe_may_end_without_a_bye(sink: MemorySink, clock: ManualClock) -> None:
    """With ``bye=False`` the rest is sent, and a heartbeat instead of the bye."""
    probe = Probe("orders", "router", sink, clock=clock)
    probe.arrived(MESSAGE, EPOCH_US)
    probe.close(bye=False)
    assert [decode(record).kind for record in sink.records] == [BatchKind.HEARTBEAT, BatchKind.OBSERVATIONS]
    sink.records.clear()
    Probe("orders", "router", sink, clock=clock).close(bye=False)
    assert [decode(record).kind for record in sink.records] == [BatchKind.HEARTBEAT, BatchKind.HEARTBEAT]
