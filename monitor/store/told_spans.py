"""Spans of contracts with a webhook: what it was told last of each, and which may have to be told anew."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from hopwatch.monitor.kernel.completeness import CompletenessState
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.writer import read_value, set_values

POSITIONS: Final = "told_sequences"
"""Name in ``meta`` of the last write of windows that each contract has been held against."""
_span, _window = tables.told_spans.c, tables.windows.c


class ToldSpan(NamedTuple):
    """Answer to a contract for the span that ends at ``until_us``, as it was told last.

    The state is pending where nothing was told yet; counts are those of the answer.
    """

    until_us: int
    state: str = CompletenessState.PENDING.value
    revisions: int = 0
    known: int = 0
    lost_lower: int = 0
    lost_upper: int | None = None
    in_flight: int = 0


_COLUMNS: Final = tuple(_span[name] for name in ToldSpan._fields)


class WrittenSpans(NamedTuple):
    """Ends of the spans whose windows were written behind a position, and the position behind these windows."""

    ends_us: frozenset[int]
    position: int


def read_last_end(connection: Connection, contract: str) -> int | None:
    """Return the end of the last span of a contract that is known; None without one."""
    found = connection.execute(select(func.max(_span.until_us)).where(_span.contract == contract)).scalar()
    return None if found is None else int(found)


def add_spans(connection: Connection, contract: str, ends_us: Iterable[int]) -> None:
    """Add spans of which nothing was told yet."""
    rows = [{"contract": contract, "told_us": 0, **ToldSpan(until_us)._asdict()} for until_us in ends_us]
    if rows:
        connection.execute(insert(tables.told_spans), rows)


def read_pending(connection: Connection, contract: str, limit: int) -> list[ToldSpan]:
    """Return the oldest spans of a contract of which nothing was told yet."""
    pending = (_span.contract == contract) & (_span.state == CompletenessState.PENDING.value)
    wanted = select(*_COLUMNS).where(pending).order_by(_span.until_us).limit(limit)
    return [ToldSpan(*row) for row in connection.execute(wanted)]


def read_spans(connection: Connection, contract: str, ends_us: Iterable[int]) -> list[ToldSpan]:
    """Return the spans of a contract with given ends."""
    named = (_span.contract == contract) & _span.until_us.in_(sorted(ends_us))
    return [ToldSpan(*row) for row in connection.execute(select(*_COLUMNS).where(named))]


def save_told(connection: Connection, contract: str, span: ToldSpan, told_us: int) -> None:
    """Save what was told of a span, at a moment of the wall clock."""
    connection.execute(delete(tables.told_spans).where(_span.contract == contract, _span.until_us == span.until_us))
    connection.execute(insert(tables.told_spans).values(contract=contract, told_us=told_us, **span._asdict()))


def read_position(connection: Connection, contract: str) -> int | None:
    """Return the number of the last write of windows that a contract has been held against; None before the first."""
    return _read_positions(connection).get(contract)


def save_position(connection: Connection, contract: str, position: int) -> None:
    """Save that number."""
    set_values(connection, {POSITIONS: json.dumps({**_read_positions(connection), contract: position})})


def read_last_write(connection: Connection) -> int:
    """Return the number of the last write of windows; 0 before the first."""
    return int(connection.execute(select(func.max(_window.sequence))).scalar() or 0)


def read_written_spans(connection: Connection, stream: str, over_us: int, position: int) -> WrittenSpans:
    """Return the spans, ``over_us`` long, with windows that were written behind a position."""
    behind = (_window.sequence > position) & (_window.stream == stream)
    number = (_window.window_start_us // over_us).label("number")
    # By its name: PostgreSQL takes an expression with a parameter for another one each time.
    wanted = select(number, func.max(_window.sequence)).where(behind).group_by("number")
    rows = connection.execute(wanted).all()
    ends = frozenset((int(place) + 1) * over_us for place, _ in rows)
    return WrittenSpans(ends, max((sequence for _, sequence in rows), default=position))


def prune_told_spans(connection: Connection, before_us: int) -> int:
    """Delete spans that ended before a moment and were told of; return how many."""
    told = (_span.until_us < before_us) & (_span.state != CompletenessState.PENDING.value)
    return connection.execute(delete(tables.told_spans).where(told)).rowcount


def _read_positions(connection: Connection) -> Mapping[str, Any]:
    return dict(json.loads(read_value(connection, POSITIONS) or "{}"))
