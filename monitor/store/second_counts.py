"""Counts by second of event time in the store, of each node that misses messages in a final window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.results import SecondCounts, seconds_from_json
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.reported_nodes import bind_range

_column: Final = tables.second_counts.c
_SELECT: Final = (
    select(_column.window_start_us, _column.node, _column.counts)
    .where(_column.stream == bindparam("of_stream"))
    .where(_column.window_start_us >= bindparam("from_us"), _column.window_start_us < bindparam("to_us"))
)


def build_second_rows(final: Conclusion) -> Iterator[dict[str, Any]]:
    """Yield the rows of a final window."""
    key = {"stream": final.result.stream, "window_start_us": final.result.window_start_us}
    for node, counts in zip(final.result.nodes, final.seconds, strict=False):
        if counts is not None:
            yield key | {"node": node.node, "counts": json.dumps(asdict(counts))}


def read_second_counts(
    connection: Connection, stream: str, from_us: int | None, to_us: int | None
) -> dict[tuple[int, str], SecondCounts]:
    """Query the counts by second of windows of a stream that start in ``[from_us, to_us)``, by start in µs and node."""
    rows = connection.execute(_SELECT, {"of_stream": stream} | bind_range(from_us, to_us))
    return {(row.window_start_us, row.node): seconds_from_json(json.loads(row.counts)) for row in rows}
