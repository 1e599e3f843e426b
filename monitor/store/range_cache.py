"""Cache of partial sums for ranges: counts and merged digests of windows, hours and days.

Windows are summed in blocks of ten minutes, so that a range that moves on by one window reads that window only. The
database adds the counts; digests are merged as they are stored. The key of a sum holds the revisions of its windows, or
the fingerprints of its roll-ups, so a cached sum is valid exactly as long as these stay the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, case, false, func, literal, or_, select

from hopwatch.monitor.kernel.rollup import COUNTS, NODE_COUNTS, Sums, add_sums, sum_part
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.kernel.tdigest_bulk_merge import merge_stored
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.results import Status, Verdict
from hopwatch.monitor.store import rollups, tables
from hopwatch.monitor.store.range_plan import RangePlan, Ranges
from hopwatch.monitor.store.tables import NODE_DIGESTS, QUANTILE_FIELDS
from hopwatch.monitor.stream_config import StreamConfig

BLOCK_US: Final = 600_000_000
MAX_PIECES: Final = 96
"""Cached sums; one of 100 nodes takes about 2 MB."""
_VERDICTS: Final = tuple(verdict.value.lower() for verdict in Verdict)
_SUMMED_FIELDS: Final = (*COUNTS, "lost_upper")
_NODE_SUMMED_FIELDS: Final = (*NODE_COUNTS, "loss_upper")
_WINDOW_COLUMNS: Final = tuple(
    tables.windows.c[name]
    for name in ("window_start_us", "verdict", "revision", "is_settled", "status", *_SUMMED_FIELDS)
) + tuple(tables.windows.c[f"lag_us_{part}"] for part in QUANTILE_FIELDS)  # fmt: skip
_ROLLUP_SUMMED_FIELDS: Final = ("windows", *_VERDICTS, *_SUMMED_FIELDS)
_ROLLUP_BLOCK: Final = -1
"""Block number of sums over roll-ups."""

Rows = Sequence[Row[Any]]
Condition = ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class CachedStream:
    """A stream of a store with its cache; ``cache_key`` identifies the store and the versions of the stream."""

    connection: Connection
    stream: str
    cache_key: str
    cache: Memo
    config: StreamConfig


def sum_windows(source: CachedStream, ranges: Ranges) -> list[Sums]:
    """Sum the final windows in some ranges, in blocks of ten minutes of one version each, in order of time."""
    found: list[Sums] = []
    for version, of_version in _split_ranges(source.config, ranges):
        blocks = _sum_version(source, version, of_version)
        found += [blocks[at] for at in sorted(blocks)]
    return found


def _split_ranges(config: StreamConfig, ranges: Ranges) -> Iterator[tuple[StreamConfig, Ranges]]:
    """Yield each version, the oldest first, with the parts of some ranges in which it is valid, if there are any."""
    from_us: int | None = None
    for version, to_us in (*reversed(config.ends), (config, None)):
        clipped = [
            (begin if from_us is None else max(begin, from_us), end if to_us is None else min(end, to_us))
            for begin, end in ranges
        ]
        own = tuple((begin, end) for begin, end in clipped if begin < end)
        if own:
            yield version, own
        from_us = to_us


def _sum_version(source: CachedStream, version: StreamConfig, ranges: Ranges) -> dict[int, Sums]:
    """Sum the final windows in some ranges of one version, by the start of their block."""
    column, start = tables.windows.c, tables.windows.c.window_start_us
    chosen = select(*_WINDOW_COLUMNS).where(_in_ranges(start, ranges, column.stream == source.stream)).order_by(start)
    blocks: dict[int, list[Row[Any]]] = defaultdict(list)
    waiting = []
    for row in source.connection.execute(chosen):
        if Status(row.status).is_final:
            blocks[row.window_start_us // BLOCK_US * BLOCK_US].append(row)
        else:
            waiting.append(row.window_start_us)
    keys = {at: (source.stream, source.cache_key, tuple(map(tuple, rows))) for at, rows in blocks.items()}
    found = {at: piece for at, key in keys.items() if (piece := source.cache.get(key)) is not None}
    missing = sorted(blocks.keys() - found.keys())
    if missing:
        of_nodes = tables.node_windows.c
        some = _clip_ranges(ranges, missing)
        where = _in_ranges(of_nodes.window_start_us, some, of_nodes.stream == source.stream)
        where = and_(where, of_nodes.window_start_us.not_in(waiting)) if waiting else where
        block = of_nodes.window_start_us // literal(BLOCK_US)
        counts = {at: _count_windows(rows) for at, rows in blocks.items()}
        for number, piece in _build_pieces(
            source.connection, tables.node_windows, where, block, counts, BLOCK_US, version
        ).items():
            found[number] = piece
            # What is not settled yet may be written again under the same revision.
            if all(row.is_settled for row in blocks[number]):
                source.cache.put(keys[number], piece)
    return found


def sum_rollups(source: CachedStream, plan: RangePlan) -> list[Sums]:
    """Sum the hours and days of a plan; empty if it has none."""
    # One after another where versions of the pathway meet: the database cannot tell who ended it when.
    versions = list(_split_ranges(source.config, (*plan.hours, *plan.days)))
    version = versions[0][0] if versions else source.config
    planned, column = _in_rollups(tables.rollups, source.stream, plan), tables.rollups.c

    def make() -> Sums:
        if len(versions) > 1:
            read = partial(rollups.read_stored_parts, source.connection, source.config, source.stream)
            hours = [part for span in plan.hours for part in read(rollups.HOUR, span).values()]
            days = [part for span in plan.days for part in read(rollups.DAY, span).values()]
            return add_sums([sum_part(part) for part in (*hours, *days)])
        rows = source.connection.execute(select(*(column[name] for name in _ROLLUP_SUMMED_FIELDS)).where(planned)).all()
        where = _in_rollups(tables.node_rollups, source.stream, plan)
        counts = {_ROLLUP_BLOCK: _add_rows(rows, _ROLLUP_SUMMED_FIELDS)}
        (found,) = _build_pieces(
            source.connection, tables.node_rollups, where, literal(_ROLLUP_BLOCK), counts, 1, version
        ).values()
        return found

    seen = read_fingerprints(source, plan)
    return [source.cache.get_or_build((Sums, source.stream, source.cache_key, seen), make)] if seen else []


def read_fingerprints(source: CachedStream, plan: RangePlan) -> tuple[tuple[str, int, int], ...]:
    """Query span, start and fingerprint of the hours and days of a plan; equal fingerprints mean equal figures."""
    column = tables.rollups.c
    found = source.connection.execute(
        select(column.span, column.start_us, column.fingerprint)
        .where(_in_rollups(tables.rollups, source.stream, plan))
        .order_by(*tables.rollups.primary_key)
    )
    return tuple((row.span, row.start_us, row.fingerprint) for row in found)


def _build_pieces(  # noqa: PLR0913, PLR0917 - all parts of the query
    connection: Connection,
    table: Table,
    where: Condition,
    group: ColumnElement[int],
    counts: Mapping[int, Mapping[str, int | None]],
    unit: int,
    version: StreamConfig,
) -> dict[int, Sums]:
    """Sum the selected rows of nodes, all of one version, by group; the key of a sum is the group times ``unit``."""
    terminals = version.pathway.terminal_names
    column = table.c
    sums = [func.sum(column[name]) for name in _NODE_SUMMED_FIELDS]
    unknown = func.sum(case((column.loss_upper.is_(None), 1), else_=0))
    # Named, as PostgreSQL does not know an expression again that has a value bound in it.
    labelled = group.label("piece")
    summed = select(labelled, column.place, func.min(column.node), unknown, *sums).where(where)
    nodes: dict[int, dict[int, tuple[str, dict[str, int | None]]]] = defaultdict(dict)
    for number, place, name, blind, *values in connection.execute(summed.group_by("piece", column.place)):
        told: dict[str, int | None] = dict(
            zip(_NODE_SUMMED_FIELDS, map(int, (one or 0 for one in values)), strict=True)
        )
        nodes[number * unit][place] = name, told | ({"loss_upper": None} if blind else {})
    lags, without = _merge_digests(connection, table, where, labelled, unit)
    return {
        at: Sums(
            counts[at],
            tuple(of_nodes[place][0] for place in sorted(of_nodes)),
            tuple(of_nodes[place][1] for place in sorted(of_nodes)),
            tuple(lags[at, place] for place in sorted(of_nodes)),
            tuple(
                lags[at, place].lag_out_us if of_nodes[place][0] in terminals else None for place in sorted(of_nodes)
            ),
            at not in without,
        )
        for at, of_nodes in nodes.items()
    }


def _merge_digests(
    connection: Connection, table: Table, where: Condition, group: ColumnElement[int], unit: int
) -> tuple[dict[tuple[int, int], NodeLags], set[int]]:
    """Merge the digests of each group and node; return them, and the groups of which some were dropped."""
    without: set[int] = set()
    stored: dict[tuple[int, int], tuple[list[bytes], ...]] = defaultdict(lambda: tuple([] for _ in NODE_DIGESTS))
    wanted = select(group, table.c.place, *(table.c[f"{name}_digest"] for name in NODE_DIGESTS)).where(where)
    for number, place, *digests in connection.execute(wanted):
        for kept, digest in zip(stored[number * unit, place], digests, strict=True):
            if digest:
                kept.append(digest)
            elif digest is not None:
                without.add(number * unit)
    found = iter(merge_stored([of_lag for of_node in stored.values() for of_lag in of_node]))
    return {key: NodeLags(*islice(found, len(NODE_DIGESTS))) for key in stored}, without


def _count_windows(windows: Rows) -> dict[str, int | None]:
    """Count windows, by verdict too, and add up their figures."""
    told: dict[str, int | None] = {"windows": len(windows)}
    told |= {name: sum(row.verdict == name.upper() for row in windows) for name in _VERDICTS}
    return told | _add_rows(windows, _SUMMED_FIELDS)


def _add_rows(rows: Rows, names: Sequence[str]) -> dict[str, int | None]:
    values = {name: [getattr(row, name) for row in rows] for name in names}
    return {name: None if None in found else sum(found) for name, found in values.items()}


def _clip_ranges(ranges: Ranges, blocks: Sequence[int]) -> Ranges:
    """Return the parts of some ranges that fall into some blocks."""
    return tuple(
        (max(begin, block), min(end, block + BLOCK_US))
        for block in blocks
        for begin, end in ranges
        if begin < block + BLOCK_US and block < end
    )


def _in_rollups(table: Table, stream: str, plan: RangePlan) -> Condition:
    column = table.c
    hours = _in_ranges(column.start_us, plan.hours, and_(column.stream == stream, column.span == rollups.HOUR))
    return or_(hours, _in_ranges(column.start_us, plan.days, and_(column.stream == stream, column.span == rollups.DAY)))


def _in_ranges(column: ColumnElement[int], ranges: Ranges, of: Condition) -> Condition:
    """Return a condition for some ranges; ``of`` is repeated in each of them, so that the index is used for each."""
    return or_(false(), *(and_(of, column >= begin, column < end) for begin, end in ranges))
