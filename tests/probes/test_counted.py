"""Counts of a probe at a node that only counts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Metrics, MetricsStamp
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.fingerprints import take_fingerprint
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.lag_histograms import count_lags, find_middles
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.pending_counts import MAX_NUMBER, MAX_WINDOWS, Count, PendingCounts
from hopwatch.probes.probe import Probe
from hopwatch.probes.testing import EPOCH_US, ManualClock, MemorySink
from tests.model.counts import fingerprint
from tests.model.lag_histogram import histogram, write

MINUTE_MS: Final = EPOCH_US // 60_000_000 * 60_000
_BUCKETS_MS: Final = np.unique(find_middles(np.arange(-7_296, 7_296)) // 1_000)
WIDE_MS: Final = _BUCKETS_MS[np.abs(_BUCKETS_MS) < 2**53]
"""Lags in more buckets than a real minute has."""
SIGNED: Final = st.integers(-(2**63), 2**63 - 1)


def _run(*calls: dict[str, Any], sink: MemorySink | None = None, strict: bool = False) -> list[Batch]:
    """Return the batches of a probe that counted, its hello and its bye left out."""
    sink = sink or MemorySink()
    probe = Probe("orders", "packets", sink, clock=ManualClock(), strict=strict, close_on_sigterm=False)
    for call in calls:
        probe.counted(**{"event_time": EPOCH_US} | call)
    probe.flush()
    probe.close()
    return [batch for batch in map(decode, sink.records) if batch.kind is not BatchKind.BYE][1:]


def _metrics(*calls: dict[str, Any]) -> tuple[Metrics, ...]:
    return next(batch.metrics for batch in _run(*calls) if batch.kind is BatchKind.METRICS)


def test_counts_of_a_minute_are_one_numbered_packet_and_a_heartbeat_completes_it() -> None:
    """Number, bytes and window of what was counted, and behind it the moment up to which it was."""
    packet, heartbeat = _run({"count": 3, "size_bytes": 10}, {"count": 4, "size_bytes": 5})
    assert (packet.kind, packet.seq, packet.window_start_ms, packet.count) == (BatchKind.METRICS, 1, MINUTE_MS, 0)
    assert packet.metrics == (Metrics(MetricsStamp.IN, 7, size_bytes=15),)
    assert (heartbeat.kind, heartbeat.seq) == (BatchKind.HEARTBEAT, 2)


@given(st.lists(st.lists(st.binary(min_size=16, max_size=16), max_size=4), min_size=1, max_size=4))
def test_the_fingerprint_of_parts_is_that_of_all_ids(parts: list[list[bytes]]) -> None:
    """As the page defines it, however the ids were passed; ids that come twice are in it twice."""
    (found,) = _metrics(*({"message_ids": part} for part in parts))
    ids = [message_id for part in parts for message_id in part]
    assert (found.count, (found.id_xor, found.id_sum)) == (len(ids), fingerprint(ids))


def test_one_part_without_ids_leaves_all_without_a_fingerprint() -> None:
    """A number says nothing of which messages it counted; no messages at all take nothing away."""
    some = {"message_ids": [1, 2]}
    assert _metrics(some, {"count": 1}, some)[0].id_xor == 0
    assert _metrics({"count": 0}, some, {"count": 0}) == _metrics(some)


def test_stamps_are_counted_apart() -> None:
    """One record has what arrived and what became of it."""
    found = _metrics(*({"count": place + 1, "stamp": stamp.name.lower()} for place, stamp in enumerate(MetricsStamp)))
    assert [(one.stamp, one.count) for one in found] == [(stamp, stamp + 1) for stamp in MetricsStamp]


def test_windows_are_records_of_their_own() -> None:
    """The earliest first."""
    batches = _run({"count": 1}, {"count": 2, "event_time": EPOCH_US - 60_000_000})
    found = [(batch.window_start_ms, batch.metrics[0].count) for batch in batches if batch.metrics]
    assert found == [(MINUTE_MS - 60_000, 2), (MINUTE_MS, 1)]


REFUSED: dict[str, tuple[dict[str, Any], str, int]] = {
    "nothing": ({}, "a count is a number, or the ids of the messages, got neither", 0),
    "both": ({"count": 1, "message_ids": [1]}, "the ids of the messages, got both", 1),
    "a negative count": ({"count": -1}, "a count lies in 0 … 2\\^63 - 1, got -1", 0),
    "a count of 2^63": ({"count": 2**63}, f"got {2**63}", 0),
    "a huge count": ({"count": 2**200}, "got a greater one", 0),
    "a fraction": ({"count": 1.5}, "a count is a whole number, got float", 0),
    "true": ({"count": True}, "a count is a whole number, got bool", 0),
    "a negative size": ({"count": 2, "size_bytes": -1}, "a size in bytes lies in", 2),
    "another stamp": ({"count": 2, "stamp": "both"}, "counted at one of in, out, filtered, rejected, deferred, got", 2),
    "seconds": ({"count": 2, "event_time": 1_700_000_000}, "looks like seconds: multiply it by 1,000,000", 2),
    "a day ago": ({"count": 2, "event_time": EPOCH_US - 90_000_000_000}, "an event time is at most 24 h old", 2),
    "bad ids": ({"message_ids": [1, -2]}, "an integer message id lies in", 2),
    "a lag that is no number": (
        {"count": 2, "lags_ms": [1.0, float("nan")]},
        "lags are finite numbers of milliseconds, got nan",
        2,
    ),
    "a lag without end": ({"count": 1, "lags_ms": [float("-inf")]}, "finite numbers of milliseconds, got -inf", 1),
    "a lag of ages": (
        {"count": 1, "lags_ms": [2.0**60]},
        "lags lie in -2\\^53 … 2\\^53 ms, got 1.152921504606847e",
        1,
    ),
    "texts as lags": ({"count": 1, "lags_ms": ["5"]}, "lags are numbers, got <U1", 1),
    "truths as lags": ({"count": 1, "lags_ms": [True]}, "lags are numbers, got bool", 1),
    "a table of lags": ({"count": 4, "lags_ms": [[1, 2], [3, 4]]}, "an array of one dimension, got 2", 4),
    "a lag too few": ({"count": 3, "lags_ms": [1, 2]}, "a lag of each of the 3 messages, or of none, got 2", 3),
    "a lag too many": (
        {"message_ids": [1], "lags_ms": [1, 2]},
        "a lag of each of the 1 messages, or of none, got 2",
        1,
    ),
    "counts of no lags": ({"count": 1, "lag_counts": [1]}, "counts of lags are of lags, got none of these", 1),
    "a count too few": ({"count": 3, "lags_ms": [1, 2], "lag_counts": [3]}, "a count of each of the 2 lags, got 1", 3),
    "a negative count of a lag": (
        {"count": 1, "lags_ms": [1, 2], "lag_counts": [2, -1]},
        "counts of lags lie in 0 … 2\\^63 - 1, got -1 to 2",
        1,
    ),
    "half a message": ({"count": 1, "lags_ms": [1, 2], "lag_counts": [0.5, 0.5]}, "are whole numbers, got float64", 1),
    "other counts of lags": (
        {"count": 5, "lags_ms": [1, 2], "lag_counts": [2, 2]},
        "a lag of each of the 5 messages, or of none, got 4",
        5,
    ),
    "too many lags": (
        {"count": 2**42, "lags_ms": [1], "lag_counts": [2**42]},
        "a lag histogram has at most 2\\^42 - 1 lags, got 4398046511104",
        2**42,
    ),
    "a wide histogram of many": (
        {"count": 2**28 * len(WIDE_MS), "lags_ms": WIDE_MS, "lag_counts": np.full(len(WIDE_MS), 2**28)},
        "a lag histogram has at most 65536 bytes, got \\d+: count in parts",
        2**28 * len(WIDE_MS),
    ),
}


@pytest.mark.parametrize(("call", "message", "dropped"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_counted_is_dropped_and_told(
    call: dict[str, Any], message: str, dropped: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Strict, it raises; else as many as it may be of are dropped, and where nobody knows, there is a hole."""
    with pytest.raises(ProbeError, match=message):
        _run(call, strict=True)
    batches = _run(call)
    told = sum(drop.count for batch in batches for drop in batch.drops if "perhaps" not in drop.cause)
    assert told == dropped
    assert ("messages cannot be counted" in caplog.text) is not bool(dropped)
    assert all(batch.complete_through_us <= EPOCH_US for batch in batches)


