"""Recent figures in the store: the last of each stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from hopwatch.monitor.results import RecentEdge, RecentFigures, RecentLag, RecentNode
from hopwatch.monitor.store import dialect, tables

_column = tables.recent_figures.c


def save_recent(connection: Connection, recent: Sequence[RecentFigures]) -> None:
    """Write the figures of some streams in place of those of before."""
    if recent:
        rows = [one._asdict() | {"nodes": json.dumps(one.nodes), "edges": json.dumps(one.edges)} for one in recent]
        connection.execute(dialect.upsert(connection, tables.recent_figures), rows)


def read_recent(connection: Connection, stream: str) -> RecentFigures | None:
    """Query the figures of a stream; None where there never were any."""
    row = connection.execute(select(tables.recent_figures).where(_column.stream == stream)).first()
    return None if row is None else _parse_figures(row)


def read_all_recent(connection: Connection) -> dict[str, RecentFigures]:
    """Query the figures of all streams that have some."""
    return {row.stream: _parse_figures(row) for row in connection.execute(select(tables.recent_figures))}


def _parse_figures(row: Row[*tuple[Any, ...]]) -> RecentFigures:
    nodes = tuple(_parse_node(one) for one in json.loads(row.nodes))
    edges = tuple(
        RecentEdge(source, node, messages, RecentLag(*time_us))
        for source, node, messages, time_us in json.loads(row.edges or "[]")
    )
    return RecentFigures(row.stream, row.through_us, nodes, edges)


def _parse_node(packed: list[Any]) -> RecentNode:
    node, arrived, departed, stopped, lag_in_us, lag_out_us, backlog = packed
    lag_in, lag_out = (RecentLag(*lag_us) if lag_us else None for lag_us in (lag_in_us, lag_out_us))
    return RecentNode(node, arrived, departed, stopped, lag_in, lag_out, backlog)
