"""JSON documents: where in them the id and the event time are, and what they say."""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import IdFormat, ReadId, ReadTime, SkipReason, TimeUnit, build_id_reader, build_time_reader

MAX_PATH_KEYS: Final = 16


class StampableMessage(NamedTuple):
    """A message that can be stamped: its id on the wire, and its event time in µs since 1970."""

    message_id: bytes
    event_us: int


class SkippedMessage(NamedTuple):
    """A message that cannot be stamped: why, and its event time where that could be read."""

    reason: SkipReason
    event_us: int | None = None


def parse_path(path: str) -> tuple[str, ...]:
    """Return the keys of a path such as ``order.meta.id``.

    Raises:
        TapUsageError: a key is empty, or there are too many.
    """
    keys = tuple(path.split("."))
    if not all(keys) or len(keys) > MAX_PATH_KEYS:
        raise TapUsageError(f"a path is 1 to {MAX_PATH_KEYS} keys with dots between, such as meta.id; got {path!r:.80}")
    return keys


def find_value(document: object, keys: tuple[str, ...]) -> object:
    """Return the value at a path, or None: a key that is not there and one that is null say the same."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


class DocumentReader:
    """Reads ids and event times out of documents; either may be left to others by giving no path."""

    def __init__(self, id_path: str, time_path: str, id_kind: IdFormat, unit: TimeUnit) -> None:
        """Take the paths, and how what stands there is to be read.

        Raises:
            TapUsageError: a path cannot be.
        """
        self._id_keys, self._time_keys = parse_path(id_path), parse_path(time_path)
        self._read_id: ReadId = build_id_reader(id_kind)
        self._read_time: ReadTime = build_time_reader(unit)

    def read(self, data: bytes) -> StampableMessage | SkippedMessage:
        """Return what a document says; nothing that it holds can raise."""
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return SkippedMessage(SkipReason.NOT_JSON)
        return self.read_value(document)

    def read_value(self, document: object) -> StampableMessage | SkippedMessage:
        """Return what a document that was parsed says."""
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
