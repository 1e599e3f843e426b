"""Mapping of a file's columns to what is observed: id, event time, stamps, server."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import StrEnum

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
        named = (self.id, self.time, self.arrived, self.departed, self.server)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def text(self) -> str:
        """Return the mapping as a text: what is read otherwise is another account."""
        return repr(tuple(str(value) for value in astuple(self)))


def check_mapping(mapping: FileMapping, *, is_side_given: bool) -> None:
    """Check that a mapping does not contradict itself, and that its zone is known.

    Raises:
        TapUsageError: it does, or the zone is not.
    """
    if is_side_given and (mapping.arrived or mapping.departed):
        raise TapUsageError("--arrived and --departed say which stamps there are: leave --stamp out")
    if not all((mapping.id, mapping.time)):
        raise TapUsageError("--id and --time name columns, got an empty name")
    if mapping.zone is not None:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few imports name a zone

        try:
            ZoneInfo(mapping.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise TapUsageError(f"--zone is a name such as UTC or America/New_York, got {mapping.zone!r:.60}") from None
