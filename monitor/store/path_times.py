"""Times of messages on the path in the store, of windows that are final."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.results import PathTime, Quantiles
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.reported_nodes import bind_range
from hopwatch.monitor.store.tables import PATH_TIME_FIELDS, QUANTILE_FIELDS

_column: Final = tables.path_times.c
_SELECT: Final = (
    select(tables.path_times)
    .where(_column.stream == bindparam("of_stream"))
    .where(_column.window_start_us >= bindparam("from_us"), _column.window_start_us < bindparam("to_us"))
    .order_by(_column.window_start_us, _column.node, _column.source)
)


def build_time_rows(final: Conclusion) -> Iterator[dict[str, Any]]:
    """Yield the rows of a final window."""
    key = {"stream": final.result.stream, "window_start_us": final.result.window_start_us}
    for node, times in zip(final.result.nodes, final.times, strict=False):
        for one in times:
            figures = {name: getattr(one.time_us, name) for name in QUANTILE_FIELDS}
            figures |= {name: getattr(one, name) for name in PATH_TIME_FIELDS}
            yield key | {"node": node.node, "source": one.source} | figures


def read_path_times(
    connection: Connection, stream: str, from_us: int | None, to_us: int | None
) -> dict[tuple[int, str], tuple[PathTime, ...]]:
    """Query the times of windows of a stream that start in ``[from_us, to_us)``, by start in µs and node.

    Those of a node are in the order of their sources.
    """
    found: dict[tuple[int, str], list[PathTime]] = defaultdict(list)
    for row in connection.execute(_SELECT, {"of_stream": stream} | bind_range(from_us, to_us)).mappings():
        figures = Quantiles(**{name: row[name] for name in QUANTILE_FIELDS})
        time = PathTime(row["source"], figures, **{name: row[name] for name in PATH_TIME_FIELDS})
        found[row["window_start_us"], row["node"]].append(time)
    return {key: tuple(times) for key, times in found.items()}
