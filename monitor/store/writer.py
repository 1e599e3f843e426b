"""Writes of the micro-batch transaction: windows, books, tallies, segments and the watermark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, func, select, update

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import naming
from hopwatch.monitor.kernel.books import Book
from hopwatch.monitor.kernel.slowest import Slowest
from hopwatch.monitor.payloads import SetAside, encode_histogram
from hopwatch.monitor.results import NodeResult, WindowResult
from hopwatch.monitor.store import dialect, label_counts, rollups, tables
from hopwatch.monitor.store.path_times import build_time_rows
from hopwatch.monitor.store.second_counts import build_second_rows
from hopwatch.monitor.store.tables import NODE_DIGESTS, quantile_columns

WindowKey = tuple[str, int]
"""Stream and start of the window, µs."""

_REGISTRY: Final = (tables.schemas, tables.subject_versions, tables.subject_levels)
_RESULTS: Final = tuple(one for one in tables.metadata.sorted_tables if one not in (tables.meta, *_REGISTRY))
"""Tables that a run fills: what was registered stays, as records that others keep name it by its number."""
SEQUENCE: Final = "sequence"
"""Name in ``meta`` of the number of the last write of windows."""
PUBLISHED: Final = "published"
"""Name in ``meta`` of how far results are published."""
EXPORTED: Final = "exported"
"""Name in ``meta`` of how far metrics are exported."""
STORE_ID: Final = "store_id"
_LASTING: Final = (SEQUENCE, PUBLISHED, EXPORTED, STORE_ID)
"""Names in ``meta`` that outlast the results: readers of a topic of results know windows by these numbers."""


@dataclass(slots=True)
class Changes:
    """Changes of one micro-batch, apart from the results of windows.

    ``segments`` gives the arrival time until which a window may point into each segment.
    """

    watermark_us: int
    batch_id: int = 0
    streams: dict[str, tuple[int, int]] = field(default_factory=dict)
    tallies: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    books: list[Book] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    segments: dict[str, int] = field(default_factory=dict)
    holes: list[Hole] = field(default_factory=list)
    last_arrivals_us: dict[str, int] = field(default_factory=dict)


def read_value(connection: Connection, name: str) -> str | None:
    """Read a value of the table ``meta`` by its name; None without it."""
    return connection.execute(select(tables.meta.c.value).where(tables.meta.c.name == name)).scalar()


def set_values(connection: Connection, values: Mapping[str, str]) -> None:
    """Write values into the table ``meta``."""
    _upsert(connection, tables.meta, [{"name": name, "value": value} for name, value in values.items()])


def delete_value(connection: Connection, name: str) -> None:
    """Delete a value of the table ``meta``."""
    connection.execute(delete(tables.meta).where(tables.meta.c.name == name))


def clear_results(connection: Connection) -> None:
    """Delete all results, for a run that reads all records again; the registry stays."""
    for table in reversed(_RESULTS):
        connection.execute(delete(table))


def clear_everything(connection: Connection) -> int:
    """Delete all results and all values of ``meta`` that do not outlast them; return the number of windows."""
    windows = connection.execute(select(func.count()).select_from(tables.windows)).scalar_one()
    clear_results(connection)
    connection.execute(delete(tables.meta).where(tables.meta.c.name.not_in(_LASTING)))
    return int(windows)


def write_changes(connection: Connection, changes: Changes) -> None:
    """Write the changes of a micro-batch; the caller holds the transaction."""
    rows = [{"stream": name, "first_start_us": a, "last_start_us": b} for name, (a, b) in changes.streams.items()]
    _upsert(connection, tables.streams, rows)
    if changes.books:
        dialect.upsert_rows(connection, tables.books, [_book_row(book) for book in changes.books])
    _upsert(connection, tables.set_aside, [_set_aside_row(place) for place in changes.set_aside])
    _upsert(
        connection,
        tables.tallies,
        [
            {"stream": stream, "window_start_us": start_us, "shard": shard, "parcel": parcel}
            for (stream, start_us, shard), parcel in changes.tallies.items()
        ],
    )
    save_segments(connection, changes.segments, changes.batch_id)
    _upsert(connection, tables.holes, [_hole_row(hole) for hole in changes.holes])
    arrivals = [{"place": place, "last_arrival_us": last_us} for place, last_us in changes.last_arrivals_us.items()]
    _upsert(connection, tables.arrivals, arrivals)
    set_values(connection, {"watermark_us": str(changes.watermark_us)})


def save_segments(connection: Connection, segments: Mapping[str, int], batch_id: int) -> None:
    """Save the arrival time until which a window may point into each segment."""
    rows = [{"path": path, "needed_until_us": until, "batch_id": batch_id} for path, until in segments.items()]
    _upsert(connection, tables.segments, rows)


def write_conclusions(connection: Connection, conclusions: Sequence[Conclusion], watermark_us: int) -> None:
    """Write windows with their nodes, lost ids, counts by label and second, times on the path, and revisions."""
    if not conclusions:
        return
    number = _next_sequence(connection)
    _upsert(connection, tables.windows, [_window_row(one) | {"sequence": number} for one in conclusions])
    _upsert(connection, tables.node_windows, [row for conclusion in conclusions for row in _node_rows(conclusion)])
    final = [conclusion for conclusion in conclusions if conclusion.result.status.is_final]
    _delete_windows(connection, tables.lost_ids, [_window_key(conclusion.result) for conclusion in final])
    _upsert(connection, tables.lost_ids, [row for conclusion in final for row in _lost_rows(conclusion)])
    label_counts.save_label_counts(connection, conclusions)
    rollups.mark_stale(connection, [_window_key(conclusion.result) for conclusion in final])
    amended = [conclusion for conclusion in conclusions if conclusion.changed is not None]
    # What an amended window missed may have come.
    for table in (tables.second_counts, tables.path_times):
        _delete_windows(connection, table, [_window_key(conclusion.result) for conclusion in amended])
    _upsert(connection, tables.second_counts, [row for conclusion in final for row in build_second_rows(conclusion)])
    _upsert(connection, tables.path_times, [row for conclusion in final for row in build_time_rows(conclusion)])
    _upsert(connection, tables.revisions, [_revision_row(conclusion, watermark_us) for conclusion in amended])


def _next_sequence(connection: Connection) -> int:
    """Return the number of this write of windows; as one transaction writes at a time, it is committed in order."""
    number = int(read_value(connection, SEQUENCE) or 0) + 1
    set_values(connection, {SEQUENCE: str(number)})
    return number


def _set_aside_row(place: SetAside) -> dict[str, Any]:
    return {column.name: getattr(place, column.name) for column in tables.set_aside.c}


def _upsert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    batch = list(rows)
    if batch:
        connection.execute(dialect.upsert(connection, table), batch)


def drop_tallies(connection: Connection, keys: Sequence[WindowKey]) -> None:
    """Delete the tallies of windows that cannot change any more; their results stay."""
    _delete_windows(connection, tables.tallies, keys)
    column = tables.windows.c
    chosen = (column.stream == bindparam("of_stream")) & (column.window_start_us == bindparam("of_start_us"))
    if keys:
        connection.execute(update(tables.windows).where(chosen).values(is_live=False), _to_parameters(keys))


def release_segments(connection: Connection, watermark_us: int, before_batch: int) -> list[str]:
    """Delete the segments that no window points into any more, and return their paths."""
    column = tables.segments.c
    spent = (column.needed_until_us < watermark_us) & (column.batch_id < before_batch)
    paths = list(connection.execute(select(column.path).where(spent)).scalars())
    connection.execute(delete(tables.segments).where(spent))
    return paths


def drop_all_tallies(connection: Connection) -> None:
    """Delete the tallies of all windows: none will change."""
    connection.execute(delete(tables.tallies))
    connection.execute(update(tables.windows).values(is_live=False))


def _delete_windows(connection: Connection, table: Table, keys: Sequence[WindowKey]) -> None:
    chosen = (table.c.stream == bindparam("of_stream")) & (table.c.window_start_us == bindparam("of_start_us"))
    if keys:
        connection.execute(delete(table).where(chosen), _to_parameters(keys))


def _to_parameters(keys: Sequence[WindowKey]) -> list[dict[str, Any]]:
    return [{"of_stream": stream, "of_start_us": start_us} for stream, start_us in keys]


def _window_key(result: WindowResult) -> WindowKey:
    return result.stream, result.window_start_us


def _window_row(conclusion: Conclusion) -> dict[str, Any]:
    result = conclusion.result
    row = {
        name: getattr(result, name)
        for name in WindowResult.__dataclass_fields__
        if name not in ("nodes", "lag_us", "counts")
    }
    row |= {"status": result.status.value, "verdict": result.verdict.value if result.verdict else None}
    row |= {"reasons": json.dumps(result.reasons), "books": conclusion.books}
    row |= {"counts": json.dumps([asdict(of_node) for of_node in result.counts])}
    row |= {"count_digests": tables.count_digests(conclusion.count_lags)}
    row |= {"is_settled": conclusion.is_settled, "is_live": True}
    row |= {f"waits_{name}": moment_us for name, moment_us in conclusion.waits._asdict().items()}
    row |= {"last_first_sighting_us": conclusion.tally.last_first_sighting_us}
    return row | quantile_columns("lag_us", result.lag_us)


def _node_rows(conclusion: Conclusion) -> Iterable[dict[str, Any]]:
    result = conclusion.result
    for place, (node, lags) in enumerate(zip(result.nodes, conclusion.tally.lags, strict=True)):
        row = {name: getattr(node, name) for name in NodeResult.__dataclass_fields__ if name not in NODE_DIGESTS}
        row |= {"stream": result.stream, "window_start_us": result.window_start_us, "place": place}
        row |= {"overdue_ids": json.dumps(node.overdue_ids) if node.overdue_ids else None}
        row |= tables.digest_columns(node, lags)
        slowest = conclusion.tally.slowest
        yield row | {"slowest": None if slowest is None else json.dumps(_slowest_to_json(slowest[place]))}


def _slowest_to_json(slowest: Slowest) -> list[dict[str, Any]]:
    """Return the slowest messages in the form of the report; ids may hold any text, so JSON is ASCII."""
    ids = naming.format_ids(slowest.message_ids, slowest.names)
    return [{"id": one, "lag_out_us": lag_us} for one, lag_us in zip(ids, slowest.lag_us.tolist(), strict=True)]


def _lost_rows(conclusion: Conclusion) -> Iterable[dict[str, Any]]:
    key = {"stream": conclusion.result.stream, "window_start_us": conclusion.result.window_start_us}
    for node, of_node in zip(conclusion.result.nodes, conclusion.lost, strict=True):
        if len(of_node.message_ids):
            names = dict(zip(("id_kinds", "id_text_ends", "id_texts"), naming.pack_names(of_node.names), strict=True))
            ids = {"message_ids": of_node.message_ids.tobytes(), "journeys": of_node.journeys.pack() or None}
            yield key | {"node": node.node} | ids | names


def _revision_row(conclusion: Conclusion, watermark_us: int) -> dict[str, Any]:
    result = conclusion.result
    return {
        "stream": result.stream,
        "window_start_us": result.window_start_us,
        "revision": result.revision,
        "watermark_us": watermark_us,
        "changed": json.dumps(conclusion.changed),
    }


def _hole_row(hole: Hole) -> dict[str, Any]:
    place, first, last, after_us, before_us = hole
    return {"place": place, "first_offset": first, "last_offset": last, "after_us": after_us, "before_us": before_us}


def _book_row(book: Book) -> tuple[Any, ...]:
    """Return a book's values in the order of the table's columns."""
    moments_us = book.first_arrival_us, book.last_arrival_us, book.complete_through_us
    lists: tuple[list[Any], ...] = (
        list(book.runs),
        [[start_ms, cause, count] for (start_ms, cause), count in book.drops.items()],
        list(book.sent.items()),
        [[minute_us, *aside] for minute_us, aside in book.aside.items()],
        list(book.unplaced.items()),
        [[*key, *packet] for key, packet in book.counted.items()],
        [[*key, encode_histogram(lags)] for key, lags in book.lags.items()],
    )
    # Most are empty, and there may be thousands of books in a micro-batch.
    told = (json.dumps(entries) if entries else "[]" for entries in lists)
    offset_us = book.clock_offset or (None, None)
    return *book.key, *moments_us, book.missing_batches, book.skew_us, book.said_bye, *book.tallies, *told, *offset_us
