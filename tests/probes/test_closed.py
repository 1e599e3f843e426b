"""Tests of a probe that is used after its close: stamps are counted, logged once, and never raise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopwatch import Probe
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.errors import ProbeError
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.drops import drops

TOLD = "a probe of orders at router is closed, and drops what is stamped: close it after the last message"


def passing(probe: Probe) -> None:
    """Stamp both sides of a message."""
    with probe.passing(1, EPOCH_US):
        pass


USES: dict[str, tuple[Callable[[Probe], object], int]] = {
    "arrived": (lambda probe: probe.arrived(1, EPOCH_US), 1),
    "departed": (lambda probe: probe.departed(1, EPOCH_US), 1),
    "passing": (passing, 2),
    "filtered": (lambda probe: probe.filtered(1, EPOCH_US, "test"), 1),
    "rejected": (lambda probe: probe.rejected(1, EPOCH_US), 1),
    "arrived_many": (lambda probe: probe.arrived_many([1, 2, 3], [EPOCH_US] * 3), 3),
    "departed_many": (lambda probe: probe.departed_many(np.arange(3), [EPOCH_US] * 3), 3),
    "arrays that cannot be": (lambda probe: probe.arrived_many(["a", 1.5], [EPOCH_US] * 2), 2),  # type: ignore[arg-type]  # a host may pass anything
    "missed": (lambda probe: probe.missed("unreadable"), 1),
    "bad id": (lambda probe: probe.arrived(object(), EPOCH_US), 1),  # type: ignore[arg-type]  # a host may pass anything
    "bad event time": (lambda probe: probe.arrived(1, "now"), 1),  # type: ignore[arg-type]  # as above
    "no messages": (lambda probe: probe.arrived_many([], []), 0),
    "flush": (lambda probe: probe.flush(), 0),
    "caught_up": (lambda probe: probe.caught_up(EPOCH_US), 0),
    "close": (lambda probe: probe.close(), 0),
}


@pytest.mark.parametrize(("use", "count"), USES.values(), ids=USES)
def test_what_is_stamped_after_the_end_is_counted_and_told_once(
    use: Callable[[Probe], object], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Stamps after the close are counted, however many, and logged once; the transport hears nothing after the bye."""
    sink = MemorySink()
    probe = Probe("orders", "router", sink, clock=ManualClock())
    probe.missed("before")
    probe.close()
    said = list(sink.records)
    caplog.clear()
    for _ in range(3):
        use(probe)
    assert probe.dropped == 1 + 3 * count
    assert [record.getMessage() for record in caplog.records] == ([TOLD] if count else [])
    assert sink.records == said


def test_what_is_stamped_while_a_probe_closes_is_told_with_the_bye() -> None:
    """A stamp made while the probe closes is counted before the last record, so that its minute is not complete."""

    class Busy(MemorySink):
        """Has its host stamp while the probe sends what is left."""

        def send(self, record: bytes) -> bool:
            """Stamp before the first record of the end is taken."""
            if decode(record).count:
                probe.arrived(2, EPOCH_US)
            return super().send(record)

    sink = Busy()
    probe = Probe("orders", "router", sink, clock=ManualClock())
    probe.arrived(1, EPOCH_US)
    probe.close()
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("closed", 1)]
    assert probe.dropped == 1


def test_a_child_that_closes_its_probe_before_it_stamps_counts_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A closed probe in a child leaves no instance behind, and counts its stamps as dropped."""
    probe = Probe("orders", "router", f"spool:{tmp_path}")
    probe.close()
    probe.start_anew()  # as in the child of a fork
    probe.close()
    caplog.clear()
    for _ in range(2):
        probe.arrived(1, EPOCH_US)
        probe.arrived_many([1, 2], [EPOCH_US] * 2)
    assert (probe.dropped, [record.getMessage() for record in caplog.records]) == (6, [TOLD])
    assert len(list(tmp_path.iterdir())) == 1


def test_strict_raises_what_it_would_drop() -> None:
    """For development, as at any other drop."""
    probe = Probe("orders", "router", MemorySink(), clock=ManualClock(), strict=True)
    probe.close()
    with pytest.raises(ProbeError) as caught:
        probe.arrived(1, EPOCH_US)
    assert str(caught.value) == TOLD
    assert probe.dropped == 0


def test_a_probe_that_does_nothing_does_nothing_after_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """Without a sink nothing is dropped by it."""
    probe = Probe("orders", "router")
    probe.close()
    caplog.clear()
    probe.arrived(1, EPOCH_US)
    assert (probe.dropped, caplog.records) == (0, [])
