"""Moments of an Arrow column, in µs since 1970."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hopwatch.probes.event_times import MAX_EVENT_US, is_representable
from hopwatch.probes.files.arrow_values import find_nulls, get_numbers
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.values import TimeUnit, build_time_reader

_US_PER_UNIT: Final = {TimeUnit.US: 1, TimeUnit.MS: 1_000, TimeUnit.S: 1_000_000}
_NS_PER_US: Final = 1_000
_MAX_INT64: Final = 2**63 - 1
_UTC: Final = "UTC"


class TimeValues(NamedTuple):
    """Moments, 0 where there is none, which are absent, and which can be of a window."""

    moments_us: NDArray[np.int64]
    is_absent: NDArray[np.bool_]
    is_valid: NDArray[np.bool_]


def read_times(column: pa.Array, unit: TimeUnit, zone: str | None, name: str) -> TimeValues:
    """Return the moments of a column; a column of timestamps needs no unit.

    Raises:
        MappingError: its times have no zone, and ``zone`` says none.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    absent = find_nulls(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _check(_read_timestamps(column, zone, name), absent)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:
            return _read_each(column, unit, absent, zone)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if unit is TimeUnit.ISO:
            return _read_iso(column, absent, zone, name)
        column = _as_numbers(column)
    if pa.types.is_integer(column.type) and unit is not TimeUnit.ISO:
        return _read_integers(column, unit, absent)
    return _read_each(column, unit, absent, zone)


def _check(moments_us: NDArray[np.int64], absent: NDArray[np.bool_]) -> TimeValues:
    valid = is_representable(moments_us) & ~absent
    return TimeValues(np.where(valid, moments_us, 0), absent, valid)


def _read_timestamps(column: pa.Array, zone: str | None, name: str) -> NDArray[np.int64]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if column.type.tz is None:
        if zone is None:
            raise MappingError(
                _describe_no_zone(name, column.drop_null()[0].as_py() if len(column.drop_null()) else "")
            )
        column = _assume_zone(column, zone)
    # A unit of seconds may not fit into µs: what overflows is no moment of a window.
    scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0}[column.type.unit]
    numbers = get_numbers(column.cast(pa.int64()), -1)
    return _scale(numbers, scale)


def _assume_zone(column: pa.Array, zone: str) -> pa.Array:
    """Read local times in a zone; of an hour that comes twice the first, one that is left out moves on by it."""
    return pc.assume_timezone(column, timezone=zone, ambiguous="earliest", nonexistent="latest")


def _scale(numbers: NDArray[np.int64], scale: int) -> NDArray[np.int64]:
    """Return numbers times ``scale``, or, with 0, ns as µs; what would overflow is -1."""
    if not scale:
        return numbers // _NS_PER_US
    fits = (numbers >= 0) & (numbers <= MAX_EVENT_US // scale)
    return np.where(fits, numbers, 0) * scale - ~fits


def _read_integers(column: pa.Array, unit: TimeUnit, absent: NDArray[np.bool_]) -> TimeValues:
    numbers = get_numbers(column, 0)
    if numbers.dtype == np.uint64:
        numbers = np.minimum(numbers, np.uint64(_MAX_INT64))
    return _check(_scale(numbers.astype(np.int64), _US_PER_UNIT.get(unit, 0)), absent)


def _as_numbers(column: pa.Array) -> pa.Array:
    """Return texts as integers, if all of them are; else as they are."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _read_iso(column: pa.Array, absent: NDArray[np.bool_], zone: str | None, name: str) -> TimeValues:
    """Return the moments of ISO texts: all at once, or each where some are of another form."""
    if zone is None and (first := _find_first(column)) is not None and _is_naive(first):
        raise MappingError(_describe_no_zone(name, first))
    try:
        found = column.cast(pa.timestamp("ns", _UTC))
        return _check(get_numbers(found.cast(pa.int64()), -1) // _NS_PER_US, absent)
    except pa.ArrowInvalid:
        pass
    if zone is not None:
        try:
            local = _assume_zone(column.cast(pa.timestamp("ns")), zone)
            return _check(get_numbers(local.cast(pa.int64()), -1) // _NS_PER_US, absent)
        except pa.ArrowInvalid:
            pass
    return _read_each(column, TimeUnit.ISO, absent, zone)


def _read_each(column: pa.Array, unit: TimeUnit, absent: NDArray[np.bool_], zone: str | None) -> TimeValues:
    """Return moments that have no way at once: broken ones, and fractions."""
    read, values = build_time_reader(unit), column.to_pylist()
    moments_us, valid = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    for place in np.flatnonzero(~absent).tolist():
        try:
            moments_us[place] = read(_with_zone(values[place], zone) if unit is TimeUnit.ISO else values[place])
        except ValueError:
            continue
        valid[place] = True
    return TimeValues(moments_us, absent, valid)


def _with_zone(value: Any, zone: str | None) -> Any:  # noqa: ANN401 - what a file holds
    """Return a local time with its zone."""
    if zone is None or not isinstance(value, str):
        return value
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment


def _find_first(column: pa.Array) -> str | None:
    there = column.drop_null()
    return str(there[0].as_py()) if len(there) else None


def _is_naive(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def _describe_no_zone(name: str, example: object) -> str:
    return f"the times in {name} have no zone, such as {str(example)!r:.60}: say it with --zone, such as --zone UTC"
