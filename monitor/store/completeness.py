"""Query of the completeness of a stream: few columns of the windows of a span, and the books where something blocks."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, func, select

from hopwatch.monitor.accounting.completeness_answer import CompletenessAnswer
from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.missing_accounts import (
    MAX_NAMED,
    MissingAccount,
    SightedWindow,
    find_blocking_holes,
    find_missing_accounts,
)
from hopwatch.monitor.kernel.completeness import (
    Completeness,
    CompletenessContract,
    CompletenessState,
    JudgedWindow,
    Obstacle,
    StreamWindows,
    bound_loss,
    decide_completeness,
)
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.kernel.window import AHEAD_US, WindowPolicy
from hopwatch.monitor.results import Status, Verdict
from hopwatch.monitor.store import instances, reader, tables
from hopwatch.probes.contract.limits import WINDOW_US

_window, _node, _stream, _hole = tables.windows.c, tables.node_windows.c, tables.streams.c, tables.holes.c
_COLUMNS: Final = (
    _window.window_start_us,
    _window.status,
    _window.verdict,
    _window.revision,
    _window.known,
    _window.lost_lower,
    _window.lost_upper,
    _window.in_flight,
    _window.is_settled,
    _window.reasons,
    _window.counts,
    _window.last_first_sighting_us,
    _window.waits_passed_us,
)
_NO_REASONS: Final = "[]"
_NAMELESS: Final = frozenset({Obstacle.LOST, Obstacle.NOT_KEPT})
"""Obstacles that no account would take away."""


def read_completeness(
    connection: Connection, contract: CompletenessContract, terms: WindowPolicy, until_us: int
) -> CompletenessAnswer:
    """Return whether a contract holds for the span that ends at ``until_us``, a whole minute, and what blocks it."""
    progress = instances.read_progress(connection)
    ends = connection.execute(
        select(_stream.first_start_us, _stream.last_start_us).where(_stream.stream == contract.stream)
    ).first()
    windows, sighted = _read_windows(connection, contract, until_us - contract.over_us, until_us)
    # What was filled once was judged as if all time had passed.
    through_us = NEVER_US if progress.is_once else progress.through_us
    first_us, last_us = (None, None) if ends is None else ends
    stored = StreamWindows(first_us, last_us, through_us, windows)
    decision = decide_completeness(contract, terms, until_us, stored)
    if decision.state is CompletenessState.COMPLETE:
        return CompletenessAnswer(decision, progress.through_us)
    blocked = _list_blocked(decision, sighted, terms, through_us)
    accounts = _read_accounts(connection, contract, terms, blocked)
    return CompletenessAnswer(decision, progress.through_us, accounts, _read_holes(connection, terms, blocked))


def _read_windows(
    connection: Connection, contract: CompletenessContract, from_us: int, until_us: int
) -> tuple[list[JudgedWindow], dict[int, int]]:
    """Return the windows that start in a range, and the last first sighting of each, by its start in µs."""
    windows: list[JudgedWindow] = []
    sighted: dict[int, int] = {}
    for to_us, nodes in contract.split_nodes(from_us, until_us):
        of_version, of_sighted = _read_version_windows(connection, contract.stream, nodes, from_us, to_us)
        windows += of_version
        sighted |= of_sighted
        from_us = to_us
    return windows, sighted


def _read_version_windows(
    connection: Connection, stream: str, nodes: tuple[str, ...] | None, from_us: int, until_us: int
) -> tuple[list[JudgedWindow], dict[int, int]]:
    """Return windows of one version of the path, and their sightings; without nodes end to end, of None nothing."""
    here = _window.stream == stream, _window.window_start_us >= from_us, _window.window_start_us < until_us
    bounds = _read_bounds(connection, stream, nodes, from_us, until_us) if nodes else {}
    windows, sighted = [], {}
    for row in connection.execute(select(*_COLUMNS).where(*here)):
        start_us, status, name, revision, known, lower, upper, in_flight, is_settled, reasons, counts, *moments = row
        verdict = Verdict(name) if name else None
        bound: tuple[int, int | None]
        if nodes is None:
            bound = 0, None
        elif nodes:
            is_led = counts != _NO_REASONS and _leads_to(json.loads(counts), nodes)
            bound = bound_loss(verdict, *bounds.get(start_us, (0, None)), has_counts=is_led)
        elif counts == _NO_REASONS:
            bound = bound_loss(verdict, lower, upper)
        else:
            counted = max(one["lost_before_lower"] for one in json.loads(counts))
            bound = bound_loss(verdict, lower, upper, counted_lower=counted, has_counts=True)
        why = () if reasons == _NO_REASONS else tuple(json.loads(reasons))
        windows.append(
            JudgedWindow(
                start_us,
                Status(status),
                verdict,
                revision,
                known,
                *bound,
                in_flight,
                is_settled=is_settled,
                reasons=why,
            )
        )
        sighted[start_us] = max(moments)
    return windows, sighted


def _leads_to(counts: Iterable[Mapping[str, Any]], nodes: Collection[str]) -> bool:
    """Return whether a node that only counts is before all ids of some nodes: what is lost behind it has no id."""
    return any(one["before"] is None and (one["behind"] is None or one["behind"] in nodes) for one in counts)


def _read_bounds(
    connection: Connection, stream: str, nodes: tuple[str, ...], from_us: int, until_us: int
) -> dict[int, tuple[int, int | None]]:
    """Return the sums of the bounds of some nodes, by window; no upper one unless each node has one."""
    wanted = (
        select(
            _node.window_start_us,
            func.sum(_node.loss_lower),
            func.sum(_node.loss_upper),
            func.count(_node.loss_upper),
        )
        .where(_node.stream == stream, _node.window_start_us >= from_us, _node.window_start_us < until_us)
        .where(_node.node.in_(nodes))
        .group_by(_node.window_start_us)
    )
    return {
        start_us: (int(lower), int(upper) if count == len(nodes) else None)
        for start_us, lower, upper, count in connection.execute(wanted)
    }


def _list_blocked(
    decision: Completeness, sighted: dict[int, int], terms: WindowPolicy, through_us: int
) -> list[SightedWindow]:
    """Return the blocked windows of which probes should have told by now."""
    spans = [one for one in decision.blocked if one.obstacle not in _NAMELESS]
    starts = (start_us for one in spans for start_us in range(one.from_us, one.to_us, WINDOW_US))
    found = (SightedWindow(start_us, sighted.get(start_us, 0)) for start_us in starts)
    return [one for one in found if terms.horizon_us(*one) < through_us]


def _read_accounts(
    connection: Connection, contract: CompletenessContract, terms: WindowPolicy, blocked: Sequence[SightedWindow]
) -> list[MissingAccount]:
    if not blocked:
        return []
    last_us = max(terms.horizon_us(*one) for one in blocked)
    books = reader.read_window_books(connection, contract.stream, blocked[0].start_us, last_us)
    return find_missing_accounts(books, terms, blocked)[:MAX_NAMED]


def _read_holes(connection: Connection, terms: WindowPolicy, blocked: Sequence[SightedWindow]) -> list[Hole]:
    if not blocked:
        return []
    last_us = max(terms.settled_at_us(*one) for one in blocked)
    wanted = select(_hole.place, _hole.first_offset, _hole.last_offset, _hole.after_us, _hole.before_us)
    near = wanted.where(_hole.before_us >= blocked[0].start_us - AHEAD_US, _hole.after_us <= last_us)
    newest = near.order_by(_hole.before_us.desc(), _hole.place, _hole.first_offset)
    found = (Hole(*row) for row in islice(connection.execute(newest), 10 * MAX_NAMED))
    return find_blocking_holes(found, terms, blocked)[:MAX_NAMED]
