"""Readers of message ids and event times in foreign formats; bad values are refused with a reason."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final

from hopwatch.probes.contract.ids import IntId, TextId, UuidId, id_bytes
from hopwatch.probes.contract.limits import ID_BYTES
from hopwatch.probes.event_times import MAX_EVENT_US

MAX_ID_CHARS: Final = 1_024
"""Maximum length of a text id; a longer text is taken for a mistake."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_UUID_CHARS: Final = 36
_MAX_DIGITS: Final = 39
"""Decimal digits of the largest 128-bit id."""
_MAX_NUMBER: Final = 10**30


class SkipReason(StrEnum):
    """Reason for which a message is not stamped."""

    NOT_JSON = "not_json"
    NO_VALUE = "no_value"
    OVERSIZED = "oversized"
    UNDECODABLE = "undecodable"
    UNKNOWN_SCHEMA = "unknown_schema"
    NO_ID = "no_id"
    BAD_ID = "bad_id"
    NO_TIME = "no_time"
    BAD_TIME = "bad_time"


class IdFormat(StrEnum):
    """Format of an id in the source; the right one gives the same sixteen bytes as a probe elsewhere."""

    AUTO = "auto"
    UUID = "uuid"
    INT = "int"
    TEXT = "text"
    BYTES = "bytes"


class TimeUnit(StrEnum):
    """Unit or format of an event time in the source."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    ISO = "iso"


_NS_PER_UNIT: Final = {TimeUnit.NS: 1, TimeUnit.US: 1_000, TimeUnit.MS: 1_000_000, TimeUnit.S: 1_000_000_000}

ReadId = Callable[[object], bytes]
ReadTime = Callable[[object], int]


def build_id_reader(kind: IdFormat) -> ReadId:
    """Build a function that converts an id to the 16 bytes of the wire, or raises ValueError.

    The result also carries the kind of the id, and the text of a text id.

    ``auto``: a whole number is an int, a text in the form of a UUID a UUID, any other text a text. The other formats
    read every id as the kind that they name. Bytes are read as UTF-8, except with ``bytes``, which takes 16 raw bytes.
    """
    return {
        IdFormat.AUTO: _read_auto,
        IdFormat.UUID: _read_uuid,
        IdFormat.INT: _read_int,
        IdFormat.TEXT: _read_text,
        IdFormat.BYTES: _read_bytes,
    }[kind]


def build_time_reader(unit: TimeUnit) -> ReadTime:
    """Build a function that converts an event time to µs since 1970, or raises ValueError."""
    if unit is TimeUnit.ISO:
        return _parse_iso_us
    ns_a_unit = _NS_PER_UNIT[unit]

    def read(value: object) -> int:
        value = _as_text(value)
        if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isdecimal():
            # The usual case by far, and Decimal would take ten times as long.
            value = int(value)
        if type(value) is int:
            return check_event_us(value * ns_a_unit // 1_000)
        if isinstance(value, datetime):
            # The schema has already converted the number, which is more certain than a flag.
            return _parse_iso_us(value)
        return check_event_us(_scale_us(value, ns_a_unit))

    return read


def check_event_us(event_us: int) -> int:
    """Check that a window can hold an event time, and return it.

    Raises:
        ValueError: it is before 1970 or after 2255.
    """
    if not 0 <= event_us < MAX_EVENT_US:
        raise ValueError(f"an event time lies between 1970 and 2255, got {event_us!s:.24} µs since 1970")
    return event_us


def _read_auto(value: object) -> bytes:
    value = _as_text(value)
    if isinstance(value, str):
        return _parse_uuid(value) or _read_text(value)
    return _read_int(value)


def _read_uuid(value: object) -> bytes:
    value = _as_text(value)
    found = _parse_uuid(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"an id is a UUID in text, got {value!r:.60}")
    return found


def _read_int(value: object) -> bytes:
    value = _as_text(value)
    if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isdecimal():
        value = int(value)
    if type(value) is not int:
        raise ValueError(f"an id is a whole number, got {value!r:.60}")
    return IntId(id_bytes(value))


def _read_text(value: object) -> bytes:
    value = _as_text(value)
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS:
        raise ValueError(f"an id is a text of 1 to {MAX_ID_CHARS} characters, got {value!r:.60}")
    return TextId.from_text(value)


def _read_bytes(value: object) -> bytes:
    if not isinstance(value, bytes) or len(value) != ID_BYTES:
        raise ValueError(f"an id is {ID_BYTES} bytes, got {value!r:.60}")
    return value


def _parse_uuid(text: str) -> bytes | None:
    """Return the bytes of a UUID in its usual form, which every library writes; uuid.UUID takes ten times as long."""
    if len(text) != _UUID_CHARS or not text[8] == text[13] == text[18] == text[23] == "-":
        return None
    try:
        found = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return None
    return UuidId(found) if len(found) == ID_BYTES else None


def _as_text(value: object) -> object:
    """Return bytes and UUIDs as text; bytes that are no UTF-8 raise UnicodeDecodeError, a ValueError."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return str(value) if isinstance(value, uuid.UUID) else value


def _parse_iso_us(value: object) -> int:
    value = _as_text(value)
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str):
        moment = datetime.fromisoformat(value)
    else:
        raise ValueError(f"an event time is ISO 8601 text, got {value!r:.60}")  # noqa: TRY004 - one kind of error for all
    if moment.tzinfo is None:
        raise ValueError(f"an event time has a zone, such as Z; got {value!r:.60}")
    return check_event_us((moment - _EPOCH) // _MICROSECOND)


def _scale_us(value: object, ns_a_unit: int) -> int:
    """Convert a number, or a number in text, from its unit to µs; fractions count."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > _MAX_DIGITS:
        raise ValueError(f"an event time is a number, got {value!r:.60}")
    try:
        # By its shortest decimal form, so that 1700000000.1 s is exactly that, and not the nearest binary fraction.
        number = Decimal(str(value))
        return int(number * ns_a_unit // 1_000) if number.is_finite() and abs(number) < _MAX_NUMBER else -1
    except InvalidOperation:
        raise ValueError(f"an event time is a number, got {value!r:.60}") from None
