"""Time range of a stream for display: its total, and its windows, hours or days with some of their nodes.

Per-step figures are read only for the nodes that are shown, however many a stream has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from hopwatch.monitor.kernel.rollup import SpanShape, Sums, add_sums, build_roll_up, select_nodes
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.results import RollUp, WindowResult
from hopwatch.monitor.store import pathway_versions, range_cache, reader, rollups
from hopwatch.monitor.store.range_cache import CachedStream
from hopwatch.monitor.store.range_plan import RangePlan, plan_range
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

Steps = tuple[WindowResult, ...] | tuple[RollUp, ...]
NodeSelector = Callable[[RollUp | None], Collection[str]]
"""Selects the nodes to show in each step, given the total of the range."""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """Steps of a range in order, with the selected nodes, and the total; None without a final window.

    Without ``has_digests`` the total has no lag: digests of a part of an hour in the range were dropped.
    """

    steps: Steps
    whole: RollUp | None
    has_digests: bool = True


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """Query of a range: the windows, hours or days of a stream that start in ``[from_us, to_us)``."""

    stream: str
    from_us: int
    to_us: int
    step_us: int


def read_range(connection: Connection, where: RangeQuery, chosen: NodeSelector, kept: Memo) -> RangeResult:
    """Query a range; it is empty for an unknown stream.

    The total covers final windows only, its percentiles come from merged digests. ``kept`` caches partial sums.
    """
    config = pathway_versions.read_stream(connection, where.stream)
    if config is None:
        return RangeResult((), None)
    shape = config.describe_span(where.from_us, where.to_us)
    source = _open_source(connection, where.stream, config, kept)
    live_us = rollups.read_live_hours(connection, where.stream)
    sums = _sum_plan(source, plan_range(where.from_us, where.to_us, where.step_us, live_us))
    whole = _build_total(source, shape, where.from_us, sums) if sums else None
    has_digests = sums is None or sums.has_digests
    names = chosen(whole)
    names = frozenset(names)
    span = connection, where.stream, where.from_us, where.to_us
    if where.step_us < HOUR_US:
        return RangeResult(tuple(reader.read_windows(*span, names)), whole, has_digests)
    rolled = dict(_read_rollups(source, where, names))
    for at in {at // where.step_us * where.step_us for at in live_us}:
        if where.from_us <= at < where.to_us:
            made = _sum_plan(source, plan_range(at, at + where.step_us, HOUR_US, live_us))
            rolled |= {at: _build_step(source, where.step_us, at, made, names)} if made else {}
    return RangeResult(tuple(rolled[at] for at in sorted(rolled)), whole, has_digests)


def read_total(connection: Connection, stream: str, from_us: int, to_us: int, kept: Memo) -> RollUp | None:
    """Query the total of the final windows that start in ``[from_us, to_us)``; None without any."""
    config = pathway_versions.read_stream(connection, stream)
    if config is None:
        return None
    source = _open_source(connection, stream, config, kept)
    sums = _sum_plan(source, plan_range(from_us, to_us, WINDOW_US, rollups.read_live_hours(connection, stream)))
    return _build_total(source, config.describe_span(from_us, to_us), from_us, sums) if sums else None


def _open_source(connection: Connection, stream: str, config: StreamConfig, kept: Memo) -> CachedStream:
    told = [(version.valid_from_us, version.pathway) for version in config.versions]
    return CachedStream(connection, stream, f"{connection.engine.url} {told}", kept, config)


def _sum_plan(source: CachedStream, plan: RangePlan) -> Sums | None:
    """Sum the windows and roll-ups of a plan; None if there are none."""
    parts = (*range_cache.sum_windows(source, plan.windows), *range_cache.sum_rollups(source, plan))
    if len(parts) <= 1:
        return parts[0] if parts else None
    return source.cache.get_or_build((Sums, parts), lambda: add_sums(parts))


def _build_total(source: CachedStream, shape: SpanShape, at_us: int, sums: Sums) -> RollUp:
    """Build the total over all nodes from sums."""
    return source.cache.get_or_build(
        (RollUp, shape, at_us, sums), lambda: build_roll_up(shape, source.stream, at_us, sums).figures
    )


def _read_rollups(source: CachedStream, where: RangeQuery, names: frozenset[str]) -> dict[int, RollUp]:
    """Read the stored hours or days by their start, with some of their nodes."""
    all_of_it = ((where.from_us, where.to_us),)
    span, plan = rollups.HOUR, RangePlan((), all_of_it, ())
    if where.step_us == DAY_US:
        span, plan = rollups.DAY, RangePlan((), (), all_of_it)
    key = dict, source.stream, source.cache_key, names, range_cache.read_fingerprints(source, plan)

    def make() -> dict[int, RollUp]:
        return rollups.read_stored_rollups(source.connection, where.stream, where.from_us, where.to_us, span, names)

    return source.cache.get_or_build(key, make)


def _build_step(source: CachedStream, step_us: int, at_us: int, sums: Sums, names: frozenset[str]) -> RollUp:
    """Build an hour or a day from sums, with some of its nodes."""
    shape = source.config.describe_span(at_us, at_us + step_us)

    def make() -> RollUp:
        # End-to-end figures need the nodes that end the pathway.
        needed = select_nodes(sums, [*names, *shape.terminals, *shape.mixed])
        one = build_roll_up(shape, source.stream, at_us, needed).figures
        return replace(one, nodes=tuple(node for node in one.nodes if node.node in names))

    return source.cache.get_or_build((RollUp, shape, at_us, sums, names), make)