LAGS_MS: Final = st.lists(
    st.integers(-(10**6), 10**9) | st.floats(-(10.0**6), 10.0**9, allow_nan=False), min_size=1, max_size=50
)


@given(st.lists(LAGS_MS, min_size=1, max_size=4))
def test_the_histogram_of_parts_is_that_of_all_lags(parts: list[list[float]]) -> None:
    """To the nearest µs, as the model has it, however the lags were passed."""
    (found,) = _metrics(*({"count": len(part), "lags_ms": part} for part in parts))
    lags_us = [round(lag * 1_000) for part in parts for lag in part]
    assert found == Metrics(MetricsStamp.IN, len(lags_us), lag_histogram=write(histogram(lags_us)))


@pytest.mark.parametrize("kind", ["i1", "u1", "i8", "u8", "f4", "f8"])
def test_lags_are_numbers_of_any_width(kind: str) -> None:
    """Milliseconds in a byte are not cut when they become microseconds."""
    lags = np.array([100, 3, 100], kind)
    (found,) = _metrics({"count": 3, "lags_ms": lags})
    (ready,) = _metrics({"count": 3, "lags_ms": np.array([3, 100], kind), "lag_counts": [1, 2]})
    assert found.lag_histogram == ready.lag_histogram == write(histogram([3_000, 100_000, 100_000]))


