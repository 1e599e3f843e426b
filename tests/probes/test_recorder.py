"""Tests of the recorder: what becomes of stamps."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pytest

from hopwatch.probes.contract import id_texts
from hopwatch.probes.contract.batch import Batch, BatchKind, WireIdKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import TIMELESS_CAUSES
from hopwatch.probes.packing import PackedBatch
from hopwatch.probes.recorder import (
    MessageId,
    Refusals,
    Stamp,
    StampArrays,
    StampKind,
    build_batches,
    refuse_array,
    refuse_stamp,
)
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US, Observation

MINUTE_MS = EPOCH_US // 1_000
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


def stamp(
    side: StampKind, message_id: object, after_us: int, event_time: object = EPOCH_US, reason: str | None = None
) -> Stamp:
    """Return a stamp taken so long after the start of the minute, whatever a host may have passed."""
    at_ns = (EPOCH_US + after_us) * 1_000
    return Stamp(side, message_id, event_time, at_ns, reason)  # type: ignore[arg-type]  # a host may pass anything


def stamps(side: StampKind, numbers: list[int], after_us: int, event_us: int = EPOCH_US) -> StampArrays:
    """Return arrays stamped so long after the start of the minute."""
    pairs = np.frombuffer(b"".join(map(id_bytes, numbers)), np.uint64).reshape(-1, 2)
    return StampArrays(side, pairs, np.full(len(numbers), event_us), (EPOCH_US + after_us) * 1_000)


def recorded(*taken: Stamp | StampArrays, not_before_us: int = 0) -> tuple[list[Observation], Refusals]:
    """Return what is said of some stamps, and what is refused."""
    batches, refusals = build_batches(taken, not_before_us)
    return [row for batch in batches for row in batch_observations(opened(batch))], refusals


def opened(packed: PackedBatch) -> Batch:
    """Return packed observations as a batch, to be read."""
    return Batch(
        "p", 0, 0, BatchKind.OBSERVATIONS, "s", "n", packed.window_start_ms, 0, 0,
        count=packed.count, reasons=packed.reasons, **packed.fields,
    )  # fmt: skip


def test_an_arrival_and_a_departure_of_a_message_are_one_observation() -> None:
    """Both stamps of a message stand in one row, whatever came between them."""
    rows, _ = recorded(
        stamp(StampKind.ARRIVED, ONE, 10), stamp(StampKind.ARRIVED, TWO, 15), stamp(StampKind.DEPARTED, ONE, 20)
    )
    assert rows == [
        Observation(ONE.bytes, EPOCH_US, EPOCH_US + 10, EPOCH_US + 20),
        Observation(TWO.bytes, EPOCH_US, EPOCH_US + 15, None),
    ]


def test_a_departure_alone_is_an_observation() -> None:
    """A departure whose arrival was sent before stands alone."""
    assert recorded(stamp(StampKind.DEPARTED, ONE, 20))[0] == [Observation(ONE.bytes, EPOCH_US, None, EPOCH_US + 20)]


def test_copies_of_a_message_pair_in_order() -> None:
    """The first arrival goes with the first departure, the second with the second, a third waits for none."""
    times = (
        (StampKind.ARRIVED, 1),
        (StampKind.ARRIVED, 2),
        (StampKind.DEPARTED, 3),
        (StampKind.ARRIVED, 4),
        (StampKind.DEPARTED, 5),
    )
    rows, _ = recorded(*(stamp(side, ONE, at) for side, at in times))
    pairs = [(row.in_us and row.in_us - EPOCH_US, row.out_us and row.out_us - EPOCH_US) for row in rows]
    assert sorted(pairs, key=str) == [(1, 3), (2, 5), (4, None)]


def test_stamps_of_one_id_with_two_event_times_do_not_pair() -> None:
    """A message is its id and its event time."""
    rows, _ = recorded(stamp(StampKind.ARRIVED, ONE, 1), stamp(StampKind.DEPARTED, ONE, 2, EPOCH_US + 1))
    assert sorted((row.event_us - EPOCH_US, row.in_us is None, row.out_us is None) for row in rows) == [
        (0, False, True),
        (1, True, False),
    ]


def test_observations_go_to_the_windows_of_their_event_times() -> None:
    """Each batch is of one minute, and its offsets lie within."""
    events = [EPOCH_US + 59_999_999, EPOCH_US, EPOCH_US + 60_000_000]
    batches, _ = build_batches([stamp(StampKind.ARRIVED, number, 0, event) for number, event in enumerate(events)], 0)
    found = [(batch.window_start_ms, [row.event_us for row in batch_observations(opened(batch))]) for batch in batches]
    assert found == [(MINUTE_MS, events[:2]), (MINUTE_MS + 60_000, events[2:])]


def test_a_batch_holds_at_most_4096_observations() -> None:
    """Further observations go into further batches of the window."""
    batches, _ = build_batches([stamp(StampKind.ARRIVED, number, 0) for number in range(10_000)], 0)
    assert [batch.count for batch in batches] == [4_096, 4_096, 1_808]
    assert {row.message_id for batch in batches for row in batch_observations(opened(batch))} == set(
        map(id_bytes, range(10_000))
    )


def test_a_message_that_ends_here_says_so_and_why() -> None:
    """Filtered and rejected are outcomes with reasons, and stamp in; a text that is empty is no reason."""
    rows, _ = recorded(
        stamp(StampKind.FILTERED, 1, 1, reason="test traffic"),
        stamp(StampKind.REJECTED, 2, 2, reason="no price"),
        stamp(StampKind.FILTERED, 3, 3, reason=""),
        stamp(StampKind.FILTERED, 4, 4),
        stamp(StampKind.ARRIVED, 5, 5),
    )
    assert [(row.outcome, row.reason, row.in_us, row.out_us) for row in rows] == [
        (1, "test traffic", EPOCH_US + 1, None),
        (2, "no price", EPOCH_US + 2, None),
        (1, None, EPOCH_US + 3, None),
        (1, None, EPOCH_US + 4, None),
        (0, None, EPOCH_US + 5, None),
    ]


def test_a_batch_has_its_own_reasons_and_at_most_32() -> None:
    """With 300 reasons in a flush each batch names those that it uses, and only what is past the limit has none."""
    many = [stamp(StampKind.FILTERED, number, 0, reason=f"r{number}") for number in range(254)]
    next_minute = [stamp(StampKind.FILTERED, n, 0, EPOCH_US + 60_000_000, f"r{n}") for n in range(254, 258)]
    batches, _ = build_batches(many + next_minute, 0)
    assert [len(batch.reasons) for batch in batches] == [32, 4]
    assert [row.reason for row in batch_observations(opened(batches[0]))] == [
        f"r{n}" if n < 32 else None for n in range(254)
    ]
    assert [row.reason for row in batch_observations(opened(batches[1]))] == ["r254", "r255", "r256", "r257"]


def test_arrays_are_joined_with_the_same_arrays_that_departed() -> None:
    """Of several arrays of one length and even one beginning, those that are equal make observations of two stamps."""
    first, second = [1, 2, 3], [1, 9, 3]
    rows, _ = recorded(
        stamps(StampKind.ARRIVED, first, 1),
        stamps(StampKind.ARRIVED, second, 2),
        stamps(StampKind.DEPARTED, second, 5),
        stamps(StampKind.DEPARTED, first, 6),
    )
    assert [(row.message_id[-1], row.in_us, row.out_us) for row in rows] == [
        *((number, EPOCH_US + 1, EPOCH_US + 6) for number in first),
        *((number, EPOCH_US + 2, EPOCH_US + 5) for number in second),
    ]


@pytest.mark.parametrize(
    ("departed", "event_us"), [([1, 2], EPOCH_US), ([2, 1, 3], EPOCH_US), ([1, 2, 3], EPOCH_US + 1)]
)
def test_other_arrays_stay_apart(departed: list[int], event_us: int) -> None:
    """Arrays that departed in part, in another order or with other event times are observations of their own."""
    rows, _ = recorded(stamps(StampKind.ARRIVED, [1, 2, 3], 1), stamps(StampKind.DEPARTED, departed, 2, event_us))
    assert sum(row.in_us is not None for row in rows) == 3
    assert sum(row.out_us is not None for row in rows) == len(departed) == len(rows) - 3


def test_arrays_that_departed_twice_are_told_twice() -> None:
    """A departure is a partner to no other departure, and each arrival has one."""
    rows, _ = recorded(
        *(stamps(side, [1], side + 1) for side in (StampKind.DEPARTED, StampKind.ARRIVED) + (StampKind.DEPARTED,) * 2)
    )
    assert sorted((row.in_us or 0, row.out_us or 0) for row in rows) == [
        (0, EPOCH_US + 2),
        (0, EPOCH_US + 2),
        (EPOCH_US + 1, EPOCH_US + 2),
    ]


def test_a_stamp_that_a_flush_overtook_is_moved_behind_its_moment() -> None:
    """Nothing that was called complete is added to; a later stamp stays where it is."""
    rows, _ = recorded(
        stamp(StampKind.ARRIVED, ONE, 5), stamp(StampKind.DEPARTED, ONE, 11), stamps(StampKind.ARRIVED, [3], 10),
        not_before_us=EPOCH_US + 10,
    )  # fmt: skip
    moments = [(row.in_us and row.in_us - EPOCH_US, row.out_us and row.out_us - EPOCH_US) for row in rows]
    assert sorted(moments, key=str) == [(11, 11), (11, None)]


class BrokenZone(tzinfo):
    """A host's own time zone, which fails."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        """Fail as no library would."""
        raise RuntimeError("no such zone")


