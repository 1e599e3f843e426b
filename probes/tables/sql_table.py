"""SQL table with a column that grows: its snapshots are the rows up to a value of that column."""

from __future__ import annotations

import json
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, MetaData, Table, and_, create_engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchTableError

from hopwatch.probes.clock import Clock
from hopwatch.probes.tables.parquet_rows import ROWS
from hopwatch.probes.tables.postgres_writers import find_writers
from hopwatch.probes.tables.snapshots import NewSnapshots, SnapshotPlace, TableSnapshot
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError

SCHEME: Final = "sql:"
_MOMENT: Final = "datetime"
"""Key of a moment, which JSON has no form for."""
MAX_LOOKS: Final = 100_000
"""Looks that are kept until their writers have ended; of more the oldest are forgotten, which completes nothing."""


class _Look(NamedTuple):
    """Greatest value at some moment, by both clocks, and the transactions that wrote to the table just after it."""

    monotonic_us: int
    wall_us: int
    newest: object
    writers: frozenset[str]


class SqlTable:
    """Rows of a table in the order of one of its columns, of integers, texts or moments that only grow.

    A value is given out before its transaction is committed, so that a row may appear behind rows of greater values. A
    look therefore takes the rows up to the greatest value that was there ``grace_s`` before it; in PostgreSQL those of
    a look of which no writer is still at work, too.
    """

    is_planned = True

    def __init__(self, url: str, table: str, grows: str, grace_s: float, clock: Clock) -> None:
        """Read which columns the table has.

        Raises:
            TapUsageError: the URL is none, there is no such table, or it has no such column.
            TapSourceError: there is no such file.
            SQLAlchemyError: the database cannot be asked.
        """
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise TapUsageError(f"a SQL database is {SCHEME}URL as SQLAlchemy has it, got {url!r:.40}") from None
        shown = parsed.render_as_string()
        self.name = f"{table} at {shown}"
        if parsed.get_backend_name() == "sqlite" and parsed.database and not Path(parsed.database).exists():
            # SQLite itself would make an empty one.
            why = f"there is no file {parsed.database!r:.200}: name that of a database"
            raise TapSourceError(f"the table {SCHEME} cannot be read: {why}")
        self._engine = create_engine(parsed)
        schema, _, name = table.rpartition(".")
        try:
            self._table = Table(name, MetaData(), schema=schema or None, autoload_with=self._engine)
        except NoSuchTableError:
            raise TapUsageError(f"there is no table {table!r:.80} at {shown}: name another with --table") from None
        if grows not in self._table.c:
            there = ", ".join(self._table.c.keys())
            raise TapUsageError(f"{self.name} has no column {grows!r:.80}: name one of {there} with --grows")
        self._grows, self._grace_us, self._clock = self._table.c[grows], int(grace_s * 1_000_000), clock
        self._looks: deque[_Look] = deque(maxlen=MAX_LOOKS)
        self.identity = f"sql:{parsed.host or ''}/{parsed.database}/{table}.{grows}"

    def find_columns(self) -> dict[str, str]:
        """Return the names of the columns."""
        return {name: name for name in self._table.c.keys()}  # noqa: SIM118 - a collection of columns yields columns

    def find_last(self) -> SnapshotPlace | None:
        """Return the place behind all rows that are there; None of an empty table."""
        newest = self._find_newest()
        return None if newest is None else SnapshotPlace(_write_value(newest), self._wall_us())

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:
        """Return the rows behind a place as one snapshot: up to a planned place, else as far as they have settled."""
        if planned is not None:
            return _build_rows(after, planned, 0)
        now = self._look()
        self._looks.append(now)
        settled: _Look | None = now
        if not (now.newest is None or _is_at(after, now.newest)):
            settled = next((look for look in reversed(self._looks) if self._has_settled(look, now)), None)
        through_us, note = self._complete(settled), self._describe_wait(now)
        if settled is None or settled.newest is None or _is_at(after, settled.newest):
            return NewSnapshots((), read_through_us=through_us, note=note)
        return _build_rows(after, SnapshotPlace(_write_value(settled.newest), self._wall_us()), through_us, note)

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the rows between two values."""
        first, last = json.loads(file)
        chosen = [self._table.c[name] for name in columns]
        behind = [] if first is None else [self._grows > _read_value(first)]
        asked = select(*chosen).where(and_(self._grows <= _read_value(last), *behind)).order_by(self._grows, *chosen)
        with self._engine.connect().execution_options(yield_per=ROWS) as connection:
            for part in connection.execute(asked).partitions(ROWS):
                yield pa.record_batch(
                    {name: _to_array(values) for name, values in zip(columns, zip(*part, strict=True), strict=True)}
                )

    def _find_newest(self) -> object:
        with self._engine.connect() as connection:
            return self._ask_newest(connection)

    def _ask_newest(self, connection: Connection) -> object:
        return connection.execute(select(func.max(self._grows))).scalar_one()

    def _look(self) -> _Look:
        """Look at the greatest value, and then at who writes: who has ended in between is seen by all that follow."""
        monotonic_us, wall_us = self._clock.monotonic_ns() // 1_000, self._wall_us()
        with self._engine.connect() as connection:
            newest = self._ask_newest(connection)
            return _Look(monotonic_us, wall_us, newest, find_writers(connection, self._table, self._grows))

    def _has_settled(self, look: _Look, now: _Look) -> bool:
        """Return whether the grace has passed since a look, and its writers have ended."""
        return look.monotonic_us <= now.monotonic_us - self._grace_us and not look.writers & now.writers

    def _complete(self, settled: _Look | None) -> int:
        """Return the moment up to which all is read once the rows of a look are: 0 if it is not known.

        It is that of the last look of which all writers had ended by then, so that what they wrote is among the rows.
        """
        if settled is None:
            return 0
        through = None
        for look in self._looks:
            if look.writers & settled.writers:
                break
            through = look
            if look is settled:
                break
        while through is not None and self._looks[0] is not through:
            self._looks.popleft()
        return 0 if through is None else through.wall_us

    def _describe_wait(self, now: _Look) -> str:
        """Return what a look waits for, if not for the grace."""
        waiting = next((look for look in self._looks if not self._has_settled(look, now)), now)
        if waiting.monotonic_us > now.monotonic_us - self._grace_us or not waiting.writers:
            return ""
        open_s = f"a transaction that writes to {self.name} is open for more than {self._grace_us / 1e6:g} s"
        return f"{open_s}: it is read no further until that has ended"

    def _wall_us(self) -> int:
        return self._clock.wall_ns() // 1_000


def _build_rows(
    after: SnapshotPlace | None, place: SnapshotPlace, read_through_us: int, note: str = ""
) -> NewSnapshots:
    """Return the rows between two places; all, and a gap, where the values have begun anew as by TRUNCATE."""
    first, last = None if after is None else json.loads(after.number), json.loads(place.number)
    # Texts are compared by the database alone, by its collation.
    is_anew = first is not None and not isinstance(first, str) and _read_value(last) < _read_value(first)
    file = json.dumps([None if is_anew else first, last])
    return NewSnapshots([TableSnapshot(place, (file,))], is_anew, read_through_us, note)


def _is_at(after: SnapshotPlace | None, newest: object) -> bool:
    return after is not None and after.number == _write_value(newest)


def _write_value(value: object) -> str:
    """Return a value of the growing column as JSON.

    Raises:
        TapUsageError: it is of no kind that grows.
    """
    if isinstance(value, datetime):
        return json.dumps({_MOMENT: value.isoformat()})
    if isinstance(value, Decimal) and value == int(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        kind = type(value).__name__
        raise TapUsageError(
            f"a column that grows has integers, texts or moments, got {kind}: name another with --grows"
        )
    return json.dumps(value)


def _read_value(kept: Any) -> Any:  # noqa: ANN401 - what JSON holds
    return datetime.fromisoformat(kept[_MOMENT]) if isinstance(kept, dict) else kept


def _to_array(values: Sequence[object]) -> pa.Array:
    return pa.array([_simplify(value) for value in values])


def _simplify(value: object) -> object:
    """Return a value of a database as Arrow takes it."""
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