def test_parts_that_told_no_lag_take_none_away() -> None:
    """The lags are of those messages of which it is known; of no messages there are none."""
    some = {"count": 2, "lags_ms": [1, 2]}
    (found,) = _metrics({"count": 5}, some, {"count": 0, "lags_ms": []}, {"count": 1})
    assert (found.count, found.lag_histogram) == (8, write(histogram([1_000, 2_000])))


def test_lags_beyond_the_wire_are_left_out() -> None:
    """All messages are counted, and the lags that came first are told."""
    counts, few = PendingCounts(), count_lags(np.zeros(1, np.int64))
    most = count_lags(find_middles(np.arange(-7_296, 7_296)), np.full(14_592, 2**27))
    assert counts.add(Count(0, MetricsStamp.IN, 1, lags=few))
    assert counts.add(Count(0, MetricsStamp.IN, 2**27 * 14_592, lags=most))
    taken = counts.take_window()
    assert taken is not None
    assert (taken[1][0].count, taken[1][0].lag_histogram) == (2**27 * 14_592 + 1, few)


def test_what_the_sink_refuses_is_dropped_by_its_number() -> None:
    """Drops of one window count up to 2^53, so that the record that tells them can be sent."""
    sink = MemorySink()
    probe = Probe("orders", "packets", sink, clock=ManualClock(), close_on_sigterm=False)
    probe.flush()
    sink.is_full = True
    for _ in range(2):
        probe.counted(EPOCH_US, MAX_NUMBER)
        probe.flush()
    sink.is_full = False
    probe.close()
    (told,) = [batch.drops for batch in map(decode, sink.records) if batch.drops]
    assert told == (Drop(MINUTE_MS, 2**53, "sink refused"),)


def test_a_closed_probe_drops_what_it_counts() -> None:
    """As it does with stamps."""
    probe = Probe("orders", "packets", MemorySink(), clock=ManualClock(), close_on_sigterm=False)
    probe.close()
    probe.counted(EPOCH_US, 5)
    assert probe.dropped == 5


def test_counts_wait_within_bounds() -> None:
    """There is room for the windows of a week, and for as many messages as the wire can tell."""
    counts = PendingCounts()
    assert all(counts.add(Count(window, MetricsStamp.IN, 1)) for window in range(MAX_WINDOWS))
    assert not counts.add(Count(MAX_WINDOWS, MetricsStamp.IN, 1))
    assert counts.add(Count(0, MetricsStamp.IN, MAX_NUMBER - 1))
    assert not counts.add(Count(0, MetricsStamp.IN, 1))


@given(st.lists(st.binary(min_size=16, max_size=16)))
def test_a_fingerprint_is_what_the_page_says(message_ids: list[bytes]) -> None:
    """Array by array as id by id."""
    found = take_fingerprint(np.frombuffer(b"".join(message_ids), np.uint64).reshape(-1, 2))
    assert tuple(part % 2**64 for part in fingerprint(message_ids)) == found


def test_ids_count_as_they_do_as_stamps() -> None:
    """A UUID, an integer and a text have the 16 bytes that they have in an observation."""
    ids = ["order-17", 17]
    assert _metrics({"message_ids": ids})[0].id_xor == fingerprint([id_bytes("order-17"), id_bytes(17)])[0]