@pytest.mark.parametrize(
    "event_time",
    [None, "now", 1.5, True, -1, 2**53, 10**400, datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=BrokenZone())],  # type: ignore[abstract]  # noqa: DTZ001
    ids=["None", "text", "float", "bool", "negative", "too-late", "huge", "naive", "broken-zone"],
)
def test_a_bad_event_time_costs_its_own_stamp_only(event_time: object) -> None:
    """A bad event time is counted under the window of the stamp; the stamps around it are recorded."""
    rows, refusals = recorded(stamp(StampKind.ARRIVED, 1, 0), stamp(StampKind.ARRIVED, 2, 61_000_000, event_time))
    assert [row.message_id for row in rows] == [id_bytes(1)]
    assert refusals == {(MINUTE_MS + 60_000, "bad event time"): 1}


@pytest.mark.parametrize("message_id", [None, b"short", -1, 2**128, 1.0, True, object()])
def test_a_bad_id_costs_its_own_stamp_only(message_id: object) -> None:
    """A bad id is counted under the window of its event time; the stamps around it are recorded."""
    rows, refusals = recorded(
        stamp(StampKind.ARRIVED, message_id, 0, EPOCH_US + 60_000_000),
        stamp(StampKind.DEPARTED, ONE, 1),
        stamp(StampKind.ARRIVED, b"", 1),
    )
    assert [row.message_id for row in rows] == [ONE.bytes]
    assert refusals == {(MINUTE_MS + 60_000, "bad message id"): 1, (MINUTE_MS, "bad message id"): 1}


