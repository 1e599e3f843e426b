"""Mapping of a file's columns to what is observed: id, event time, stamps, server; or to what was counted."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Protocol

from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.values import IdFormat, TimeUnit


class FileFormat(StrEnum):
    """Format of a file; ``auto`` tells it from the first bytes."""

    AUTO = "auto"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    AVRO = "avro"


class ColumnMapping(Protocol):
    """Columns of a file that are read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return their names, each once."""


@dataclass(frozen=True, slots=True)
class FileMapping:
    """Columns by their names, nested ones with dots between.

    Without ``arrived`` and ``departed`` a message is stamped at its event time, on ``side``: the file says no other
    moment.
    """

    id: str
    time: str
    unit: TimeUnit = TimeUnit.US
    side: StampSide = StampSide.IN
    id_as: IdFormat = IdFormat.AUTO
    zone: str | None = None
    arrived: str | None = None
    departed: str | None = None
    server: str | None = None
    format: FileFormat = FileFormat.AUTO

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that are read, each once."""
        return _list_names(self.id, self.time, self.arrived, self.departed, self.server)

    @property
    def text(self) -> str:
        """Return the mapping as a text: what is read otherwise is another account."""
        return repr(tuple(str(value) for value in astuple(self)))


@dataclass(frozen=True, slots=True)
class CountMapping:
    """Columns of a file of counts by their names: a row a server, minute and stamp.

    Without the column ``stamp`` all rows are counts at ``side``.
    """

    count: str
    stamp: str | None
    id_xor: str | None
    id_sum: str | None
    bytes: str | None
    time: str
    unit: TimeUnit = TimeUnit.US
    side: StampSide = StampSide.IN
    zone: str | None = None
    server: str | None = None
    format: FileFormat = FileFormat.AUTO

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that are read, each once."""
        return _list_names(self.count, self.time, self.stamp, self.id_xor, self.id_sum, self.bytes, self.server)

    @property
    def text(self) -> str:
        """Return the mapping as a text: what is read otherwise is another account."""
        return f"counts {tuple(str(value) for value in astuple(self))!r}"


def _list_names(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


def check_counts(mapping: CountMapping, *, is_side_given: bool) -> None:
    """Check that a mapping of counts does not contradict itself, and that its zone is known.

    Raises:
        TapUsageError: it does, or the zone is not.
    """
    if is_side_given and mapping.stamp is not None:
        raise TapUsageError("--counted-as says which stamps there are: leave --stamp out")
    if (mapping.id_xor is None) is not (mapping.id_sum is None):
        raise TapUsageError("a fingerprint has two halves: name both of --id-xor and --id-sum")
    if not all(mapping.columns):
        raise TapUsageError("--counted, --time and the like name columns, got an empty name")
    _check_zone(mapping.zone)


def check_mapping(mapping: FileMapping, *, is_side_given: bool) -> None:
    """Check that a mapping does not contradict itself, and that its zone is known.

    Raises:
        TapUsageError: it does, or the zone is not.
    """
    if is_side_given and (mapping.arrived or mapping.departed):
        raise TapUsageError("--arrived and --departed say which stamps there are: leave --stamp out")
    if not all((mapping.id, mapping.time)):
        raise TapUsageError("--id and --time name columns, got an empty name")
    _check_zone(mapping.zone)


def _check_zone(zone: str | None) -> None:
    if zone is not None:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few imports name a zone

        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise TapUsageError(f"--zone is a name such as UTC or America/New_York, got {zone!r:.60}") from None
