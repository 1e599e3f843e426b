"""Tests of a fault in each function of the sender: the host hears nothing of it, and no loss is vouched for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

import pytest

from hopwatch.probes import Probe, sender
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.drop_ledger import DropLedger
from hopwatch.probes.sender import Sender
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.fault_injection import raising

FUNCTIONS: Final = [
    (owner, name) for owner in (Sender, DropLedger) for name, _ in inspect.getmembers(owner, inspect.isfunction)
] + [(sender, name) for name, of in inspect.getmembers(sender, inspect.isfunction) if of.__module__ == sender.__name__]
"""All that there are, so that a new one is among them."""
TIMES: Final = [1, 1_000_000]
PROPERTIES: Final = ["waiting"]
STAMPS: Final = 12
"""So many observations has the host, which are one or two stamps each."""


def all_calls(probe: Probe, first: int) -> None:
    """Do all that a host does with a probe, six observations."""
    probe.arrived(first, EPOCH_US)
    probe.departed(first + 1, EPOCH_US)
    with probe.passing(first + 2, EPOCH_US):
        pass
    probe.filtered(first + 3, EPOCH_US, "test")
    probe.arrived_many([first + 4], [EPOCH_US])
    probe.missed("unreadable", EPOCH_US)
    probe.caught_up(EPOCH_US)
    probe.flush(0.1)
    assert probe.dropped >= 0


def vouched(records: list[bytes]) -> Iterator[Batch]:
    """Yield the batches up to the last whose moment is complete, without a hole before it."""
    for place, record in enumerate(records):
        batch = decode(record)
        if batch.seq != place:
            return
        yield batch


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # where it is the thread's own
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize(("owner", "name"), FUNCTIONS, ids=[name for _, name in FUNCTIONS])
def test_a_fault_in_any_function_reaches_no_host_and_hides_no_loss(owner: object, name: str, times: int) -> None:
    """An error in any function, once or always, reaches no host, and every stamp is sent or counted."""
    for begins_before in (True, False):
        sink, clock = MemorySink(), ManualClock()
        if begins_before:
            with raising(owner, name, MemoryError, times):
                probe = Probe("orders", "router", sink, clock=clock, announce_within_s=0.1)
                all_calls(probe, 0)
        else:
            probe = Probe("orders", "router", sink, clock=clock, announce_within_s=0.1)
            with raising(owner, name, MemoryError, times):
                all_calls(probe, 0)
        clock.advance(1)
        all_calls(probe, 10)
        with raising(owner, name, MemoryError, times):
            probe.close()
        assert_honest(probe, sink.records)


def assert_honest(probe: Probe, records: list[bytes]) -> None:
    """Hold what a monitor would believe of a probe against what its host has done."""
    batches = list(vouched(records))
    told = sum(batch.count + sum(drop.count for drop in batch.drops) for batch in batches)
    is_vouched = bool(batches) and len(batches) == len(records) and batches[-1].kind is BatchKind.BYE
    assert not is_vouched or told >= STAMPS, (told, probe.dropped)


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_fault_in_what_is_asked_often_reaches_no_host(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the properties that each call reads reaches no host."""

    def fail(_: Sender) -> int:
        raise MemoryError(name)

    probe = Probe("orders", "router", MemorySink(), clock=ManualClock())
    with monkeypatch.context() as patched:
        patched.setattr(Sender, name, property(fail))
        all_calls(probe, 0)
    probe.close()


def test_all_functions_are_among_them() -> None:
    """The table is of what the module has, and not of what somebody remembered."""
    assert len(FUNCTIONS) > 40
    assert {"_run", "close", "settle", "_log_error"} <= {name for _, name in FUNCTIONS}
