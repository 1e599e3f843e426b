"""Roll-ups of windows to hours and days.

Each write of a final window marks its hour as stale. Rolling an hour up removes the mark and rebuilds its day from the
stored hours. Until then a reader builds the hour from its windows: results are always current, and a micro-batch pays
only for the mark.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, fields, replace
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Connection, Engine, RowMapping, Select, Table, delete, exists, select, update

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.rollup import SpanPart, SpanShape, roll_up
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import NodeRollUp, RollUp, counts_roll_up_from_json, roll_up_to_json
from hopwatch.monitor.store import dialect, pathway_versions, reader, schema, tables
from hopwatch.monitor.store.tables import NODE_DIGESTS, quantile_columns
from hopwatch.monitor.stream_config import StreamConfig

HOUR_US: Final = 3_600_000_000
DAY_US: Final = 24 * HOUR_US
HOUR, DAY = "hour", "day"

Json = dict[str, Any]

_FIGURES: Final = tuple(field.name for field in fields(RollUp))
_NO_COLUMNS: Final = ("lag_us", "nodes", "counts")
"""Figures that are no column of the same form."""
_NODE_FIGURES: Final = tuple(field.name for field in fields(NodeRollUp))
_COLUMNS_WITHOUT_DIGESTS: Final = tuple(
    column for column in tables.node_rollups.c if not column.name.endswith("_digest")
)


def read_report(
    engine: Engine, by: str, stream: str | None = None, from_us: int | None = None, to_us: int | None = None
) -> Json:
    """Query the object of ``hopwatch report --by hour`` or ``day``: spans that start in ``[from_us, to_us)``.

    As with windows, ``read_through`` comes from :func:`monitor.store.instances.read_progress`.

    Raises:
        StoreError: the store cannot be read.
    """
    spans = {HOUR: read_hours, DAY: read_days}[by]
    with schema.open_snapshot(engine) as connection:
        return {
            "streams": [
                {"stream": name, f"{by}s": [roll_up_to_json(one) for one in spans(connection, name, from_us, to_us)]}
                for name in reader.read_stream_names(connection, stream)
            ],
            "accounts": reader.read_accounts(connection),
        }


def mark_stale(connection: Connection, windows: Iterable[tuple[str, int]]) -> None:
    """Mark the hours of these windows as stale: their roll-ups are out of date."""
    hours = {(stream, start_us - start_us % HOUR_US) for stream, start_us in windows}
    if hours:
        rows = [{"stream": stream, "start_us": start_us} for stream, start_us in sorted(hours)]
        connection.execute(dialect.upsert(connection, tables.stale_hours), rows)


def read_stale_hours(connection: Connection) -> list[tuple[str, int]]:
    """Query stream and start of each stale hour, the oldest first."""
    column = tables.stale_hours.c
    found = connection.execute(select(column.stream, column.start_us).order_by(column.start_us, column.stream))
    return [(row.stream, row.start_us) for row in found]


def roll_up_hour(connection: Connection, stream: str, hour_us: int) -> None:
    """Roll up the windows of an hour, and its day; a frozen hour is not changed."""
    column = tables.stale_hours.c
    connection.execute(delete(tables.stale_hours).where(column.stream == stream, column.start_us == hour_us))
    if _is_frozen(connection, stream, hour_us):
        return
    config = _read_config(connection, stream)
    hour = _build_hour(connection, config, stream, hour_us)
    if hour is None:
        return
    _write_rollup(connection, HOUR, hour)
    day_us = hour_us - hour_us % DAY_US
    parts = read_stored_parts(connection, config, stream, HOUR, (day_us, day_us + DAY_US))
    _write_rollup(connection, DAY, _build_day(config, stream, day_us, parts.values()))


def freeze_hour(connection: Connection, stream: str, hour_us: int) -> None:
    """Freeze the roll-up of an hour before its windows are deleted."""
    if (stream, hour_us) in read_stale_hours(connection):
        roll_up_hour(connection, stream, hour_us)
    column = tables.rollups.c
    chosen = (column.stream == stream) & (column.span == HOUR) & (column.start_us == hour_us)
    connection.execute(update(tables.rollups).where(chosen).values(is_frozen=True))


def read_hours(connection: Connection, stream: str, from_us: int | None, to_us: int | None) -> list[RollUp]:
    """Query the hours of a stream that start in ``[from_us, to_us)``, by time."""
    made = {
        start_us: _parse_rollup(*one) for start_us, one in _read_rows(connection, HOUR, stream, from_us, to_us).items()
    }
    for start_us, hour in _build_stale_hours(connection, stream, from_us, to_us):
        made[start_us] = hour.figures
    return [made[start_us] for start_us in sorted(made)]


def read_days(connection: Connection, stream: str, from_us: int | None, to_us: int | None) -> list[RollUp]:
    """Query the days of a stream, UTC, that start in ``[from_us, to_us)``, by time."""
    made = {
        start_us: _parse_rollup(*one) for start_us, one in _read_rows(connection, DAY, stream, from_us, to_us).items()
    }
    fresh: dict[int, dict[int, SpanPart[RollUp]]] = defaultdict(dict)
    for start_us, hour in _build_stale_hours(connection, stream, from_us, None if to_us is None else to_us + DAY_US):
        fresh[start_us - start_us % DAY_US][start_us] = hour
    for day_us, of_day in fresh.items():
        if (from_us is None or from_us <= day_us) and (to_us is None or day_us < to_us):
            config = _read_config(connection, stream)
            parts = read_stored_parts(connection, config, stream, HOUR, (day_us, day_us + DAY_US)) | of_day
            made[day_us] = _build_day(config, stream, day_us, parts.values()).figures
    return [made[start_us] for start_us in sorted(made)]


def read_stored_rollups(  # noqa: PLR0913, PLR0917 - the range, and what of it
    connection: Connection, stream: str, from_us: int, to_us: int, span: str, names: Collection[str]
) -> dict[int, RollUp]:
    """Query the stored hours or days in a range by their start, with the nodes of some names and no counts."""
    found = _read_rows(connection, span, stream, from_us, to_us, names)
    return {start_us: replace(_parse_rollup(*one), counts=()) for start_us, one in found.items()}


def read_stored_parts(
    connection: Connection, config: StreamConfig, stream: str, span: str, range_us: tuple[int, int]
) -> dict[int, SpanPart[RollUp]]:
    """Query the stored hours or days that start in ``[from_us, to_us)`` by their start, with all digests."""
    length_us = HOUR_US if span == HOUR else DAY_US
    return {
        start_us: _parse_part(config, start_us, length_us, *one)
        for start_us, one in _read_rows(connection, span, stream, *range_us).items()
    }


def read_frozen_hours(connection: Connection, from_us: int, to_us: int) -> list[tuple[str, int]]:
    """Query stream and start of the hours that are not built again, and have a part in ``[from_us, to_us)``."""
    column = tables.rollups.c
    wanted = select(column.stream, column.start_us).where(column.span == HOUR, column.is_frozen)
    wanted = wanted.where(column.start_us > from_us - HOUR_US, column.start_us < to_us)
    return [(row.stream, row.start_us) for row in connection.execute(wanted.order_by(column.stream, column.start_us))]


def read_live_hours(connection: Connection, stream: str) -> list[int]:
    """Query the starts of the hours of a stream that are still read from their windows."""
    column, rolled = tables.stale_hours.c, tables.rollups.c
    is_frozen = exists().where(
        rolled.stream == column.stream,
        rolled.span == HOUR,
        rolled.start_us == column.start_us,
        rolled.is_frozen,
    )
    found = select(column.start_us).where(column.stream == stream, ~is_frozen).order_by(column.start_us)
    return list(connection.execute(found).scalars())


def _build_stale_hours(
    connection: Connection, stream: str, from_us: int | None, to_us: int | None
) -> Iterator[tuple[int, SpanPart[RollUp]]]:
    """Build the stale hours in a range from their windows."""
    config = None
    for name, start_us in read_stale_hours(connection):
        if name != stream or not (from_us is None or from_us <= start_us) or not (to_us is None or start_us < to_us):
            continue
        config = config or _read_config(connection, stream)
        hour = None if _is_frozen(connection, stream, start_us) else _build_hour(connection, config, stream, start_us)
        if hour is not None:
            yield start_us, hour


def _build_hour(connection: Connection, config: StreamConfig, stream: str, hour_us: int) -> SpanPart[RollUp] | None:
    """Build an hour from its final windows; None without any."""
    parts = reader.read_parts(connection, stream, hour_us, hour_us + HOUR_US)
    return roll_up(config.describe_span(hour_us, hour_us + HOUR_US), stream, hour_us, parts) if parts else None


def _build_day(config: StreamConfig, stream: str, day_us: int, hours: Iterable[SpanPart[RollUp]]) -> SpanPart[RollUp]:
    return roll_up(config.describe_span(day_us, day_us + DAY_US), stream, day_us, list(hours))


def _read_config(connection: Connection, stream: str) -> StreamConfig:
    """Query the versions of a stream that the store has windows of."""
    config = pathway_versions.read_stream(connection, stream)
    if config is None:
        raise LookupError(f"the store has windows of {stream!r}, and no version of its path")
    return config


def _is_frozen(connection: Connection, stream: str, hour_us: int) -> bool:
    column = tables.rollups.c
    chosen = (column.stream == stream) & (column.span == HOUR) & (column.start_us == hour_us)
    return bool(connection.execute(select(column.is_frozen).where(chosen)).scalar())


RollUpRows = tuple[RowMapping, list[RowMapping]]
"""Stored rows of a roll-up: its own, and those of its nodes in order."""


def _read_rows(  # noqa: PLR0913, PLR0917 - the range, and what of it
    connection: Connection,
    span: str,
    stream: str,
    from_us: int | None,
    to_us: int | None,
    names: Collection[str] | None = None,
) -> dict[int, RollUpRows]:
    """Return the roll-ups in a range by their start; with the nodes of some names, and then no digest."""
    nodes: dict[int, list[RowMapping]] = defaultdict(list)
    of_nodes = _in_range(tables.node_rollups, span, stream, from_us, to_us)
    if names is not None:
        of_nodes = of_nodes.with_only_columns(*_COLUMNS_WITHOUT_DIGESTS).where(
            tables.node_rollups.c.node.in_(sorted(names))
        )
    for row in connection.execute(of_nodes).mappings():
        nodes[row["start_us"]].append(row)
    rows = connection.execute(_in_range(tables.rollups, span, stream, from_us, to_us)).mappings()
    return {row["start_us"]: (row, nodes[row["start_us"]]) for row in rows}


def _in_range(table: Table, span: str, stream: str, from_us: int | None, to_us: int | None) -> Select[Any]:
    wanted = select(table).where(table.c.stream == stream, table.c.span == span).order_by(*table.primary_key)
    wanted = wanted if from_us is None else wanted.where(table.c.start_us >= from_us)
    return wanted if to_us is None else wanted.where(table.c.start_us < to_us)


def _parse_rollup(row: RowMapping, nodes: list[RowMapping]) -> RollUp:
    values = {name: row[name] for name in _FIGURES if name not in _NO_COLUMNS}
    return RollUp(
        **values,
        lag_us=reader.parse_lag(row, "lag_us"),
        nodes=tuple(_parse_node_rollup(node) for node in nodes),
        counts=counts_roll_up_from_json(json.loads(row["counts"])),
    )


def _parse_node_rollup(row: RowMapping) -> NodeRollUp:
    values: dict[str, Any] = {
        name: reader.parse_lag(row, name) if name in NODE_DIGESTS else row[name] for name in _NODE_FIGURES
    }
    return NodeRollUp(**values)


def _parse_part(
    config: StreamConfig, start_us: int, length_us: int, row: RowMapping, nodes: list[RowMapping]
) -> SpanPart[RollUp]:
    lags, shape = (
        tuple(reader.parse_digests(node) for node in nodes),
        config.describe_span(start_us, start_us + length_us),
    )
    ends = tuple(_parse_ends(node, own, shape) for node, own in zip(nodes, lags, strict=True))
    return SpanPart(_parse_rollup(row, nodes), lags, ends, tables.parse_count_digests(row["count_digests"]))


def _parse_ends(node: RowMapping, own: NodeLags, shape: SpanShape) -> tdigest.Digest | None:
    """Return the digest of the minutes in which a node ended the pathway; an empty column stands for its own."""
    stored = node["ends_digest"]
    if stored:
        return tdigest.from_bytes(stored)
    # What was stored before there were versions says nothing of it.
    return own.lag_out_us if stored is not None or node["node"] in shape.terminals else None


def _write_rollup(connection: Connection, span: str, rolled: SpanPart[RollUp]) -> None:
    figures = rolled.figures
    key = {"stream": figures.stream, "span": span, "start_us": figures.start_us}
    row = {name: getattr(figures, name) for name in _FIGURES if name not in _NO_COLUMNS}
    row |= quantile_columns("lag_us", figures.lag_us)
    row |= {"counts": json.dumps([asdict(of_node) for of_node in figures.counts])}
    row |= {"count_digests": tables.count_digests(rolled.count_lags)}
    nodes = [_node_row(*one) for one in zip(figures.nodes, rolled.lags, rolled.ends, strict=True)]
    row |= key | {"is_frozen": False, "fingerprint": _fingerprint(row, *nodes)}
    connection.execute(dialect.upsert(connection, tables.rollups), [row])
    rows = [key | {"place": place} | one for place, one in enumerate(nodes)]
    column = tables.node_rollups.c
    beyond = (column.stream == key["stream"], column.span == span, column.start_us == key["start_us"])
    connection.execute(delete(tables.node_rollups).where(*beyond, column.place >= len(rows)))
    connection.execute(dialect.upsert(connection, tables.node_rollups), rows)


def _fingerprint(*rows: dict[str, Any]) -> int:
    """Return a 64-bit fingerprint of figures and digests."""
    told = repr([sorted(row.items()) for row in rows]).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "big", signed=True)


def _node_row(node: NodeRollUp, lags: NodeLags, ends: tdigest.Digest | None) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(node, name) for name in _NODE_FIGURES if name not in NODE_DIGESTS}
    if ends is not None:
        row["ends_digest"] = b"" if ends is lags.lag_out_us else tdigest.to_bytes(ends)
    else:
        row["ends_digest"] = None
    return row | tables.digest_columns(node, lags)
