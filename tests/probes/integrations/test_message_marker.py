"""Tests of the marking that all clients have in common."""

from __future__ import annotations

from typing import Any

import pytest

from hopwatch.integrations.message_marker import MessageMarker
from hopwatch.probes import Probe
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.drops import drops

MARKED = {b"hopwatch-id": b"order 7", b"hopwatch-time": b"%d" % EPOCH_US, b"own": b"1"}


def test_headers_of_bytes_are_read(probe: Probe, sink: MemorySink) -> None:
    """Some clients return names as bytes; what is passed on stays as it is."""
    marker = MessageMarker(probe, "redis")
    marker.stamp_arrival(MARKED, "orders")
    message, marked = marker.mark(MARKED)
    assert (message, marked) == ((id_bytes("order 7"), EPOCH_US), MARKED)
    probe.flush()
    assert observations(sink) == [Observation(id_bytes("order 7"), EPOCH_US, EPOCH_US + 1, None)]


def test_a_message_that_is_made_gets_headers_behind_its_own(probe: Probe) -> None:
    """Of a mapping, of pairs, or of nothing."""
    marker = MessageMarker(probe, "redis", clock=ManualClock())
    for headers in ({"own": b"1"}, [("own", b"1")], None):
        message, marked = marker.mark(headers)
        assert message is not None
        assert message.event_us == EPOCH_US
        own = [] if headers is None else ["own"]
        assert [name for name, _ in list(marked or ())] == [*own, "hopwatch-id", "hopwatch-time"]


def test_headers_that_are_none_raise_nothing(probe: Probe, sink: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    """Each message counts as one that was missed, and the log says so once."""
    marker = MessageMarker(probe, "redis")
    headers: Any = 7
    for _ in range(2):
        assert marker.mark(headers)[0] is None
        marker.stamp_arrival(headers, "orders")
    told = [one.getMessage() for one in caplog.records]
    assert told == ["an instrumented client of redis failed to stamp a message"]
    probe.flush()
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("bad marks", 4)]
