"""Laws of ids and times of columns: at once they are what a tap reads of each."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.ids import TextId, WireId
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.files.id_values import read_ids
from hopwatch.probes.files.time_values import read_times
from hopwatch.probes.values import IdFormat, TimeUnit, build_id_reader, build_time_reader

TEXTS = st.one_of(
    st.none(),
    st.uuids().map(str),
    st.uuids().map(lambda one: str(one).upper()),
    st.integers(0, 2**130).map(str),
    st.sampled_from(["", "x", "-" * 36, "0190e5a3-1c00-7000-8000-00000000000g", "é" * 18, "x" * 1_024, "x" * 1_025]),
    st.text(max_size=40).filter(lambda text: text.isprintable()),
)
COLUMNS = st.one_of(
    st.lists(TEXTS, max_size=9).map(lambda texts: pa.array(texts, pa.string())),
    st.lists(TEXTS, max_size=9).map(lambda texts: pa.array(texts, pa.large_string()).dictionary_encode()),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=9).map(
        lambda ids: pa.array(ids, pa.int64())
    ),
    st.lists(st.integers(0, 2**64 - 1), max_size=9).map(lambda ids: pa.array(ids, pa.uint64())),
    st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=9).map(lambda ids: pa.array(ids, pa.binary())),
    st.lists(st.floats(), max_size=3).map(lambda ids: pa.array(ids, pa.float64())),
)


@given(COLUMNS, st.sampled_from(IdFormat), st.integers(0, 3))
def test_ids_at_once_are_those_of_a_tap(column: pa.Array, kind: IdFormat, skipped: int) -> None:
    """Bytes, kind, text, and which of them cannot be, of a slice of a column as of a whole one."""
    column = column.slice(min(skipped, len(column)))
    read, found = build_id_reader(kind), read_ids(column, kind)
    assert len(found.ids) == len(column)
    for place, value in enumerate(column.to_pylist()):
        assert bool(found.is_absent[place]) == (value is None)
        try:
            expected = None if value is None else read(value)
        except ValueError:
            expected = None
        assert bool(found.is_valid[place]) == (expected is not None)
        if expected is None:
            continue
        assert found.ids[place].tobytes() == expected
        assert found.kinds[place] == (expected.kind if isinstance(expected, WireId) else 0)
        if isinstance(expected, TextId):
            assert found.texts[place] == expected.text


def test_sixteen_bytes_are_an_id() -> None:
    """As Parquet keeps UUIDs: raw bytes, unless the type or --id-as says what they are."""
    ids = [uuid.UUID(int=number) for number in range(3)]
    column = pa.array([*(one.bytes for one in ids), None], pa.binary(16))
    for kind, of_kind in ((IdFormat.AUTO, 0), (IdFormat.BYTES, 0), (IdFormat.UUID, 1)):
        found = read_ids(column[1:], kind)
        assert [row.tobytes() for row in found.ids[:2]] == [one.bytes for one in ids[1:]]
        assert (found.kinds == of_kind).all()
        assert found.is_absent.tolist() == [False, False, True]
    typed = read_ids(column.cast(pa.uuid()), IdFormat.AUTO)
    assert (typed.kinds == 1).all()
    assert typed.ids[2].tobytes() == ids[2].bytes


NUMBERS = st.one_of(
    st.none(), st.integers(-(2**62), -1_000), st.integers(0, 2**62), st.integers(0, 2_000_000_000_000_000)
)


@given(
    st.lists(NUMBERS, max_size=9),
    st.sampled_from([unit for unit in TimeUnit if unit is not TimeUnit.ISO]),
    st.booleans(),
)
def test_times_at_once_are_those_of_a_tap(numbers: list[int | None], unit: TimeUnit, are_texts: bool) -> None:  # noqa: FBT001 - a case
    """Of whole numbers, as such and as texts."""
    values: list[Any] = [None if one is None else str(one) for one in numbers] if are_texts else list(numbers)
    column = pa.array(values, pa.string() if are_texts else pa.int64())
    _hold_against_a_tap(column, unit)


MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.sampled_from([UTC]))  # noqa: DTZ001 - bounds


@given(
    st.lists(
        st.one_of(st.none(), MOMENTS.map(datetime.isoformat), st.sampled_from(["x", "2013-13-01T00:00Z"])), max_size=9
    )
)
def test_iso_texts_at_once_are_those_of_a_tap(texts: list[str | None]) -> None:
    """With their zones; one that is none is bad by itself."""
    _hold_against_a_tap(pa.array(texts, pa.string()), TimeUnit.ISO)


def _hold_against_a_tap(column: pa.Array, unit: TimeUnit) -> None:
    found, read = read_times(column, unit, None, "at"), build_time_reader(unit)
    for place, value in enumerate(column.to_pylist()):
        try:
            expected = None if value is None else read(value)
        except ValueError:
            expected = None
        assert (bool(found.is_valid[place]), bool(found.is_absent[place])) == (expected is not None, value is None)
        assert int(found.moments_us[place]) == (expected or 0)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["2013-06-01T05:00:00"]),
        pa.array([None, datetime(2013, 6, 1, 5)], pa.timestamp("us")),  # noqa: DTZ001 - which is the case
    ],
)
def test_times_without_a_zone_need_one(column: pa.Array) -> None:
    """No zone is guessed: not the machine's, and not UTC."""
    with pytest.raises(
        MappingError, match=r"the times in at have no zone, such as '2013-06-01.05:00:00': say it with --zone"
    ):
        read_times(column, TimeUnit.ISO, None, "at")
    found = read_times(column, TimeUnit.ISO, "America/New_York", "at")
    expected = datetime(2013, 6, 1, 9, tzinfo=UTC).timestamp() * 1e6
    assert found.moments_us[found.is_valid].tolist() == [expected]


def test_timestamps_of_any_unit_are_moments() -> None:
    """Those that no window can hold are bad, and do not overflow."""
    for unit, factor in (("s", 1), ("ms", 1_000), ("us", 10**6), ("ns", 10**9)):
        numbers = np.array([1_370_000_000 * factor, -1, 2**62], np.int64)
        found = read_times(pa.array(numbers).cast(pa.timestamp(unit, "UTC")), TimeUnit.US, None, "at")
        assert found.is_valid.tolist()[:2] == [True, False]
        assert found.moments_us[0] == 1_370_000_000_000_000
