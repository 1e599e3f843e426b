"""Tests of ``Probe`` with arrays: the forms they may have, and what becomes of those that cannot be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import ArrayLike

from hopwatch import Probe
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, WireIdKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.recorder import MessageId
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations
from tests.support.drops import drops

MINUTE_MS = EPOCH_US // 1_000
IDS = [id_bytes(number) for number in (1, 2, 3)]
EVENTS = [EPOCH_US, EPOCH_US + 1, EPOCH_US + 60_000_000]


@pytest.fixture
def probe(sink: MemorySink) -> Iterator[Probe]:
    """Yield a probe with room for four stamps, on a clock that stands."""
    with Probe("orders", "router", sink, clock=ManualClock(), most_stamps=4) as opened:
        yield opened


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2, 3],
        np.array([1, 2, 3], np.uint8),
        np.array([[1, 2, 3], [0, 0, 0]]).T[:, 0],
        b"".join(IDS),
        np.array(IDS, "V16"),
        np.array(IDS, "S16"),
        np.frombuffer(b"".join(IDS), np.uint8).reshape(-1, 16),
        np.asfortranarray(np.frombuffer(b"".join(IDS), np.uint8).reshape(-1, 16)),
    ],
    ids=["list", "uint8", "strided", "bytes", "V16", "S16", "rows", "columns"],
)
@pytest.mark.parametrize("events", [EVENTS, np.array(EVENTS, "datetime64[us]"), np.array(EVENTS, np.uint64)])
def test_arrays_come_in_every_form_that_is_promised(
    probe: Probe, sink: MemorySink, ids: ArrayLike, events: ArrayLike
) -> None:
    """Ids as integers, items or rows of bytes, event times as numbers or datetime64 come out alike."""
    probe.arrived_many(ids, events)
    probe.flush()
    assert [row[:2] for row in observations(sink)] == list(zip(IDS, EVENTS, strict=True))


def of_messages(sink: MemorySink) -> list[Batch]:
    """Return the batches that have observations."""
    return [batch for batch in map(decode, sink.records) if batch.count]


TEXTS = ["order 1", "größe", "x\0"]
UUIDS = [uuid.UUID(int=number) for number in (1, 2, 3)]
MANY: dict[str, tuple[Any, WireIdKind, list[Any]]] = {
    "a list of texts": (TEXTS, WireIdKind.TEXT, TEXTS),
    "a tuple of texts": (tuple(TEXTS), WireIdKind.TEXT, TEXTS),
    "objects": (np.array(TEXTS, object), WireIdKind.TEXT, TEXTS),
    "texts of numpy": (np.array([*TEXTS[:2], "z"]), WireIdKind.TEXT, [*TEXTS[:2], "z"]),
    "a column of pandas": (pd.Series(TEXTS), WireIdKind.TEXT, TEXTS),
    "an array of pyarrow": (pa.array(TEXTS), WireIdKind.TEXT, TEXTS),
    "a chunked array": (pa.chunked_array([TEXTS[:1], TEXTS[1:]]), WireIdKind.TEXT, TEXTS),
    "UUIDs": (UUIDS, WireIdKind.UUID, UUIDS),
    "UUIDs as objects": (np.array(UUIDS, object), WireIdKind.UUID, UUIDS),
    "numbers of numpy": ([np.int64(1), np.uint8(2), 3], WireIdKind.INT, [1, 2, 3]),
    "large numbers": ([2**127, 2**64, 1], WireIdKind.INT, [2**127, 2**64, 1]),
    "integers of pyarrow": (pa.array([1, 2, 3]), WireIdKind.INT, [1, 2, 3]),
    "items of bytes": ([one.bytes for one in UUIDS], WireIdKind.BYTES, UUIDS),
    "fixed items of pyarrow": (pa.array([one.bytes for one in UUIDS], pa.binary(16)), WireIdKind.BYTES, UUIDS),
}


@pytest.mark.parametrize(("ids", "kind", "same"), MANY.values(), ids=MANY)
def test_batches_of_any_ids_are_taken(
    probe: Probe,
    sink: MemorySink,
    ids: Any,  # noqa: ANN401 - whatever a host has
    kind: WireIdKind,
    same: list[Any],
) -> None:
    """As arrays they are the messages that they are one by one, and the batch knows their kind and their texts."""
    probe.arrived_many(ids, [EPOCH_US] * 3)
    probe.flush()
    (batch,) = of_messages(sink)
    assert [row.message_id for row in observations(sink)] == [id_bytes(one) for one in same]
    assert batch.id_kind is kind
    assert batch.id_texts.decode() == ("".join(same) if kind is WireIdKind.TEXT else "")


def test_ids_of_several_kinds_in_one_list_are_taken(probe: Probe, sink: MemorySink) -> None:
    """Each kind goes in a batch of its own."""
    mixed: list[MessageId] = ["order 1", UUIDS[0], 7]
    probe.arrived_many(mixed, [EPOCH_US] * 3)
    probe.flush()
    assert [batch.id_kind for batch in of_messages(sink)] == [WireIdKind.UUID, WireIdKind.INT, WireIdKind.TEXT]


MOMENT = datetime.fromtimestamp(EPOCH_US / 1e6, UTC)
ZONED = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))


@pytest.mark.parametrize(
    "events",
    [
        [MOMENT, ZONED],
        np.array([MOMENT, ZONED], object),
        pd.Series([MOMENT, MOMENT]),
        pd.Series([ZONED, ZONED]),
        pd.DatetimeIndex([ZONED, ZONED]),
        pd.Series([pd.Timestamp(MOMENT), pd.Timestamp(ZONED)], dtype=object),
        pa.array([MOMENT, MOMENT], pa.timestamp("us", "UTC")),
    ],
    ids=["list", "objects", "Series", "zoned Series", "DatetimeIndex", "Timestamps", "pyarrow"],
)
def test_datetimes_with_a_zone_are_taken(probe: Probe, sink: MemorySink, events: Any) -> None:  # noqa: ANN401 - as above
    """Datetimes of any zone are the same moments."""
    probe.arrived_many([1, 2], events)
    probe.flush()
    assert [row.event_us for row in observations(sink)] == [EPOCH_US, EPOCH_US]


def test_what_is_refused_is_logged_once_with_its_type(probe: Probe, caplog: pytest.LogCaptureFixture) -> None:
    """A refused array is logged once, with the type that was got."""
    for _ in range(2):
        probe.arrived_many([1.5], [EPOCH_US])
        probe.flush()
    assert [text.rpartition("; ")[2] for text in caplog.messages] == [
        "got a message id is a UUID, 16 bytes, an int or a str, got float"
    ]


@pytest.mark.parametrize("says_texts", [True, False])
def test_texts_stay_at_home_where_that_is_asked_for(sink: MemorySink, says_texts: bool) -> None:  # noqa: FBT001 - a parameter
    """``id_text=False`` leaves them out, one by one and in arrays; what is sent are their hashes."""
    with Probe("orders", "router", sink, clock=ManualClock(), id_text=says_texts) as probe:
        probe.arrived("order 1", EPOCH_US)
        probe.arrived_many(["order 2"], [EPOCH_US])
        probe.flush()
        (batch,) = of_messages(sink)
        assert batch.message_ids == id_bytes("order 1") + id_bytes("order 2")
        assert (batch.id_kind, batch.id_texts) == (WireIdKind.TEXT, b"order 1order 2" if says_texts else b"")


def test_arrays_that_arrived_and_departed_are_one_observation_each(probe: Probe, sink: MemorySink) -> None:
    """Arrivals and departures in long arrays are one observation each."""
    ids, events = np.arange(100), np.full(100, EPOCH_US)
    probe.arrived_many(ids, events)
    probe.departed_many(ids, events)
    probe.flush()
    assert [(row.in_us, row.out_us) for row in observations(sink)] == [(EPOCH_US + 1, EPOCH_US + 1)] * 100


def test_small_arrays_of_one_flush_share_a_batch(sink: MemorySink) -> None:
    """Stamps of many small calls share a record, as each record has a cost of its own."""
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        for number in range(50):
            ids, events = np.arange(10) + 10 * number, np.full(10, EPOCH_US)
            probe.arrived_many(ids, events)
            probe.departed_many(ids, events)
        probe.flush()
    assert [decode(record).count for record in sink.records] == [0, 500, 0]


def test_a_host_may_change_its_arrays_afterwards(probe: Probe, sink: MemorySink) -> None:
    """The probe has copied them."""
    rows, events = np.frombuffer(b"".join(IDS), np.uint8).reshape(-1, 16).copy(), np.array(EVENTS)
    probe.arrived_many(rows, events)
    rows[:], events[:] = 0, 0
    probe.flush()
    assert [row[:2] for row in observations(sink)] == list(zip(IDS, EVENTS, strict=True))


def test_empty_arrays_say_nothing_and_harm_nothing(probe: Probe, sink: MemorySink) -> None:
    """A batch without messages is no drop, and the probe goes on."""
    probe.arrived_many([], [])
    probe.departed_many(np.empty((0, 16), np.uint8), np.empty(0, "datetime64[us]"))
    probe.arrived_many([1], [EPOCH_US])
    probe.flush()
    assert [(batch.count, batch.drops) for batch in map(decode, sink.records)] == [(0, ()), (1, ())]


class Endless:
    """Argument of a host that is no array and has no length."""

    def __len__(self) -> int:
        """Fail as a host's own class may."""
        raise RuntimeError("no length")


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        ([1, 2], 2),
        ([-1], 1),
        (b"", 1),
        (b"x" * 40, 2),
        ("text", 4),
        (None, 1),
        (Endless(), 1),
        (7, 1),
        ([[1], [2, 3]], 2),
    ],
)
def test_bad_arrays_raise_nothing_and_are_counted(probe: Probe, sink: MemorySink, ids: ArrayLike, count: int) -> None:
    """As many drops as messages can be seen, at least one; the window of those without an event time nobody knows."""
    probe.arrived_many(ids, [EPOCH_US])
    probe.arrived_many([9], [EPOCH_US])
    probe.flush()
    without = [Drop(MINUTE_MS, count - 1, "bad event time")] if count > 1 else []
    assert drops(sink.records) == [Drop(MINUTE_MS, 1, "bad arrays"), *without]
    assert [row.message_id for row in observations(sink)] == [id_bytes(9)]


def test_a_bad_event_time_in_an_array_costs_its_own_stamp_only(probe: Probe, sink: MemorySink) -> None:
    """NaT and times that no window holds are counted; the others are sent."""
    probe.arrived_many([1, 2, 3], np.array(["NaT", "2023-11-14T22:14:00", "1969-01-01"], "datetime64[s]"))
    probe.flush()
    assert [row.message_id for row in observations(sink)] == [id_bytes(2)]
    assert drops(sink.records) == [Drop(MINUTE_MS, 2, "bad event time")]


def test_arrays_that_find_no_room_are_counted_by_their_windows(probe: Probe, sink: MemorySink) -> None:
    """Each window learns of its own drops, so that none of them takes its books for complete."""
    probe.arrived(1, EPOCH_US)
    probe.arrived_many([1, 2, 3], EVENTS)
    probe.departed_many([1, 2, 3], EVENTS)
    probe.flush()
    assert drops(sink.records) == [Drop(MINUTE_MS, 2, "queue full"), Drop(MINUTE_MS + 60_000, 1, "queue full")]
    assert probe.dropped == 3
    probe.close()
    assert [decode(record).kind for record in sink.records][-1] is BatchKind.BYE
