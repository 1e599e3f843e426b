"""Examples of the public API whose types mypy holds: a use that is right, and errors that it has to report.

An ``ignore`` that mypy does not need is an error of ``make check``, so that each wrong use below stays wrong.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import assert_type

import numpy as np
import pytest

from hopwatch import Probe
from hopwatch.probes.errors import ProbeError
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, id_bytes, observations


def test_a_service_is_typed_from_its_probe_to_its_observations() -> None:
    """Every kind of id and event time is accepted, and what is read back has a type of its own."""
    sink, clock = MemorySink(), ManualClock()
    with Probe("orders", "router", sink, clock=clock, strict=True) as probe:
        assert_type(probe, Probe)
        for message_id in ("order-17", 17, uuid.UUID(int=18), bytes(16)):
            probe.arrived(message_id, EPOCH_US)
        with probe.passing("order-18", datetime.fromtimestamp(EPOCH_US / 1e6, UTC)):
            clock.advance(0.5)
        probe.filtered("order-19", EPOCH_US, reason="test order")
        probe.departed_many(np.zeros((2, 16), np.uint8), np.full(2, EPOCH_US))
        assert_type(probe.dropped, int)
    found = assert_type(observations(sink), list[Observation])
    assert id_bytes("order-18") in [one.message_id for one in found]
    assert {one.event_us for one in found} == {EPOCH_US}
    assert assert_type(found[0].in_us, int | None) is not None


def test_an_id_that_is_none_is_an_error_of_its_type() -> None:
    """A type checker reports what a strict probe refuses at run time."""
    with Probe("orders", "router", MemorySink(), strict=True) as probe:
        with pytest.raises(ProbeError):
            probe.arrived(1.5, EPOCH_US)  # type: ignore[arg-type]
        with pytest.raises(ProbeError):
            probe.filtered("order-17", EPOCH_US, reason=17)  # type: ignore[arg-type]
