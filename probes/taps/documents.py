"""JSON documents: where in them the id and the event time are, and what they say."""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import Bad, IdKind, ReadId, ReadTime, TimeUnit, id_reader, time_reader

MAX_PATH_KEYS: Final = 16


class Seen(NamedTuple):
    """A message that can be stamped: its id on the wire, and its event time in µs since 1970."""

    message_id: bytes
    event_us: int


class Unseen(NamedTuple):
    """A message that cannot be stamped: why, and its event time where that could be read."""

    reason: Bad
    event_us: int | None = None


def path_keys(path: str) -> tuple[str, ...]:
    """Return the keys of a path such as ``order.meta.id``.

    Raises:
        TapUsageError: a key is empty, or there are too many.
    """
    keys = tuple(path.split("."))
    if not all(keys) or len(keys) > MAX_PATH_KEYS:
        raise TapUsageError(f"a path is 1 to {MAX_PATH_KEYS} keys with dots between, such as meta.id; got {path!r:.80}")
    return keys


def find(document: object, keys: tuple[str, ...]) -> object:
    """Return the value at a path, or None: a key that is not there and one that is null say the same."""
    for key in keys:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


class DocumentReader:
    """Reads ids and event times out of documents; either may be left to others by giving no path."""

    def __init__(self, id_path: str, time_path: str, id_kind: IdKind, unit: TimeUnit) -> None:
        """Take the paths, and how what stands there is to be read.

        Raises:
            TapUsageError: a path cannot be.
        """
        self._id_keys, self._time_keys = path_keys(id_path), path_keys(time_path)
        self._read_id: ReadId = id_reader(id_kind)
        self._read_time: ReadTime = time_reader(unit)

    def read(self, data: bytes) -> Seen | Unseen:
        """Return what a document says; nothing that it holds can raise."""
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError:
            return Unseen(Bad.NOT_JSON)
        return self.read_value(document)

    def read_value(self, document: object) -> Seen | Unseen:
        """Return what a document that was parsed says."""
        event_us: int | None = None
        bad: Bad | None = None
        time = find(document, self._time_keys)
        try:
            event_us = None if time is None else self._read_time(time)
            bad = Bad.NO_TIME if time is None else None
        except ValueError:
            bad = Bad.BAD_TIME
        message_id = find(document, self._id_keys)
        if message_id is None:
            return Unseen(Bad.NO_ID, event_us)
        try:
            found = self._read_id(message_id)
        except ValueError:
            return Unseen(Bad.BAD_ID, event_us)
        if event_us is None:
            return Unseen(bad or Bad.NO_TIME)
        return Seen(found, event_us)
