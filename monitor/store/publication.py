"""Windows that are still to be published, in the order in which they were written, and how far that has come.

A window has the number of the write that wrote it last. Writes are committed one after the other, so that no window
with a lower number appears later: one position says of all windows whether they are published.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, bindparam, func, select, tuple_

from hopwatch.monitor.selftest.stream import OWN_STREAMS
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.writer import PUBLISHED, STORE_ID, read_value, set_values


class WrittenWindow(NamedTuple):
    """Window by the number of its last write; in this order windows are published."""

    sequence: int
    stream: str
    window_start_us: int


NOTHING: Final = WrittenWindow(-1, "", 0)
"""Position before all windows."""
_window: Final = tables.windows.c
_PLACE: Final = (_window.sequence, _window.stream, _window.window_start_us)
_NAMES: Final = ("behind_sequence", "behind_stream", "behind_start_us")
_TYPES: Final = tuple(column.type for column in _PLACE)


def identify_store(connection: Connection) -> str:
    """Return the random id of this store, which it gets here the first time; the transaction writes."""
    found = read_value(connection, STORE_ID) or uuid4().hex
    set_values(connection, {STORE_ID: found})
    return found


def read_position(connection: Connection, topic: str = "") -> WrittenWindow:
    """Return the last window that is in a topic, or in whichever was written last; ``NOTHING`` if none is."""
    return find_position(connection, topic) or NOTHING


def find_position(connection: Connection, topic: str, name: str = PUBLISHED) -> WrittenWindow | None:
    """Return the position that was saved of a topic, by the name of its kind; None if none was."""
    kept = json.loads(read_value(connection, name) or "{}")
    return WrittenWindow(*kept["position"]) if kept and topic in ("", kept["topic"]) else None


def save_position(connection: Connection, topic: str, position: WrittenWindow, name: str = PUBLISHED) -> None:
    """Save the last window that is in a topic, named so that no other one is so named."""
    set_values(connection, {name: json.dumps({"topic": topic, "position": position})})


def read_last(connection: Connection) -> WrittenWindow:
    """Return the window that was written last; ``NOTHING`` without any."""
    wanted = select(*_PLACE).where(*_behind(NOTHING)).order_by(*(one.desc() for one in _PLACE)).limit(1)
    return next((WrittenWindow(*row) for row in connection.execute(wanted)), NOTHING)


def read_waiting(connection: Connection, position: WrittenWindow, limit: int) -> list[WrittenWindow]:
    """Return the first windows behind a position."""
    wanted = select(*_PLACE).where(*_behind(position)).order_by(*_PLACE).limit(limit)
    return [WrittenWindow(*row) for row in connection.execute(wanted)]


def count_waiting(connection: Connection) -> int:
    """Count the windows that are not published yet, or have changed since."""
    position = read_position(connection)
    return connection.execute(select(func.count()).select_from(tables.windows).where(*_behind(position))).scalar_one()


def _behind(position: WrittenWindow) -> tuple[ColumnElement[bool], ...]:
    # Compared as rows, so that the index is searched by all of it: windows of an older store share one number.
    return tuple_(*_PLACE) > tuple_(*map(bindparam, _NAMES, position, _TYPES)), _window.stream.not_in(OWN_STREAMS)
