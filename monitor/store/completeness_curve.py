"""Query of when messages came to the nodes of a stream, and of when its windows were amended."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, case, func, select

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.completeness_curve import NodeArrivals
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import Verdict
from hopwatch.monitor.store import tables
from hopwatch.probes.contract.limits import WINDOW_US

_window, _node, _revision = tables.windows.c, tables.node_windows.c, tables.revisions.c


def read_arrivals(
    connection: Connection, stream: str, from_us: int, to_us: int, shortest_us: int
) -> Iterator[NodeArrivals]:
    """Yield the arrivals at each node in the final windows that start in ``[from_us, to_us)``, but UNKNOWN ones.

    Windows whose digests were dropped are left out, too. Where a node has no stamp of arrivals, those of departures
    stand for them. Digests are read where a lag is over ``shortest_us``.
    """
    sides = (
        (_node.lag_in_us_count, _node.lag_in_us_min, _node.lag_in_us_max, _node.lag_in_us_digest),
        (_node.lag_out_us_count, _node.lag_out_us_min, _node.lag_out_us_max, _node.lag_out_us_digest),
    )
    figures = ((count, least, most, case((most > shortest_us, digest))) for count, least, most, digest in sides)
    wanted = (
        select(_node.node, _node.window_start_us, *(column for side in figures for column in side))
        .join(
            tables.windows,
            (_window.stream == _node.stream) & (_window.window_start_us == _node.window_start_us),
        )
        .where(_node.stream == stream, _node.window_start_us >= from_us, _node.window_start_us < to_us)
        .where(_window.status.in_(tables.FINAL_STATUSES), _window.verdict != Verdict.UNKNOWN)
        .where(_node.lag_in_us_digest != tables.DROPPED_DIGEST)
        .order_by(_node.window_start_us, _node.place)
    )
    for node, start_us, *lags in connection.execute(wanted):
        count, least_us, most_us, digest = lags[:4] if lags[0] else lags[4:]
        if count:
            found = None if digest is None else tdigest.from_bytes(digest)
            yield NodeArrivals(node, start_us, count, least_us, most_us, found)


def read_amendments(
    connection: Connection, stream: str, from_us: int, to_us: int, terms: WindowPolicy
) -> Iterator[int]:
    """Yield how long behind its end each amended window in a range was amended last, µs.

    Windows that were judged again by a person, later than anything could amend them, are left out.
    """
    wanted = (
        select(_revision.window_start_us, func.max(_revision.watermark_us))
        .where(_revision.stream == stream, _revision.window_start_us >= from_us, _revision.window_start_us < to_us)
        .where(_revision.watermark_us - _revision.window_start_us <= terms.judged_until_us(0))
        .group_by(_revision.window_start_us)
    )
    for start_us, watermark_us in connection.execute(wanted):
        yield int(watermark_us) - start_us - WINDOW_US
