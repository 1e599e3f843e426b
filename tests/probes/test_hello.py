"""Tests of the hello: an instance is announced before its first stamp counts, whatever its sink does."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hopwatch.probes import Probe, lifecycle
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.packing import PackedBatch
from hopwatch.probes.recorder import Stamp, StampKind, build_batches
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.startup import open_probe
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations
from tests.support.probe_host import spooled
from tests.support.sender_bench import Bench

UNANNOUNCED = "a probe of orders at router could not announce itself within"


class Settling(MemorySink):
    """A sink that writes down what it had when it was asked to settle, and how long it might take."""

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.settled: list[tuple[int, float]] = []

    def settle(self, patience_s: float) -> bool:
        """Write it down."""
        self.settled.append((len(self.records), patience_s))
        return True


def test_a_sender_says_hello_as_it_starts_and_settles_it() -> None:
    """Number 0, no observations, complete up to the epoch and no further."""
    sink = Settling()
    bench = Bench(sink)
    bench.clock.advance(3)
    bench.sender.start(0.5)
    assert bench.said() == [(0, BatchKind.HEARTBEAT, 0, 0)]
    assert sink.settled == [(1, 0.5)]
    bench.sender.close(30)


def test_a_probe_in_a_spool_can_be_read_when_it_is_made(tmp_path: Path) -> None:
    """The hello is a segment of its own."""
    probe = Probe("orders", "router", f"spool:{tmp_path}")
    assert [path.name for path in tmp_path.rglob("*.*") if path.is_file()] == ["0000000000.seg"]
    probe.close()


def test_a_tap_says_hello_and_completes_nothing(tmp_path: Path) -> None:
    """A tap says hello and completes nothing, as its source may be older than itself."""
    probe, _ = open_probe("orders", "router", f"spool:{tmp_path}", RunContext(print))
    ((folder, (hello,)),) = spooled(tmp_path).items()
    assert (hello.seq, hello.kind, hello.count, hello.complete_through_us) == (0, BatchKind.HEARTBEAT, 0, 0)
    # A folder of another name would be an instance of its own, which never says anything.
    assert folder == f"orders.router.{hello.probe}.{hello.epoch_us}"
    probe.close()


def test_until_the_hello_is_taken_nothing_else_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    """A sink that refuses costs a line; stamps and what is offered wait, and come behind number 0."""
    bench = Bench()
    bench.sink.is_full = True
    bench.sender.start(0.01)
    assert [message.startswith(UNANNOUNCED) for message in caplog.messages] == [True]
    bench.arrive(1)
    bench.clock.advance(10)
    assert not bench.sender.settle(0)
    packed = build_batches([Stamp(StampKind.ARRIVED, 2, EPOCH_US, EPOCH_US * 1_000)], 0)[0]

    def pack(_: int) -> list[PackedBatch]:
        return packed

    assert not bench.sender.offer(pack)
    bench.sink.is_full = False
    assert bench.sender.offer(pack)
    assert bench.sender.settle(0)
    assert bench.said()[0] == (0, BatchKind.HEARTBEAT, 0, 0)
    assert [row.message_id for row in observations(bench.sink)] == [id_bytes(2), id_bytes(1)]
    assert bench.sender.dropped_total == 0
    bench.sender.close(30)
    assert len(caplog.messages) == 1


def test_what_waits_for_the_hello_is_counted_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """A sink that never takes anything keeps nobody from ending, and no stamp passes for sent."""
    bench = Bench()
    bench.sink.is_full = True
    bench.sender.start(0.01)
    bench.arrive(1, 2)
    bench.sender.close(30)
    assert (bench.sender.dropped_total, bench.sink.records) == (2, [])
    assert caplog.messages[0].startswith(UNANNOUNCED)


def test_a_sink_that_hangs_holds_up_its_host_no_longer_than_the_bound(caplog: pytest.LogCaptureFixture) -> None:
    """The host goes on with one line in its log, though the sink has not come back."""
    leave = threading.Event()

    class Hanging(MemorySink):
        def settle(self, patience_s: float) -> bool:
            return leave.wait(30 + patience_s)

    since_s = time.monotonic()
    probe = Probe("orders", "router", Hanging(), announce_within_s=0.05)
    probe.arrived(1, EPOCH_US)
    assert time.monotonic() - since_s < 10
    assert [message.startswith(f"{UNANNOUNCED} 0.05 s") for message in caplog.messages] == [True]
    leave.set()
    probe.close()


@pytest.mark.parametrize("method", ["send", "settle", "tick", "failed"])
def test_a_sink_that_raises_as_it_is_told_hello_reaches_no_host(
    monkeypatch: pytest.MonkeyPatch, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The probe goes on, and once the sink is well again all is sent."""
    sink = MemorySink()

    def fail(*_: object) -> None:
        raise RuntimeError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(sink, method, fail)
        probe = Probe("orders", "router", sink, clock=ManualClock())
        probe.arrived(1, EPOCH_US)
    probe.close()
    assert [row.message_id for row in observations(sink)] == [id_bytes(1)]
    assert sum(UNANNOUNCED in message for message in caplog.messages) == (method in {"send", "settle"})


def test_without_a_thread_a_probe_is_announced_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a thread the hello is sent, and stamps wait for a flush or the end."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    sink = Settling()
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle.ProbeThread, "start", start)
        probe = Probe("orders", "router", sink, clock=ManualClock())
    assert (len(sink.records), sink.settled) == (1, [(1, 1.0)])
    assert caplog.messages == ["a probe has no thread, and sends only where it is asked to: can't start new thread"]
    probe.arrived(1, EPOCH_US)
    assert probe.flush()
    probe.close()
    assert len(sink.records) == 3


def test_a_spool_that_recovers_has_the_hello_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A spool that failed takes the hello first, and then the rest in order."""
    clock = ManualClock()
    root = tmp_path / "spool"
    root.write_text("in the way")
    probe = Probe("orders", "router", SpoolSink(root, "orders", clock), clock=clock, announce_within_s=0.01)
    probe.arrived(1, EPOCH_US)
    assert not probe.flush()
    root.unlink()
    clock.advance(1)
    assert probe.flush()
    probe.close()
    (batches,) = spooled(tmp_path).values()
    assert [(batch.seq, batch.count) for batch in batches] == [(0, 0), (1, 1), (2, 0)]
    assert sum(UNANNOUNCED in message for message in caplog.messages) == 1
