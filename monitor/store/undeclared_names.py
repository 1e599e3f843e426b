"""Streams and nodes in records that no configuration declares, counted in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from sqlalchemy import Connection, delete, select

from hopwatch.monitor.accounting.undeclared_names import UndeclaredName, merge_records
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.store import dialect, tables
from hopwatch.monitor.stream_config import StreamConfig

_column = tables.undeclared.c


def count_undeclared(connection: Connection, records: Iterable[SetAside], rules: Mapping[str, StreamConfig]) -> None:
    """Count records that were set aside for an undeclared name."""
    named = [record for record in records if record.sender is not None]
    if not named:
        return
    known = {one.key: one for one in read_undeclared(connection)}
    changed = [asdict(one) for key, one in merge_records(known, named, rules).items() if one != known.get(key)]
    if changed:
        connection.execute(dialect.upsert(connection, tables.undeclared), changed)


def read_undeclared(connection: Connection, since_us: int | None = None) -> tuple[UndeclaredName, ...]:
    """Query the undeclared names, most records first; only those seen since a time, if one is given."""
    wanted = select(tables.undeclared).order_by(_column.records.desc(), *tables.undeclared.primary_key)
    if since_us is not None:
        wanted = wanted.where(_column.last_arrival_us >= since_us)
    return tuple(UndeclaredName(**row) for row in connection.execute(wanted).mappings())


def delete_undeclared(connection: Connection, before_us: int) -> None:
    """Delete the names whose last record arrived before a time."""
    connection.execute(delete(tables.undeclared).where(_column.last_arrival_us < before_us))