def test_bad_event_times_in_arrays_cost_their_own_stamps_only() -> None:
    """Bad event times in arrays are counted under the window of the call."""
    bad = stamps(StampKind.ARRIVED, [1, 2, 3, 4], 61_000_000)._replace(
        event_times_us=np.array([-1, EPOCH_US, 2**53, np.iinfo(np.int64).min])
    )
    rows, refusals = recorded(bad)
    assert [row.message_id for row in rows] == [id_bytes(2)]
    assert refusals == {(MINUTE_MS + 60_000, "bad event time"): 3}


@pytest.mark.parametrize("message_id", [ONE, ONE.bytes, 1, "order 1"])
def test_ids_of_every_kind_are_known_by_their_bytes(message_id: MessageId) -> None:
    """A kind alone and kinds together come out as the wire has them, a batch a kind."""
    assert [row.message_id for row in recorded(stamp(StampKind.ARRIVED, message_id, 0))[0]] == [id_bytes(message_id)]
    mixed = recorded(
        stamp(StampKind.ARRIVED, message_id, 0), stamp(StampKind.ARRIVED, "x", 0), stamp(StampKind.ARRIVED, 7, 0)
    )[0]
    assert {row.message_id for row in mixed} == {id_bytes(message_id), id_bytes("x"), id_bytes(7)}


def _named(batches: list[PackedBatch]) -> list[tuple[WireIdKind, list[str]]]:
    """Return the kind and the texts of each batch."""
    found = []
    for batch in batches:
        fields = batch.fields
        ends = np.frombuffer(fields["id_text_ends"], "<u4")
        texts = [id_texts.get_text(fields["id_texts"], ends, place).decode() for place in range(len(ends))]
        found.append((fields["id_kind"], texts))
    return found


