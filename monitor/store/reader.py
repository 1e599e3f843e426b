"""Queries for windows, books, lost ids and accounts of the store."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    FromClause,
    Row,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.undeclared_names import UndeclaredName, describe_name
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US, BatchRun, Book, ClockOffset, ImplausibleSpan, InstanceCounts
from hopwatch.monitor.kernel.bursts import find_bursts
from hopwatch.monitor.kernel.causes import rank_causes, rank_lag_causes
from hopwatch.monitor.kernel.packets import Packet
from hopwatch.monitor.kernel.rollup import SpanPart
from hopwatch.monitor.kernel.tally import NodeLags, Tally
from hopwatch.monitor.payloads import SetAside, decode_histogram, unpack_tally
from hopwatch.monitor.results import (
    InFlight,
    NodeResult,
    Quantiles,
    Revision,
    Status,
    Verdict,
    WindowResult,
    counts_from_json,
    format_iso,
    label_counts_to_json,
    window_to_json,
)
from hopwatch.monitor.selftest.stream import OWN_STREAMS
from hopwatch.monitor.store import (
    dialect,
    lost_messages,
    pathway_versions,
    reported_nodes,
    schema,
    tables,
    undeclared_names,
)
from hopwatch.monitor.store.label_counts import read_label_counts
from hopwatch.monitor.store.path_times import read_path_times
from hopwatch.monitor.store.reported_nodes import bind_range
from hopwatch.monitor.store.second_counts import read_second_counts
from hopwatch.monitor.store.tables import NODE_DIGESTS, QUANTILE_FIELDS, TALLY_FIELDS
from hopwatch.probes.contract.limits import MONITOR_STREAM

MAX_REPORTED_IDS: Final = 100
"""Lost ids that a report lists for a node."""

Json = dict[str, Any]

_WINDOW_FIELDS: Final = tuple(f.name for f in fields(WindowResult))
_NODE_FIELDS: Final = tuple(f.name for f in fields(NodeResult))
_COLUMNS_WITHOUT_DIGESTS: Final = tuple(
    one for one in tables.node_windows.c if not one.name.endswith(("_digest", "slowest"))
)
_WINDOW_COLUMNS: Final = tuple(one for one in tables.windows.c if one.name != "count_digests")
_WINDOWS_PER_READ: Final = 10
"""Windows whose nodes are in memory at once: there may be thousands of nodes."""


def read_report(
    engine: Engine,
    stream: str | None = None,
    from_us: int | None = None,
    to_us: int | None = None,
    *,
    with_revisions: bool = False,
) -> Json:
    """Query the object of ``hopwatch report --json``: windows that start in ``[from_us, to_us)``, and the accounts.

    Its ``read_through`` comes from :func:`monitor.store.instances.read_progress`.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        return {
            "streams": [
                {
                    "stream": name,
                    "windows": read_windows_json(connection, name, from_us, to_us, with_revisions=with_revisions),
                }
                for name in read_stream_names(connection, stream)
            ],
            "accounts": read_accounts(connection),
        }


def read_windows_json(
    connection: Connection, stream: str, from_us: int | None, to_us: int | None, *, with_revisions: bool = False
) -> list[Json]:
    """Query the windows of a stream that start in ``[from_us, to_us)`` as the report and the API show them."""
    where = connection, stream, from_us, to_us
    nodes, ids = reported_nodes.read_nodes_json(*where), read_first_lost_ids(*where)
    labels, seconds, times = read_label_counts(*where), read_second_counts(*where), read_path_times(*where)
    revisions: dict[int, list[Revision]] = defaultdict(list)
    for one in read_revisions(*where) if with_revisions else ():
        revisions[one.window_start_us].append(one)
    windows = []
    for row in connection.execute(_window_rows(stream, from_us, to_us)).mappings():
        start_us = row["window_start_us"]
        of_window = nodes[start_us]
        for node in of_window:
            key = stream, start_us, node["node"]
            rows, by_second = labels.get(key, ()), seconds.get((start_us, node["node"]))
            node |= {"lost_ids": ids.get(key, []), "labels": label_counts_to_json(rows)}
            node["causes"] = [asdict(one) for one in rank_causes([rows])]
            node["lag_causes"] = [asdict(one) for one in rank_lag_causes(rows)]
            node["seconds"] = None if by_second is None else asdict(by_second)
            node["bursts"] = [asdict(one) for one in find_bursts(by_second)]
            node["times"] = [asdict(one) for one in times.get((start_us, node["node"]), ())]
        told = window_to_json(_parse_window(row, []), of_window)
        if with_revisions:
            told["revisions"] = [_revision_to_json(one) for one in revisions[start_us]]
        windows.append(told)
    return windows


