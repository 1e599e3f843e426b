"""Pages of results, as values: what ``report --json`` shows, some windows, hours or ids at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from sqlalchemy import Connection, select

from hopwatch.monitor.accounting.instances import Instance
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.lookup import comparison
from hopwatch.monitor.lookup.comparison import ComparisonQuery
from hopwatch.monitor.results import RollUp, format_iso, recent_to_json, roll_up_to_json
from hopwatch.monitor.store import instances, lost_messages, pathway_versions, reader, recent_figures, rollups, tables
from hopwatch.monitor.store.instances import InstanceFilter
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.http.problems import HttpProblem

Json = dict[str, Any]
Range = tuple[int | None, int | None]
"""Both ends of a range, µs; the end is excluded."""


def read_through(connection: Connection) -> str | None:
    """Return up to when the store was read, as ``report --json`` has it."""
    through_us = instances.read_progress(connection).through_us
    return format_iso(through_us) if through_us else None


def read_streams(connection: Connection, visible: frozenset[str], labels: Mapping[str, Mapping[str, str]]) -> Json:
    """Query the streams with nodes, the range of their windows, and labels; all, or those that are visible."""
    ranges, pathways = reader.read_stream_ranges(connection), pathway_versions.read_versions(connection)
    told = []
    for name in reader.read_stream_names(connection, None):
        if not visible or name in visible:
            first, last = map(format_iso, ranges[name]) if name in ranges else (None, None)
            nodes = list(pathways[name].pathway.declared) if name in pathways else []
            told.append(
                {
                    "stream": name,
                    "nodes": nodes,
                    "first_window": first,
                    "last_window": last,
                    "labels": dict(labels.get(name, {})),
                }
            )
    return {"streams": told, "read_through": read_through(connection)}


def read_windows(connection: Connection, stream: str, span: Range, limit: int, *, with_revisions: bool) -> Json:
    """Query the first windows of a range, each as the report shows it; ``next`` is where the next page begins."""
    from_us, to_us, following = _find_page(connection, stream, span, limit)
    windows = reader.read_windows_json(connection, stream, from_us, to_us, with_revisions=with_revisions)
    _require_stream(connection, stream, windows)
    return {"stream": stream, "windows": windows, "next": following, "read_through": read_through(connection)}


def read_window(connection: Connection, stream: str, start_us: int, *, with_revisions: bool) -> Json:
    """Query one window.

    Raises:
        HttpProblem: the store has no such window.
    """
    found = reader.read_windows_json(connection, stream, start_us, start_us + 1, with_revisions=with_revisions)
    if not found:
        _require_stream(connection, stream, found)
        raise _not_found("window", f"the store has no window of {stream} that starts at {format_iso(start_us)}")
    return found[0]


def read_node(connection: Connection, stream: str, node: str, span: Range, limit: int) -> Json:
    """Query one node in the first windows of a range, with the status and the verdict of each."""
    found = read_windows(connection, stream, span, limit, with_revisions=False)
    _require_node(connection, stream, node)
    named = ("window_start", "status", "verdict")
    windows = [
        {name: window[name] for name in named} | of_node
        for window in found["windows"]
        for of_node in window["nodes"]
        if of_node["node"] == node
    ]
    return found | {"node": node, "windows": windows}


def read_comparison(connection: Connection, query: ComparisonQuery) -> Json:
    """Compare a new version at a node with the others.

    Raises:
        HttpProblem: the stream has no such node, or the node has no two versions.
    """
    _require_stream(connection, query.stream, ())
    _require_node(connection, query.stream, query.node)
    try:
        return comparison.comparison_to_json(comparison.read_comparison(connection, query))
    except ConfigurationError as error:
        raise _not_found("version", str(error)) from None


def read_recent(connection: Connection, stream: str) -> Json:
    """Query the recent figures of a stream.

    Raises:
        HttpProblem: the store has no such stream, or no recent figures of it.
    """
    _require_stream(connection, stream, ())
    recent = recent_figures.read_recent(connection, stream)
    if recent is None:
        raise _not_found("figures", f"the store has no recent figures of {stream}: run --once makes none")
    return recent_to_json(recent)


ReadSpans = Callable[[Connection, str, int | None, int | None], list[RollUp]]


def read_rollups(connection: Connection, stream: str, span: Range, limit: int, by: str) -> Json:
    """Query the first hours or days of a range, each as ``report --by`` shows it."""
    read: ReadSpans = {rollups.HOUR: rollups.read_hours, rollups.DAY: rollups.read_days}[by]
    found = read(connection, stream, *span)
    _require_stream(connection, stream, found)
    following = str(found[limit].start_us) if len(found) > limit else None
    told = [roll_up_to_json(one) for one in found[:limit]]
    return {"stream": stream, f"{by}s": told, "next": following, "read_through": read_through(connection)}


def read_lost_ids(connection: Connection, stream: str, start_us: int, node: str, first: int, limit: int) -> Json:  # noqa: PLR0913, PLR0917 - a page of a place
    """Query some of the ids that the store has as missing at a node in a window, in byte order, as they were given."""
    read_window(connection, stream, start_us, with_revisions=False)
    _require_node(connection, stream, node)
    column = tables.lost_ids.c
    here = column.stream == stream, column.window_start_us == start_us, column.node == node
    row = connection.execute(select(tables.lost_ids).where(*here)).first()
    ids = [] if row is None else [shown for _, shown in lost_messages.read_named_ids(row)]
    page, end = ids[first : first + limit], first + limit
    place = {"stream": stream, "window_start": format_iso(start_us), "node": node}
    return place | {"total": len(ids), "ids": page, "next": str(end) if end < len(ids) else None}


def read_probes(connection: Connection, asked: InstanceFilter, first: int, limit: int) -> Json:
    """Query some of the probe instances, those with problems first."""
    found = instances.query_instances(connection, asked, first, limit)
    end = first + limit
    return {
        "probes": [_instance_to_json(one) for one in found.instances],
        "counts": {state.value: count for state, count in found.counts.items()},
        "total": found.found,
        "next": str(end) if end < found.found else None,
    }


def _instance_to_json(one: Instance) -> Json:
    book = one.book
    moments = {
        "epoch": book.epoch_us,
        "first_arrival": book.first_arrival_us,
        "last_arrival": book.last_arrival_us,
        "reported_through": book.complete_through_us,
    }
    told: Json = {"stream": book.stream, "node": book.node, "probe": book.probe, "state": one.state.value}
    told |= {name: format_iso(moment_us) for name, moment_us in moments.items()}
    offset = book.clock_offset
    told |= {"said_bye": book.said_bye, "skew_us": book.skew_us, "clock_offset": offset and offset._asdict()}
    told |= {"dropped": sum(book.drops.values())}
    told |= {"missing_batches": book.missing_batches}
    return told | {name: getattr(book.tallies, name) for name in tables.TALLY_FIELDS}


def _find_page(
    connection: Connection, stream: str, span: Range, limit: int
) -> tuple[int | None, int | None, str | None]:
    """Return the range of the first windows of a range, and the start of the one behind them."""
    column = tables.windows.c
    from_us, to_us = span
    wanted = select(column.window_start_us).where(column.stream == stream).order_by(column.window_start_us)
    wanted = wanted if from_us is None else wanted.where(column.window_start_us >= from_us)
    wanted = wanted if to_us is None else wanted.where(column.window_start_us < to_us)
    starts = connection.execute(wanted.limit(limit + 1)).scalars().all()
    if not starts:
        return from_us, from_us, None
    end_us = starts[limit - 1 : limit] or starts[-1:]
    return starts[0], end_us[0] + WINDOW_US, str(starts[limit]) if len(starts) > limit else None


def _require_stream(connection: Connection, stream: str, found: Sequence[object]) -> None:
    """Check that a stream without results is one.

    Raises:
        HttpProblem: the store knows no such stream.
    """
    if not found and not reader.read_stream_names(connection, stream):
        raise _not_found("stream", f"the store has no stream {stream!r}")


def _require_node(connection: Connection, stream: str, node: str) -> None:
    """Check that a node is one that may lose messages.

    Raises:
        HttpProblem: the path has no such node with ids.
    """
    config = pathway_versions.read_stream(connection, stream)
    if config is None or node not in config.known_nodes:
        raise _not_found("node", f"the path of {stream} has no node {node!r} that stamps ids")


def _not_found(what: str, told: str) -> HttpProblem:
    return HttpProblem(HTTPStatus.NOT_FOUND, f"unknown-{what}", told)
