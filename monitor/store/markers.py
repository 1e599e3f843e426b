"""Markers in the store."""

from __future__ import annotations

import json
from typing import Final

from sqlalchemy import Connection, Engine, delete, func, insert, select

from hopwatch.monitor.markers import Marker
from hopwatch.monitor.store import schema, tables

MAX_MARKERS: Final = 200
"""Markers that are shown of a range, the latest ones."""
_markers = tables.markers.c


def add_marker(engine: Engine, marker: Marker) -> int:
    """Store a marker, and return its number.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        return insert_marker(connection, marker)


def insert_marker(connection: Connection, marker: Marker) -> int:
    """Store a marker in a transaction of the caller's, and return its number.

    One that is stored already is not stored again, as when a request is repeated whose answer was lost.
    """
    row = {name: getattr(marker, name) for name in ("at_us", "stream", "text", "by")}
    alike = select(_markers.number, _markers.labels).where(*(_markers[name] == value for name, value in row.items()))
    for known in connection.execute(alike):
        if json.loads(known.labels) == dict(marker.labels):
            return int(known.number)
    number = 1 + int(connection.execute(select(func.max(_markers.number))).scalar() or 0)
    labels = json.dumps(dict(marker.labels), ensure_ascii=False)
    connection.execute(insert(tables.markers).values(row | {"number": number, "labels": labels}))
    return number


def remove_marker(engine: Engine, number: int) -> bool:
    """Remove a marker; return False if there is none of this number.

    Raises:
        StoreError: the store cannot be written.
    """
    with schema.open_change(engine) as connection:
        return connection.execute(delete(tables.markers).where(_markers.number == number)).rowcount > 0


def query_markers(connection: Connection, stream: str | None, from_us: int, to_us: int) -> list[Marker]:
    """Return the latest markers in ``[from_us, to_us)`` by time: of a stream and of all, or of every stream."""
    names = ("at_us", "text", "by", "stream", "labels", "number")
    query = select(*(_markers[name] for name in names)).where(_markers.at_us >= from_us, _markers.at_us < to_us)
    query = query if stream is None else query.where(_markers.stream.in_([stream, ""]))
    newest = query.order_by(_markers.at_us.desc(), _markers.number.desc()).limit(MAX_MARKERS)
    rows = connection.execute(newest).mappings()
    return [Marker(**dict(row) | {"labels": json.loads(row["labels"])}) for row in rows][::-1]


def prune_markers(connection: Connection, before_us: int) -> int:
    """Delete markers from before a time; return how many."""
    return connection.execute(delete(tables.markers).where(_markers.at_us < before_us)).rowcount
