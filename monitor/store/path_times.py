"""Times of messages on the path in the store, of windows that are final."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, func, select

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel.deadlines import WindowTimes
from hopwatch.monitor.results import PathTime, Quantiles, SpanTime, SpanTimes
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.reported_nodes import bind_range
from hopwatch.monitor.store.tables import PATH_TIME_FIELDS, QUANTILE_FIELDS
from hopwatch.probes.contract.limits import WINDOW_US

_column: Final = tables.path_times.c
MAX_ROWS: Final = 20_000
"""Rows that are added up for a span at most, in some 30 ms: a longer one is cut to its end."""
_OF_WINDOW: Final = ("samples", "messages", "path_messages")
_in_span: Final = (
    (_column.stream == bindparam("of_stream"))
    & (_column.window_start_us >= bindparam("from_us"))
    & (_column.window_start_us < bindparam("to_us"))
)
_SELECT: Final = (
    select(tables.path_times).where(_in_span).order_by(_column.window_start_us, _column.node, _column.source)
)
_SUMS: Final = (
    select(
        *(_column.node, _column.source),
        func.sum(_column.count).label("timed"),
        *(func.max(_column[name]).label(f"{name}_us") for name in ("p50", "p95", "p99")),
        func.sum(_column.total_us).label("total_us"),
    )
    .where(_in_span)
    .group_by(_column.node, _column.source)
)
_of_window = (
    select(_column.window_start_us, *(func.max(_column[name]).label(name) for name in _OF_WINDOW))
    .where(_in_span)
    .group_by(_column.window_start_us)
    .subquery()
)
_WINDOWS: Final = select(func.count(), *(func.sum(_of_window.c[name]) for name in _OF_WINDOW))
_LAST: Final = select(func.max(_column.window_start_us)).where(_column.stream == bindparam("of_stream"))
_BY_PART: Final = select(
    *(_column[name] for name in ("source", "node", "window_start_us", "count", "samples", "messages")),
    *(_column[name] for name in ("p50", "p95", "p99", "max")),
).where(_in_span)


class TimedSpan(NamedTuple):
    """Times of a stream by source and node, of windows in ``[from_us, to_us)``; the node is the source of its inside.

    Messages were timed in ``windows`` of them, the first and the last one included.
    """

    from_us: int
    to_us: int
    windows: int
    times: dict[tuple[str, str], WindowTimes]


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


def query_span_times(connection: Connection, stream: str, from_us: int, to_us: int, parts: int) -> SpanTimes | None:
    """Query the times of a stream over windows that start in ``[from_us, to_us)``; None where no window has any.

    ``parts`` is how many times a window has at most: a span with too many rows is cut to its last windows.
    """
    from_us = max(from_us, to_us - max(1, MAX_ROWS // max(1, parts)) * WINDOW_US)
    where = {"of_stream": stream, "from_us": from_us, "to_us": to_us}
    windows, *sums = connection.execute(_WINDOWS, where).one()
    if not windows:
        return None
    samples, messages, path_messages = map(int, sums)
    times = [
        SpanTime(node, source, *map(int, figures)) for node, source, *figures in connection.execute(_SUMS, where).all()
    ]
    return SpanTimes(from_us, int(windows), samples, messages, path_messages, tuple(times))


def query_timed_span(connection: Connection, stream: str, over_us: int) -> TimedSpan | None:
    """Query the times of a stream over the last ``over_us`` before the end of its last window that has any.

    How many messages took them is estimated, where a window's sample does not have all. None where no window has any.
    """
    last_us = connection.execute(_LAST, {"of_stream": stream}).scalar()
    if last_us is None:
        return None
    to_us = int(last_us) + WINDOW_US
    where = {"of_stream": stream, "from_us": to_us - over_us, "to_us": to_us}
    found = connection.execute(_BY_PART, where).all()
    figures = np.array([row[2:] for row in found], np.int64)
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, row in enumerate(found):
        parts[row.source, row.node].append(place)
    # A sample has one message of so many of its window.
    messages = figures[:, 1] * (figures[:, 3] / figures[:, 2])
    times = {part: WindowTimes(messages[places], figures[places, 4:]) for part, places in parts.items()}
    starts_us = np.unique(figures[:, 0])
    return TimedSpan(int(starts_us[0]), to_us, len(starts_us), times)
