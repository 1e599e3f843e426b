"""Reader of id and event time from JSON documents."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import orjson

from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import IdFormat, ReadId, ReadTime, SkipReason, TimeUnit, build_id_reader, build_time_reader

MAX_PATH_KEYS: Final = 16


class StampableMessage(NamedTuple):
    """Message that can be stamped: its id in wire format, and its event time in µs since 1970.

    ``is_snapshot`` marks a row that a change stream read from its table, and that nobody has just changed. ``schema``
    names the schema that wrote it, if one is known, and ``partition`` is that of a topic from which it comes.
    """

    message_id: bytes
    event_us: int
    is_snapshot: bool = False
    schema: str = ""
    partition: int | None = None


class SkippedMessage(NamedTuple):
    """Message that cannot be stamped: the reason, and its event time if it is readable."""

    reason: SkipReason
    event_us: int | None = None


class RecordKind(StrEnum):
    """Kind of a record that stands among messages and is none."""

    TOMBSTONE = "tombstone"
    SCHEMA_CHANGE = "schema_change"
    HEARTBEAT = "heartbeat"
    TRANSACTION = "transaction"


class PassedRecord(NamedTuple):
    """Record that is no message: it is counted by its kind, neither stamped nor a drop."""

    kind: RecordKind


def parse_path(path: str) -> tuple[str, ...]:
    """Parse a path such as ``order.meta.id`` into its keys.

    Raises:
        TapUsageError: a key is empty, or there are too many.
    """
    keys = tuple(path.split("."))
    if not all(keys) or len(keys) > MAX_PATH_KEYS:
        raise TapUsageError(f"a path is 1 to {MAX_PATH_KEYS} keys with dots between, such as meta.id; got {path!r:.80}")
    return keys


def find_value(document: object, keys: tuple[str, ...]) -> object:
    """Return the value at a path; None if a key is missing or null."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


class DocumentReader:
    """Reader of ids and event times from documents."""

    def __init__(self, id_path: str, time_path: str, id_kind: IdFormat, unit: TimeUnit) -> None:
        """Set the paths, and the formats of their values.

        Raises:
            TapUsageError: a path is invalid.
        """
        self._id_keys, self._time_keys = parse_path(id_path), parse_path(time_path)
        self._read_id: ReadId = build_id_reader(id_kind)
        self._read_time: ReadTime = build_time_reader(unit)

    def read(self, data: bytes) -> StampableMessage | SkippedMessage:
        """Read a document; never raise, whatever it holds."""
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return SkippedMessage(SkipReason.NOT_JSON)
        return self.read_value(document)

    def read_value(self, document: object) -> StampableMessage | SkippedMessage:
        """Read a parsed document."""
        event_us: int | None = None
        bad: SkipReason | None = None
        time = find_value(document, self._time_keys)
        try:
            event_us = None if time is None else self._read_time(time)
            bad = SkipReason.NO_TIME if time is None else None
        except ValueError:
            bad = SkipReason.BAD_TIME
        message_id = find_value(document, self._id_keys)
        if message_id is None:
            return SkippedMessage(SkipReason.NO_ID, event_us)
        try:
            found = self._read_id(message_id)
        except ValueError:
            return SkippedMessage(SkipReason.BAD_ID, event_us)
        if event_us is None:
            return SkippedMessage(bad or SkipReason.NO_TIME)
        return StampableMessage(found, event_us)
