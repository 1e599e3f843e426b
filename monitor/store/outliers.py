"""Outliers in the store: findings, and the state of the detector for each series at a whole hour."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Engine, RowMapping, Select, bindparam, delete, func, select, tuple_

from hopwatch.monitor.outliers import state
from hopwatch.monitor.outliers.explanation import Explanation, SurpriseReason
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding, Retraction
from hopwatch.monitor.outliers.quantities import Ints, Quantity
from hopwatch.monitor.outliers.state import States
from hopwatch.monitor.outliers.window_values import TRACKED_QUANTITIES
from hopwatch.monitor.store import dialect, schema, tables

_NO_NODE: Final = -1
"""Place of the row that only holds the start of a stream, until the first states are stored."""

_states, _outliers = tables.outlier_states.c, tables.outliers.c


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """The :class:`monitor.outliers.series_tracker.SavedMemory` of one stream."""

    connection: Connection
    stream: str

    def states(self, rows: Ints) -> States:
        """Return the states of some series; new ones where none are stored."""
        places = np.unique(rows // len(TRACKED_QUANTITIES))
        wanted = select(_states.place, _states.states).where(_states.stream == self.stream)
        chosen = wanted.where(_states.place.in_(places.tolist())).order_by(_states.place)
        stored = {row.place: state.from_bytes(row.states) for row in self.connection.execute(chosen)}
        packed = [stored.get(place, state.new_states(len(TRACKED_QUANTITIES))) for place in places.tolist()]
        if not packed:
            return state.new_states(len(rows))
        at = np.searchsorted(places, rows // len(TRACKED_QUANTITIES)) * len(TRACKED_QUANTITIES) + rows % len(
            TRACKED_QUANTITIES
        )
        found: States = np.concatenate(packed)[at]
        return found

    def before_us(self) -> int | None:
        """Return the hour up to which the stored states reach; None without stored states."""
        wanted = select(func.max(_states.before_us)).where(_states.stream == self.stream)
        before_us = self.connection.execute(wanted).scalar()
        return None if before_us is None else int(before_us)


def save_states(connection: Connection, stream: str, before_us: int, states: States) -> None:
    """Save the states of all series of a stream as they were before a whole hour."""
    of_nodes = states.reshape(-1, len(TRACKED_QUANTITIES))
    key = {"stream": stream, "before_us": before_us}
    rows = [key | {"place": place, "states": state.to_bytes(own)} for place, own in enumerate(of_nodes)]
    connection.execute(dialect.upsert(connection, tables.outlier_states), rows)
    connection.execute(delete(tables.outlier_states).where(_states.stream == stream, _states.place == _NO_NODE))


def save_start(connection: Connection, stream: str, start_us: int) -> None:
    """Save where the series of a stream start, until their first states are stored."""
    row = {"stream": stream, "place": _NO_NODE, "before_us": start_us, "states": b""}
    connection.execute(dialect.upsert(connection, tables.outlier_states), [row])


def write_changes(connection: Connection, stream: str, news: FindingChanges) -> None:
    """Delete findings that no longer hold, and write the new ones."""
    of_series = (_outliers.node == bindparam("of_node")) & (_outliers.quantity == bindparam("of_quantity"))
    behind = _outliers.window_start_us >= bindparam("from_us")
    if news.erased:
        erase = delete(tables.outliers).where(_outliers.stream == stream, of_series, behind)
        connection.execute(erase, [_to_parameters(erased) for erased in news.erased])
    if news.findings:
        rows = [_to_row(stream, finding) for finding in news.findings]
        connection.execute(dialect.upsert(connection, tables.outliers), rows)


def query_findings(
    engine: Engine, stream: str | None = None, from_us: int | None = None, to_us: int | None = None
) -> list[tuple[str, OutlierFinding]]:
    """Query the findings of windows that start in ``[from_us, to_us)``, by stream and time.

    Raises:
        StoreError: the store cannot be read.
    """
    wanted = _in_range(stream, from_us, to_us)
    with schema.open_snapshot(engine) as connection:
        return [(row["stream"], _parse_finding(row)) for row in connection.execute(wanted).mappings()]


def read_findings(connection: Connection, stream: str, from_us: int, to_us: int) -> list[OutlierFinding]:
    """Query the findings of a stream in windows that start in ``[from_us, to_us)``, by time."""
    return [_parse_finding(row) for row in connection.execute(_in_range(stream, from_us, to_us)).mappings()]


def read_latest_outliers(connection: Connection, stream: str, before_us: int) -> Iterator[OutlierFinding]:
    """Yield the latest outlier of each series before a time."""
    chosen = (_outliers.stream == stream) & _outliers.is_outlier & (_outliers.window_start_us < before_us)
    latest = select(_outliers.node, _outliers.quantity, func.max(_outliers.window_start_us)).where(chosen)
    key = tuple_(_outliers.node, _outliers.quantity, _outliers.window_start_us)
    wanted = select(tables.outliers).where(chosen, key.in_(latest.group_by(_outliers.node, _outliers.quantity)))
    for row in connection.execute(wanted).mappings():
        yield _parse_finding(row)


def read_newest_findings(
    connection: Connection, stream: str | None, span_us: tuple[int, int], most: int, *, is_all: bool
) -> tuple[int, list[tuple[str, OutlierFinding]]]:
    """Count the outliers of a span, its end excluded, and return the newest ones.

    ``is_all`` includes notices.
    """
    chosen = _in_range(stream, *span_us)
    chosen = chosen if is_all else chosen.where(_outliers.is_outlier)
    count = connection.execute(select(func.count()).select_from(chosen.order_by(None).subquery())).scalar_one()
    key = _outliers.window_start_us.desc(), _outliers.stream, _outliers.node, _outliers.quantity
    some = connection.execute(chosen.order_by(None).order_by(*key).limit(most)).mappings()
    return int(count), [(row["stream"], _parse_finding(row)) for row in some]


def _in_range(stream: str | None, from_us: int | None, to_us: int | None) -> Select[Any]:
    wanted = select(tables.outliers).order_by(*tables.outliers.primary_key)
    wanted = wanted if stream is None else wanted.where(_outliers.stream == stream)
    wanted = wanted if from_us is None else wanted.where(_outliers.window_start_us >= from_us)
    return wanted if to_us is None else wanted.where(_outliers.window_start_us < to_us)


def _to_parameters(erased: Retraction) -> dict[str, Any]:
    return {"of_node": erased.node, "of_quantity": erased.quantity.value, "from_us": erased.from_us}


def _to_row(stream: str, finding: OutlierFinding) -> dict[str, Any]:
    why = finding.why
    return {
        "stream": stream,
        "window_start_us": finding.window_start_us,
        "node": finding.node,
        "quantity": why.quantity.value,
        "since_us": why.since_us,
        "is_outlier": finding.is_outlier,
        "observed": why.observed,
        "low": why.low,
        "high": why.high,
        "score": why.score,
        "reasons": json.dumps([[reason.view, reason.words, reason.once_in] for reason in why.reasons]),
    }


def _parse_finding(row: RowMapping | Mapping[str, Any]) -> OutlierFinding:
    why = Explanation(
        Quantity(row["quantity"]),
        row["observed"],
        row["low"],
        row["high"],
        tuple(SurpriseReason(*reason) for reason in json.loads(row["reasons"])),
        row["since_us"],
        row["score"],
    )
    return OutlierFinding(row["window_start_us"], row["node"], row["is_outlier"], why)
