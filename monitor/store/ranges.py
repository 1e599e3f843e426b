"""A range of a stream as it is shown: the whole of it, and its windows, hours or days with some of their nodes.

However many nodes a stream has, figures of a node at a step are read of those alone that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from hopwatch.monitor.kernel.rollup import PathwayShape, Sums, add_sums, build_roll_up, select_nodes
from hopwatch.monitor.results import RollUp, WindowResult
from hopwatch.monitor.store import pieces, reader, rollups
from hopwatch.monitor.store.pieces import Kept, Source
from hopwatch.monitor.store.plan import Plan, planned
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US

Steps = tuple[WindowResult, ...] | tuple[RollUp, ...]
Chosen = Callable[[RollUp | None], Collection[str]]
"""Says of the whole of a range which of its nodes the steps are told with."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range: its steps in order, with those nodes that were chosen, and the whole, None without a final window."""

    steps: Steps
    whole: RollUp | None


@dataclass(frozen=True, slots=True)
class Where:
    """Which range of which stream, in steps of windows, hours or days: those that start in ``[from_us, to_us)``."""

    stream: str
    from_us: int
    to_us: int
    step_us: int


def read(connection: Connection, where: Where, chosen: Chosen, kept: Kept) -> Range:
    """Return a range; empty of a stream that no configuration of this store has had.

    The whole is of final windows alone, its percentiles from merged digests. ``kept`` saves reading what was read.
    """
    rules = reader.rules(connection, where.stream)
    if not rules:
        return Range((), None)
    shape = rollups.shape_of(rules)
    source = Source(connection, where.stream, f"{connection.engine.url} {json.dumps(rules)}", kept)
    live_us = rollups.live(connection, where.stream)
    sums = _sums(source, planned(where.from_us, where.to_us, where.step_us, live_us))
    whole = _whole(source, shape, where.from_us, sums) if sums else None
    names = chosen(whole)
    places = frozenset(place for place, name in enumerate(rules[0]) if name in names)
    span = connection, where.stream, where.from_us, where.to_us
    if where.step_us < HOUR_US:
        return Range(tuple(reader.results(*span, places)), whole)
    rolled = dict(_rolled(source, where, places))
    for at in {at // where.step_us * where.step_us for at in live_us}:
        if where.from_us <= at < where.to_us:
            made = _sums(source, planned(at, at + where.step_us, HOUR_US, live_us))
            rolled |= {at: _step(source, shape, at, made, places)} if made else {}
    return Range(tuple(rolled[at] for at in sorted(rolled)), whole)


def _sums(source: Source, plan: Plan) -> Sums | None:
    """Return what the windows and roll-ups of a plan come to; none where there are none."""
    blocks, rest = pieces.of_windows(source, plan.windows), pieces.of_spans(source, plan)
    parts = (*(blocks[at] for at in sorted(blocks)), *([rest] if rest else []))
    if len(parts) <= 1:
        return parts[0] if parts else None
    return source.kept.of((Sums, parts), lambda: add_sums(parts))


def _whole(source: Source, shape: PathwayShape, at_us: int, sums: Sums) -> RollUp:
    """Return what these sums say of all nodes."""
    return source.kept.of(
        (RollUp, shape, at_us, sums), lambda: build_roll_up(shape, source.stream, at_us, sums).figures
    )


def _rolled(source: Source, where: Where, places: frozenset[int]) -> dict[int, RollUp]:
    """Return the hours or days that are rolled up, by their start, with some of their nodes."""
    all_of_it = ((where.from_us, where.to_us),)
    span, plan = rollups.HOUR, Plan((), all_of_it, ())
    if where.step_us == DAY_US:
        span, plan = rollups.DAY, Plan((), (), all_of_it)
    key = dict, source.stream, source.known_as, places, pieces.fingerprints(source, plan)

    def make() -> dict[int, RollUp]:
        return rollups.stored(source.connection, where.stream, where.from_us, where.to_us, span, places)

    return source.kept.of(key, make)


def _step(source: Source, shape: PathwayShape, at_us: int, sums: Sums, places: frozenset[int]) -> RollUp:
    """Return an hour or a day of these sums, with some of its nodes."""
    # Those that end the pathway say when messages arrive end to end.
    needed = [place for place, ends in enumerate(shape.is_terminal) if ends or place in places]

    def make() -> RollUp:
        one = build_roll_up(shape.of(needed), source.stream, at_us, select_nodes(sums, needed)).figures
        nodes = tuple(node for place, node in zip(needed, one.nodes, strict=True) if place in places)
        return replace(one, nodes=nodes)

    return source.kept.of((RollUp, shape, at_us, sums, places), make)