def _revision_to_json(one: Revision) -> Json:
    changed = {name: list(values) for name, values in one.changed.items()}
    return {"revision": one.revision, "read_through": format_iso(one.watermark_us), "changed": changed}


def read_accounts(connection: Connection) -> Json:
    """Query the monitor's own accounting: counts of received, duplicate and set-aside records."""
    summed = select(*(func.coalesce(func.sum(tables.books.c[name]), 0).label(name) for name in TALLY_FIELDS))
    row = connection.execute(summed).mappings().one()
    set_aside = count_set_aside(connection)
    told: Json = {
        "records": int(row["batches"]) + sum(set_aside.values()),
        "batches": int(row["batches"]),
        "duplicate_batches": int(row["duplicate_batches"]),
        "observations": int(row["observations"]),
        "too_late": int(row["too_late"]),
        "implausible": int(row["implausible"]),
        "set_aside": set_aside,
    }
    aged_out = [
        {"partition": hole.place, "from_offset": hole.first, "to_offset": hole.last} for hole in read_holes(connection)
    ]
    names = [_undeclared_to_json(one) for one in undeclared_names.read_undeclared(connection)]
    return told | ({"undeclared": names} if names else {}) | ({"aged_out": aged_out} if aged_out else {})


def _undeclared_to_json(one: UndeclaredName) -> Json:
    told = {name: getattr(one, name) for name in ("reason", "stream", "node", "probe", "nearest", "records")}
    return told | {"last_arrival": format_iso(one.last_arrival_us), "text": describe_name(one)}


def count_set_aside(connection: Connection) -> dict[str, int]:
    """Count all records that were ever set aside by reason, pruned ones included."""
    reason = tables.set_aside.c.reason
    by_reason = connection.execute(select(reason, func.count()).group_by(reason)).all()
    pruned = tables.pruned_set_aside.c
    totals = Counter({name: int(count) for name, count in by_reason})
    totals.update({row.reason: row.records for row in connection.execute(select(pruned.reason, pruned.records))})
    return dict(sorted(totals.items()))


def read_lost_ids(engine: Engine, stream: str, node: str) -> set[bytes]:
    """Query the ids that are stored as lost at a node, over all windows."""
    column = tables.lost_ids.c
    wanted = select(column.message_ids).where(column.stream == stream, column.node == node)
    with schema.open_snapshot(engine) as connection:
        return {
            message_id
            for packed in connection.execute(wanted).scalars()
            for message_id in lost_messages.split_ids(packed)
        }


class LossLocation(NamedTuple):
    """A node and a window, by stream and start in µs, where a message is missing.

    ``loss`` is how many are missing there, and how many of them are surely lost.
    """

    stream: str
    window_start_us: int
    node: str
    loss: tuple[int, int]
    message: lost_messages.LostMessage


def read_first_lost_ids(
    connection: Connection, stream: str | None, from_us: int | None, to_us: int | None
) -> dict[tuple[str, int, str], list[str]]:
    """Query the first ``MAX_REPORTED_IDS`` lost ids, by stream, start of the window in µs, and node."""
    of_stream = {} if stream is None else {"of_stream": stream}
    wanted = _select_first_ids(is_of_stream=stream is not None)
    found: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for row in connection.execute(wanted, bind_range(from_us, to_us) | of_stream):
        found[row.stream, row.window_start_us, row.node] = [shown for _, shown in lost_messages.read_named_ids(row)]
    return found


@cache
def _select_first_ids(*, is_of_stream: bool) -> Select[Any]:
    """Return the query for these; to build it takes longer than to run it for a window."""
    column = tables.lost_ids.c
    wanted = _in_range(tables.lost_ids, None, None, None).with_only_columns(
        column.stream, column.window_start_us, column.node, *lost_messages.first_id_columns(MAX_REPORTED_IDS)
    )
    wanted = wanted.where(column.stream == bindparam("of_stream")) if is_of_stream else wanted
    return wanted.where(column.window_start_us >= bindparam("from_us"), column.window_start_us < bindparam("to_us"))


