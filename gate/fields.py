"""Locations of id and event time in a record of a topic: headers, fields of the value, or the record's own time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hopwatch.gate.registry.avro_schema import Schema, logical_type
from hopwatch.gate.rules import FieldPath
from hopwatch.probes.contract.ids import TextId
from hopwatch.probes.http.problems import json_pointer
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER, read_id, read_time
from hopwatch.probes.values import TimeUnit, build_time_reader, check_event_us

T = TypeVar("T")
_UNITS: Final = {"millis": TimeUnit.MS, "micros": TimeUnit.US}


class MissingFieldError(ValueError):
    """Id or event time that is missing or invalid; ``place`` is a JSON pointer into the event."""

    def __init__(self, message: str, place: str = "") -> None:
        """Keep the place beside the sentence."""
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class RecordFields:
    """Locations of the id and the event time: headers, unless a path is given; ``unit`` is that of a time in a value.

    The schema takes precedence: a field with a timestamp type is read in its own unit.
    """

    id_path: FieldPath | None = None
    time_path: FieldPath | None = None
    unit: TimeUnit = TimeUnit.US
    is_record_time: bool = False

    def read_event_id(self, value: object, headers: Mapping[str, object], where: str) -> bytes:
        """Return the id, 16 bytes; a record without an id header gets an id from its position in the topic.

        Raises:
            MissingFieldError: there is no valid one.
        """
        if self.id_path is not None:
            return _read_at(self.id_path, value, read_id, "id")
        found = headers.get(ID_HEADER)
        if found is None:
            return TextId.from_text(where)
        try:
            return read_id(found)
        except ValueError as error:
            raise MissingFieldError(f"the header {ID_HEADER}: {error}") from None

    def read_event_us(
        self, value: object, headers: Mapping[str, object], recorded_us: int | None, schema: Schema
    ) -> int:
        """Return the event time, µs since 1970.

        Raises:
            MissingFieldError: there is no valid one.
        """
        if self.time_path is not None:
            unit = find_timestamp_unit(schema, self.time_path) or self.unit
            return _read_at(self.time_path, value, build_time_reader(unit), "event time")
        if self.is_record_time:
            if recorded_us is None:
                raise MissingFieldError("the record has no time")
            try:
                return check_event_us(recorded_us)
            except ValueError as error:
                raise MissingFieldError(f"the record's own time: {error}") from None
        found = headers.get(TIME_HEADER)
        if found is None:
            raise MissingFieldError(f"it has no event time: no header {TIME_HEADER}")
        try:
            return read_time(found)
        except ValueError as error:
            raise MissingFieldError(f"the header {TIME_HEADER}: {error}") from None


def find_timestamp_unit(schema: Schema, path: FieldPath) -> TimeUnit | None:
    """Return the unit of a timestamp field; None for any other field."""
    found = schema.parsed
    for part in path.parts:
        found = _without_null(found)
        fields = getattr(found, "fields_dict", {})
        if part not in fields:
            return None
        found = fields[part].type
    kind, _, unit = (logical_type(_without_null(found)) or "").rpartition("-")
    return _UNITS.get(unit) if kind.endswith("timestamp") else None


def _without_null(schema: Any) -> Any:  # noqa: ANN401 - of a library without types
    """Return the only type besides null of a union; any other schema unchanged."""
    others = [one for one in schema.schemas if one.type != "null"] if schema.type == "union" else [schema]
    return others[0] if len(others) == 1 else schema


def _read_at(path: FieldPath, value: object, read: Callable[[object], T], what: str) -> T:
    found = path.first_value(value)
    if found is None:
        raise MissingFieldError(f"it has no {what}", json_pointer(path.parts))
    try:
        return read(found)
    except ValueError as error:
        raise MissingFieldError(str(error), json_pointer(path.parts)) from None