def test_a_flush_is_split_by_kind_and_texts_go_along() -> None:
    """A batch says of which kind all of its ids are, and carries the texts of texts, each once for both stamps."""
    taken = [
        stamp(side, message_id, at)
        for side, at in ((StampKind.ARRIVED, 0), (StampKind.DEPARTED, 1))
        for message_id in ("order 1", ONE, 7, ONE.bytes[::-1], "größe", np.int64(8))
    ]
    assert _named(build_batches(taken, 0)[0]) == [
        (WireIdKind.BYTES, []),
        (WireIdKind.UUID, []),
        (WireIdKind.INT, []),
        (WireIdKind.TEXT, ["order 1", "größe"]),
    ]


def test_texts_are_left_out_where_that_is_asked_for() -> None:
    """The batch says that its ids are texts, and not which."""
    assert _named(build_batches([stamp(StampKind.ARRIVED, "secret", 0)], 0, id_text=False)[0]) == [
        (WireIdKind.TEXT, [])
    ]


def test_a_text_that_is_too_long_is_left_out_alone() -> None:
    """An empty one stands for it, and the others around it are carried."""
    taken = [stamp(StampKind.ARRIVED, text, 0) for text in ("a", "b" * 1_025, "c" * 1_024)]
    assert _named(build_batches(taken, 0)[0]) == [(WireIdKind.TEXT, ["a", "", "c" * 1_024])]


def test_a_batch_carries_no_more_texts_than_kafka_takes() -> None:
    """Texts beyond half a megabyte are sent as hashes only."""
    taken = [stamp(StampKind.ARRIVED, f"{number:01000}", 0) for number in range(600)]
    ((_, texts),) = _named(build_batches(taken, 0)[0])
    assert (sum(map(bool, texts)), len(texts), bool(texts[0]), bool(texts[-1])) == (524, 600, True, False)


def test_what_was_refused_is_named_by_its_type() -> None:
    """So that the log of the service says what to look for, without the value."""
    odd = (None, b"short", -1, 1.0, True, object())
    refusals = build_batches([stamp(StampKind.ARRIVED, one, 0) for one in odd], 0)[1]
    assert refusals.examples == {"bad message id": "5 bytes, NoneType, bool, float, int out of range, object"}


def test_what_never_came_in_is_counted_by_window() -> None:
    """Stamps refused as a whole count in the windows of their event times, or of the call where these cannot be."""
    events_us = np.array([EPOCH_US, EPOCH_US + 60_000_000, EPOCH_US + 1, -7])
    assert refuse_array(events_us, (EPOCH_US + 120_000_000) * 1_000, "full") == Counter(
        {(MINUTE_MS, "full"): 2, (MINUTE_MS + 60_000, "full"): 1, (MINUTE_MS + 120_000, "bad event time"): 1}
    )


@pytest.mark.parametrize(
    ("event_time", "drop"),
    [
        (EPOCH_US, (MINUTE_MS, "full")),
        (-7, (MINUTE_MS + 120_000, "bad event time")),
        ("no time", (MINUTE_MS + 120_000, "bad event time")),
    ],
)
def test_one_that_never_came_in_is_counted_alike(event_time: Any, drop: tuple[int, str]) -> None:  # noqa: ANN401 - anything may come from a host
    """In the window of its event time; where that cannot be, of the call, and as one whose window nobody knows."""
    assert refuse_stamp(event_time, (EPOCH_US + 120_000_000) * 1_000, "full") == {drop: 1}


def test_of_what_never_came_in_and_cannot_be_of_its_window_nobody_knows_the_window() -> None:
    """A drop of unknown window counts under the minute of its stamp, with a cause that holds for windows near."""
    at_ns, seconds = (EPOCH_US + 120_000_000) * 1_000, EPOCH_US // 1_000_000
    one = refuse_stamp(seconds, at_ns, "full", 86_400_000_000)
    assert one == refuse_array(np.array([seconds]), at_ns, "full", 86_400_000_000)
    assert {cause for start_ms, cause in one if start_ms == MINUTE_MS + 120_000} <= TIMELESS_CAUSES


def test_no_stamps_make_no_batches() -> None:
    """A flush of nothing, or of empty arrays, says nothing."""
    assert build_batches([], 0) == ([], Counter())
    assert build_batches([stamps(StampKind.ARRIVED, [], 0)], 0) == ([], Counter())