def find_losses(engine: Engine, message_id: bytes, stream: str | None = None) -> list[LossLocation]:
    """Query the nodes and windows where a message is missing."""
    with schema.open_snapshot(engine) as connection:
        holds = dialect.contains_bytes(connection, tables.lost_ids.c.message_ids, message_id)
        return [
            LossLocation(row.stream, row.window_start_us, row.node, _read_loss(connection, row), found)
            for row in connection.execute(_in_range(tables.lost_ids, stream, None, None).where(holds))
            if (found := lost_messages.find_message(row, message_id)) is not None
        ]


def _read_loss(connection: Connection, where: Row[Any]) -> tuple[int, int]:
    """Query the loss and its lower bound for the node and window of a row."""
    column = tables.node_windows.c
    here = column.stream == where.stream, column.window_start_us == where.window_start_us, column.node == where.node
    found = connection.execute(select(column.loss, column.loss_lower).where(*here)).first()
    return (found.loss, found.loss_lower) if found else (0, 0)


def read_books(connection: Connection) -> Iterator[Book]:
    """Yield the book of every probe instance."""
    for row in connection.execute(select(tables.books)).mappings():
        yield parse_book(row)


def parse_book(row: RowMapping) -> Book:
    """Return the book of a row."""
    return Book(
        **{name: row[name] for name in ("stream", "node", "probe", "epoch_us", "first_arrival_us")},
        last_arrival_us=row["last_arrival_us"],
        runs=tuple(BatchRun(*run) for run in json.loads(row["runs"])),
        said_bye=row["said_bye"],
        skew_us=row["skew_us"],
        clock_offset=None if row["clock_low_us"] is None else ClockOffset(row["clock_low_us"], row["clock_high_us"]),
        drops={(start_ms, cause): count for start_ms, cause, count in json.loads(row["drops"])},
        sent=dict(json.loads(row["sent"])),
        aside={minute_us: ImplausibleSpan(*aside) for minute_us, *aside in json.loads(row["aside"])},
        unplaced=dict(json.loads(row["unplaced"])),
        counted={(start_ms, stamp): Packet(*packet) for start_ms, stamp, *packet in json.loads(row["counted"])},
        lags={(start_ms, stamp): decode_histogram(lags) for start_ms, stamp, lags in json.loads(row["lags"])},
        tallies=InstanceCounts(*(row[name] for name in TALLY_FIELDS)),
    )


