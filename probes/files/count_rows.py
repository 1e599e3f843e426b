"""Rows of a file of counts: what a server counted at one stamp in one minute, or why a row says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa

from hopwatch.probes.contract.batch import Metrics, MetricsStamp
from hopwatch.probes.contract.fingerprints import Fingerprint
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.files.errors import UnreadableFileError
from hopwatch.probes.files.file_batches import FAR_US
from hopwatch.probes.files.file_columns import CountMapping
from hopwatch.probes.files.rows import RawColumns, as_array
from hopwatch.probes.files.source import describe_error
from hopwatch.probes.files.time_values import read_times
from hopwatch.probes.values import SkipReason

_MAX: Final = 2**63 - 1
_WRAP: Final = 1 << 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_SIGNED: Final = re.compile(r"-?[0-9]{1,20}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{1,16}")
_HEX_DIGITS: Final = 16
_STAMPS: Final = {stamp.name.lower(): stamp for stamp in MetricsStamp}


class CountFault(StrEnum):
    """Reason for which a row of counts says nothing, beside those of all rows."""

    BAD_COUNT = "bad_count"
    BAD_FINGERPRINT = "bad_fingerprint"
    BAD_MINUTE = "bad_minute"
    BAD_STAMP = "bad_stamp"
    TWO_COUNTS = "two_counts"


class CountRow(NamedTuple):
    """Row of counts: its server, the start of its minute, µs, and the counts; if it is bad, why, and what was read.

    Of one that is bad the minute is None where it cannot be read.
    """

    server: str
    start_us: int | None
    metrics: Metrics | None
    fault: SkipReason | CountFault | None = None
    told: str = ""


class _BadRowError(Exception):
    """Row that says nothing: why, and what was read."""

    def __init__(self, fault: SkipReason | CountFault, told: str) -> None:
        super().__init__(told)
        self.fault, self.told = fault, told


class CountReader:
    """Reader of the rows of one file; whether fingerprints are hexadecimal, the first rows that have one tell."""

    def __init__(self, mapping: CountMapping, server: str) -> None:
        """Set the columns, and the server of all rows if no column names it."""
        self._mapping, self._server = mapping, server
        self._middle_us: int | None = None
        self._is_hex: bool | None = None

    def read(self, raw: RawColumns) -> Iterator[CountRow]:
        """Yield the rows of a block.

        Raises:
            MappingError: times have no zone.
            UnreadableFileError: the column of servers is none.
        """
        mapping = self._mapping
        times = read_times(as_array(raw[mapping.time]), mapping.unit, mapping.zone, mapping.time)
        moments = times.moments_us.tolist()
        known = sorted(at for at, is_valid in zip(moments, times.is_valid.tolist(), strict=True) if is_valid)
        if self._middle_us is None and known:
            self._middle_us = known[len(known) // 2]
        named = (mapping.count, mapping.stamp, mapping.id_xor, mapping.id_sum, mapping.bytes)
        values = [_list_values(raw[name]) if name else [None] * len(moments) for name in named]
        self._detect_hex([text for column in values[2:4] for text in column if isinstance(text, str)])
        servers = self._read_servers(raw, len(moments))
        where = zip(servers, moments, times.is_absent.tolist(), times.is_valid.tolist(), strict=True)
        for (server, at_us, is_absent, is_valid), row in zip(where, zip(*values, strict=True), strict=True):
            start_us = None
            try:
                start_us = self._check_minute(at_us, is_absent=is_absent, is_valid=is_valid)
                yield CountRow(server, start_us, self._read_metrics(*row))
            except _BadRowError as bad:
                yield CountRow(server, start_us, None, bad.fault, bad.told)

    def _read_servers(self, raw: RawColumns, count: int) -> Sequence[str]:
        name = self._mapping.server
        if name is None:
            return [self._server] * count
        try:
            return [str(value or "") for value in as_array(raw[name]).cast(pa.string()).to_pylist()]
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise UnreadableFileError(f"its column {name} names no servers ({describe_error(error)})") from None

    def _check_minute(self, at_us: int, *, is_absent: bool, is_valid: bool) -> int:
        name = self._mapping.time
        if is_absent:
            raise _BadRowError(SkipReason.NO_TIME, f"{name} is empty")
        if not is_valid:
            raise _BadRowError(SkipReason.BAD_TIME, f"{name} is no time between 1970 and 2255")
        if abs(at_us - (self._middle_us or at_us)) > FAR_US:
            raise _BadRowError(SkipReason.BAD_TIME, f"{format_moment(at_us)} is more than 366 days from the first rows")
        if at_us % WINDOW_US:
            raise _BadRowError(CountFault.BAD_MINUTE, f"{name} begins a whole minute, got {format_moment(at_us)}")
        return at_us

    def _read_metrics(self, count: Any, stamp: Any, id_xor: Any, id_sum: Any, size: Any) -> Metrics:  # noqa: ANN401 - the values of a row
        mapping = self._mapping
        at = MetricsStamp[mapping.side.name]
        if mapping.stamp is not None:
            found = _STAMPS.get(str(stamp).strip().lower())
            if found is None:
                told = f"{mapping.stamp} is one of {', '.join(_STAMPS)}, got {stamp!r:.40}"
                raise _BadRowError(CountFault.BAD_STAMP, told)
            at = found
        number = _read_number(mapping.count, count)
        size_bytes = 0 if size is None else _read_number(str(mapping.bytes), size)
        return Metrics(at, number, *self._read_fingerprint(id_xor, id_sum), size_bytes)

    def _detect_hex(self, texts: Sequence[str]) -> None:
        """Tell hexadecimal from decimal: of decimal halves one in 2,000 has 16 digits, of others 15 of 16 have."""
        if self._is_hex is None and texts:
            of_16 = sum(len(text) == _HEX_DIGITS and bool(_HEX.fullmatch(text)) for text in texts)
            self._is_hex = 2 * of_16 > len(texts)

    def _read_fingerprint(self, id_xor: Any, id_sum: Any) -> tuple[int, int]:  # noqa: ANN401 - what a file holds
        if id_xor is None and id_sum is None:
            return 0, 0
        halves = [_read_half(half, is_hex=bool(self._is_hex)) for half in (id_xor, id_sum)]
        if None in halves:
            told = "a fingerprint is two times 64 bits, hexadecimal or decimal"
            raise _BadRowError(CountFault.BAD_FINGERPRINT, f"{told}, got {id_xor!r:.40} and {id_sum!r:.40}")
        return Fingerprint(*(half or 0 for half in halves)).signed


def format_moment(moment_us: int) -> str:
    """Format a moment for people."""
    return f"{(_EPOCH + timedelta(microseconds=moment_us)).isoformat().removesuffix('+00:00')}Z"


def _list_values(column: Any) -> list[Any]:  # noqa: ANN401 - Arrow's, or a list
    found: list[Any] = as_array(column).to_pylist()
    return found


def _read_number(name: str, value: Any) -> int:  # noqa: ANN401 - what a file holds
    number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value
    if type(number) is not int or not 0 <= number <= _MAX:
        raise _BadRowError(CountFault.BAD_COUNT, f"{name} is a whole number from 0 to 2^63 - 1, got {value!r:.40}")
    return number


def _read_half(value: Any, *, is_hex: bool) -> int | None:  # noqa: ANN401 - what a file holds
    """Return 64 bits as a number without a sign; None if it is none."""
    if isinstance(value, str) and (_HEX if is_hex else _SIGNED).fullmatch(value.strip()):
        value = int(value, 16 if is_hex else 10)
    if type(value) is not int or not -(_WRAP // 2) <= value < _WRAP:
        return None
    return value % _WRAP
