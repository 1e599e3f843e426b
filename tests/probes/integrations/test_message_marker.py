"""Tests of the marking that all clients have in common."""

from __future__ import annotations

from typing import Any
from uuid import UUID

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


def test_a_message_that_is_sent_in_a_block_is_stamped_behind_it(probe: Probe, sink: MemorySink) -> None:
    """The new headers are text behind its own, and the block may await the server's answer."""
    marker = MessageMarker(probe, "redis", clock=ManualClock())
    with marker.sending({"own": b"1"}) as headers:
        assert list(headers) == ["own", "hopwatch-id", "hopwatch-time"]
        assert headers["own"] == b"1"
        assert headers["hopwatch-time"] == str(EPOCH_US)
        probe.flush()
        assert observations(sink) == []
    probe.flush()
    (sent,) = observations(sink)
    assert sent[:2] == (UUID(headers["hopwatch-id"]).bytes, EPOCH_US)
    assert (sent.in_us, sent.out_us is None) == (None, False)


def test_a_message_that_is_passed_on_is_stamped_at_both_ends_of_a_block(probe: Probe, sink: MemorySink) -> None:
    """No headers are needed but those that it came with."""
    marker = MessageMarker(probe, "redis")
    with marker.passing(MARKED, "orders"), marker.sending(MARKED) as headers:
        pass
    assert headers == MARKED
    probe.flush()
    assert {one.message_id for one in observations(sink)} == {id_bytes("order 7")}
    assert any(one.in_us is not None and one.out_us is not None for one in observations(sink))


def test_a_block_that_fails_sends_nothing(probe: Probe, sink: MemorySink) -> None:
    """The exception is that of the host; the message has arrived, and has not left."""
    marker = MessageMarker(probe, "redis")
    with pytest.raises(ConnectionError), marker.passing(MARKED, "orders"):
        raise ConnectionError
    with pytest.raises(ConnectionError), marker.sending():
        raise ConnectionError
    probe.flush()
    (seen,) = observations(sink)
    assert (seen.message_id, seen.out_us) == (id_bytes("order 7"), None)


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        (7, {}),
        ([1, 2], {}),
        ({"hopwatch-id": b"order 7"}, {"hopwatch-id": "order 7"}),
        ({"hopwatch-id": b"\xff"}, {"hopwatch-id": b"\xff"}),
    ],
)
def test_a_block_with_headers_that_are_none_runs_all_the_same(
    probe: Probe,
    sink: MemorySink,
    headers: Any,  # noqa: ANN401 - what may be given by mistake
    sent: dict[str, object],
) -> None:
    """The host has its own headers where there are any, and each block counts as one message that was missed."""
    marker = MessageMarker(probe, "redis")
    with marker.sending(headers) as given:
        assert given == sent
    with marker.passing(headers, "orders"):
        pass
    probe.flush()
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("bad marks", 2)]
    assert observations(sink) == []


def test_a_message_without_marks_is_missed_once(probe: Probe, sink: MemorySink) -> None:
    """One block that passes it on counts one drop."""
    marker = MessageMarker(probe, "redis")
    with marker.passing({"own": b"1"}, "orders"):
        pass
    probe.flush()
    assert [(drop.cause, drop.count) for drop in drops(sink.records)] == [("unmarked message", 1)]