def read_window_books(connection: Connection, stream: str, start_us: int, horizon_us: int) -> Iterator[Book]:
    """Yield all books of a stream that may affect a window, given by its start and its horizon."""
    column = tables.books.c
    moments = (column.epoch_us, column.first_arrival_us, column.complete_through_us)
    lived = or_(*(moment <= horizon_us for moment in moments))
    spoke = (column.complete_through_us, column.last_arrival_us)
    may_hold = or_(*(moment >= start_us - RETIRED_AFTER_US for moment in spoke))
    start_ms = str(start_us // 1_000)
    names_it = column.sent.contains(start_ms) | column.drops.contains(start_ms) | column.unplaced.contains(start_ms)
    wanted = select(tables.books).where(column.stream == stream, (lived & may_hold) | names_it)
    for row in connection.execute(wanted).mappings():
        yield parse_book(row)


def read_holes(connection: Connection) -> Iterator[Hole]:
    """Yield the holes of the transport, by partition and offset."""
    column = tables.holes.c
    wanted = select(column.place, column.first_offset, column.last_offset, column.after_us, column.before_us)
    for row in connection.execute(wanted.order_by(column.place, column.first_offset)):
        yield Hole(*row)


def read_set_aside_since(connection: Connection, arrival_us: int) -> Iterator[SetAside]:
    """Yield the records set aside that arrived at a time or later."""
    column = tables.set_aside.c
    for row in connection.execute(select(tables.set_aside).where(column.arrival_us >= arrival_us)).mappings():
        yield SetAside(**row)


def read_segments(connection: Connection) -> set[str]:
    """Query the paths of the segments that windows may point into."""
    return set(connection.execute(select(tables.segments.c.path)).scalars())


def read_last_arrivals_us(connection: Connection) -> dict[str, int]:
    """Query the arrival time of the last record that was read from each partition."""
    return {row.place: row.last_arrival_us for row in connection.execute(select(tables.arrivals))}


def read_stream_ranges(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return the first and the last window of each stream, µs."""
    return {row.stream: (row.first_start_us, row.last_start_us) for row in connection.execute(select(tables.streams))}


def read_live_windows(connection: Connection) -> Iterator[RowMapping]:
    """Yield the rows of the windows that can still change."""
    yield from connection.execute(select(tables.windows).where(tables.windows.c.is_live)).mappings()


def read_in_flight(connection: Connection) -> dict[tuple[str, int], InFlight]:
    """Query the messages in flight at the nodes of windows that can still change, by stream and start in µs."""
    node, window = tables.node_windows.c, tables.windows.c
    here = (node.stream == window.stream) & (node.window_start_us == window.window_start_us)
    wanted = select(node.stream, node.window_start_us, node.node, node.in_flight).join_from(
        tables.node_windows, tables.windows, here
    )
    found: dict[tuple[str, int], InFlight] = {}
    for row in connection.execute(wanted.where(window.is_live, node.in_flight > 0).order_by(node.place)):
        key = row.stream, row.window_start_us
        found[key] = (*found.get(key, ()), (row.node, row.in_flight))
    return found


def read_revisions(
    connection: Connection, stream: str | None, from_us: int | None, to_us: int | None
) -> Iterator[Revision]:
    """Yield the revisions of windows that start in ``[from_us, to_us)``, by window and number."""
    for row in connection.execute(_in_range(tables.revisions, stream, from_us, to_us)):
        changed = {name: (before, after) for name, (before, after) in json.loads(row.changed).items()}
        yield Revision(row.stream, row.window_start_us, row.revision, row.watermark_us, changed)


def read_window_starts(connection: Connection, stream: str, from_us: int, to_us: int) -> set[int]:
    """Query the starts of a stream's windows in ``[from_us, to_us)``, µs."""
    wanted = _in_range(tables.windows, stream, from_us, to_us).with_only_columns(tables.windows.c.window_start_us)
    return set(connection.execute(wanted).scalars())


def read_unobserved_starts_us(
    connection: Connection, streams: Iterable[str], since_us: int, share: float
) -> dict[str, int]:
    """Query the last window of each stream in which a node missed this share of what it should have seen, µs.

    Of windows that start at ``since_us`` or later, and of those streams alone that have one.
    """
    node = tables.node_windows.c
    missed = select(node.stream, func.max(node.window_start_us)).where(
        node.stream.in_(list(streams)),
        node.window_start_us >= since_us,
        node.unobserved > 0,
        node.unobserved >= share * node.expected,
    )
    return {name: int(start_us) for name, start_us in connection.execute(missed.group_by(node.stream)).all()}


def read_window(connection: Connection, stream: str, start_us: int) -> WindowResult | None:
    """Query the last result of a window."""
    row = connection.execute(_in_range(tables.windows, stream, start_us, start_us + 1)).mappings().first()
    return (
        _parse_window(row, _read_nodes_by_window(connection, stream, start_us, start_us + 1)[stream, start_us])
        if row
        else None
    )


def read_parts(connection: Connection, stream: str, from_us: int, to_us: int) -> list[SpanPart[WindowResult]]:
    """Return the final windows of a stream in a range, with the digests of their nodes."""
    config = pathway_versions.read_stream(connection, stream)
    nodes = _read_nodes_by_window(connection, stream, from_us, to_us)
    wanted = _in_range(tables.windows, stream, from_us, to_us).where(tables.windows.c.status.in_(tables.FINAL_STATUSES))
    found = [(row, nodes[stream, row["window_start_us"]]) for row in connection.execute(wanted).mappings()]
    parts = []
    for row, of_window in found:
        start_us = row["window_start_us"]
        terminals = config.at(start_us).pathway.terminal_names if config else frozenset()
        lags = tuple(parse_digests(node) for node in of_window)
        ends = tuple(
            own.lag_out_us if node["node"] in terminals else None for node, own in zip(of_window, lags, strict=True)
        )
        counts = tables.parse_count_digests(row["count_digests"])
        parts.append(SpanPart(_parse_window(row, of_window), lags, ends, counts))
    return parts


def read_final_windows(connection: Connection, stream: str, from_us: int) -> Iterator[WindowResult]:
    """Yield the final windows of a stream from a time on, by time, a few at a time."""
    column = tables.windows.c
    is_final = column.status.in_(tables.FINAL_STATUSES)
    chosen = _in_range(tables.windows, stream, from_us, None).with_only_columns(column.window_start_us).where(is_final)
    starts_us = list(connection.execute(chosen).scalars())
    for first in range(0, len(starts_us), _WINDOWS_PER_READ):
        span = starts_us[first], starts_us[first : first + _WINDOWS_PER_READ][-1] + 1
        nodes = _read_nodes_by_window(connection, stream, *span, columns=_COLUMNS_WITHOUT_DIGESTS)
        for row in connection.execute(_window_rows(stream, *span).where(is_final)).mappings():
            yield _parse_window(row, nodes[stream, row["window_start_us"]])


def read_windows(
    connection: Connection, stream: str, from_us: int, to_us: int, names: Collection[str] | None = None
) -> list[WindowResult]:
    """Return the windows of a stream that start in ``[from_us, to_us)``, in order of time; no digest is read.

    Each has all of its nodes, or those of some names.
    """
    nodes: dict[int, list[RowMapping]] = defaultdict(list)
    of_nodes = _in_range(tables.node_windows, stream, from_us, to_us).with_only_columns(*_COLUMNS_WITHOUT_DIGESTS)
    of_nodes = of_nodes if names is None else of_nodes.where(tables.node_windows.c.node.in_(sorted(names)))
    for row in connection.execute(of_nodes).mappings():
        nodes[row["window_start_us"]].append(row)
    rows = connection.execute(_window_rows(stream, from_us, to_us)).mappings()
    return [_parse_window(row, nodes[row["window_start_us"]]) for row in rows]


def read_named_windows(connection: Connection, wanted: FromClause) -> list[WindowResult]:
    """Query the windows that a table of ``stream`` and ``at_us`` lists, without digests."""
    window, of_node = tables.windows, tables.node_windows
    nodes: dict[tuple[str, int], list[RowMapping]] = defaultdict(list)
    for row in connection.execute(
        _select_named(of_node, wanted).with_only_columns(*_COLUMNS_WITHOUT_DIGESTS)
    ).mappings():
        nodes[row["stream"], row["window_start_us"]].append(row)
    rows = connection.execute(_select_named(window, wanted).with_only_columns(*window.c)).mappings()
    return [_parse_window(row, nodes[row["stream"], row["window_start_us"]]) for row in rows]


def _select_named(table: Table, wanted: FromClause) -> Select[Any]:
    is_it = and_(table.c.stream == wanted.c.stream, table.c.window_start_us == wanted.c.at_us)
    return select(table).join_from(wanted, table, is_it).order_by(*table.primary_key)


def read_newest_final_us(connection: Connection, stream: str) -> int | None:
    """Query the start of the newest final window of a stream; None without one."""
    column = tables.windows.c
    wanted = select(column.window_start_us).where(column.stream == stream, column.status.in_(tables.FINAL_STATUSES))
    newest_us = connection.execute(wanted.order_by(column.window_start_us.desc()).limit(1)).scalar()
    return None if newest_us is None else int(newest_us)


def parse_digests(row: RowMapping) -> NodeLags:
    """Return the digests of a node's row; those that were dropped are empty."""
    stored = (row[f"{name}_digest"] for name in NODE_DIGESTS)
    return NodeLags(*(tdigest.from_bytes(one) if one else tdigest.EMPTY for one in stored))


def find_newest_reason(
    connection: Connection, streams: Iterable[str], words: str, span_us: int
) -> tuple[str, int, str] | None:
    """Find the newest reason that contains some words: its stream, start of the window in µs and text; or None.

    Only windows that start less than ``span_us`` before the newest window of their stream are searched.
    """
    column = tables.windows.c
    newest = (
        select(column.stream, func.max(column.window_start_us).label("newest_us")).group_by(column.stream).subquery()
    )
    wanted = (
        select(column.stream, column.window_start_us, column.reasons)
        .join(newest, column.stream == newest.c.stream)
        .where(column.stream.in_(streams), column.window_start_us > newest.c.newest_us - span_us)
        .where(column.reasons.contains(words))
        .order_by(column.window_start_us.desc(), column.stream)
    )
    row = connection.execute(wanted.limit(1)).first()
    if row is None:
        return None
    return row.stream, row.window_start_us, next(reason for reason in json.loads(row.reasons) if words in reason)


def read_window_lost_ids(connection: Connection, stream: str, start_us: int) -> dict[str, frozenset[bytes]]:
    """Query the ids that are stored as lost in one window, by their node."""
    column = tables.lost_ids.c
    wanted = _in_range(tables.lost_ids, stream, start_us, start_us + 1).with_only_columns(
        column.node, column.message_ids
    )
    return {row.node: frozenset(lost_messages.split_ids(row.message_ids)) for row in connection.execute(wanted)}


def read_tallies(connection: Connection, stream: str, start_us: int) -> list[Tally]:
    """Return the tallies of a window's shards."""
    column = tables.tallies.c
    wanted = select(column.shard, column.parcel).where(column.stream == stream, column.window_start_us == start_us)
    return [unpack_tally(row.parcel) for row in connection.execute(wanted.order_by(column.shard))]


def read_stream_names(connection: Connection, stream: str | None) -> list[str]:
    """Query the streams that this store was ever configured with, those without data included; or one of them.

    That of the self-test has to be named: what it loses was lost on purpose.
    """
    names = {
        *pathway_versions.read_names(connection),
        *connection.execute(select(tables.streams.c.stream)).scalars(),
    }
    names.difference_update(OWN_STREAMS if stream is None else (MONITOR_STREAM,))
    return sorted(name for name in names if stream in (None, name))


def _in_range(table: Table, stream: str | None, from_us: int | None, to_us: int | None) -> Select[Any]:
    wanted = select(table).where(table.c.stream != MONITOR_STREAM).order_by(*table.primary_key)
    wanted = wanted if stream is None else wanted.where(table.c.stream == stream)
    wanted = wanted if from_us is None else wanted.where(table.c.window_start_us >= from_us)
    return wanted if to_us is None else wanted.where(table.c.window_start_us < to_us)


def _window_rows(stream: str, from_us: int | None, to_us: int | None) -> Select[Any]:
    """Select windows without their digests."""
    return _in_range(tables.windows, stream, from_us, to_us).with_only_columns(*_WINDOW_COLUMNS)


def _read_nodes_by_window(
    connection: Connection,
    stream: str | None,
    from_us: int | None,
    to_us: int | None,
    columns: Sequence[Column[Any]] = tuple(tables.node_windows.c),
) -> dict[tuple[str, int], list[RowMapping]]:
    found: dict[tuple[str, int], list[RowMapping]] = defaultdict(list)
    wanted = _in_range(tables.node_windows, stream, from_us, to_us).with_only_columns(*columns)
    for row in connection.execute(wanted).mappings():
        found[row["stream"], row["window_start_us"]].append(row)
    return found


def _parse_window(row: RowMapping, nodes: list[RowMapping]) -> WindowResult:
    values = {name: row[name] for name in _WINDOW_FIELDS if name not in ("lag_us", "nodes", "counts")}
    values |= {"status": Status(row["status"]), "reasons": tuple(json.loads(row["reasons"]))}
    values |= {"verdict": Verdict(row["verdict"]) if row["verdict"] else None, "lag_us": parse_lag(row, "lag_us")}
    counts = counts_from_json(json.loads(row["counts"]))
    return WindowResult(**values, nodes=tuple(_parse_node(node) for node in nodes), counts=counts)


def _parse_node(row: RowMapping) -> NodeResult:
    values: Json = {name: parse_lag(row, name) if name in NODE_DIGESTS else row[name] for name in _NODE_FIELDS}
    values["overdue_ids"] = tuple(json.loads(row["overdue_ids"] or "[]"))
    return NodeResult(**values)


def parse_lag(row: RowMapping, name: str) -> Quantiles | None:
    """Return the figures of a lag from the columns under its name."""
    found = {part: row[f"{name}_{part}"] for part in QUANTILE_FIELDS}
    return None if found["count"] is None else Quantiles(**found)
