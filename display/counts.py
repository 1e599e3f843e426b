"""Counts of nodes without ids in words: each says that it is by count, and what the ids beside it say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.results import CountsRollUp, NodeCounts, Quantiles, ServerCount
from hopwatch.monitor.texts.escaping import escape_line

MAX_SERVERS: Final = 5
"""Probes of a node that are named with their counts."""
MAX_APART: Final = 20
"""Probes of a node whose counts differ from the ids beside them, each on a line of its own."""
MAX_IDS: Final = 3
"""Missing ids of such a probe that stand in its line."""


def describe_counts(one: NodeCounts | CountsRollUp) -> str:
    """Return one line on a counting node in a window, hour or day, beside the nearest nodes with ids."""
    said = [f"{one.node}, by count: {one.arrived:,} came"]
    if one.departed != one.arrived:
        said.append(f"{one.departed:,} left")
    if one.bytes:
        said.append(f"{one.bytes:,} bytes")
    if one.dropped:
        said.append(f"its probes dropped {one.dropped:,}")
    said += [_describe_lag(side, lag, of) for side, lag, of in _list_lags(one)]
    if one.before is not None and one.left_before is not None:
        told = _compare(one.arrived, one.left_before, f"left {one.before} by ids", is_same=one.same_before)
        said.append(told + (f", at least {one.lost_before_lower:,} lost on the way" if one.lost_before_lower else ""))
    if one.behind is not None and one.seen_behind is not None:
        said.append(_compare(one.departed, one.seen_behind, f"seen at {one.behind} by ids", is_same=one.same_behind))
    return "; ".join(said)


def _list_lags(one: NodeCounts | CountsRollUp) -> Iterator[tuple[str, Quantiles, int]]:
    """Yield the lags that packets told, with the number of messages that they are of: one where both sides have it."""
    if one.lag_in_us is not None:
        yield ("in" if one.lag_out_us != one.lag_in_us else ""), one.lag_in_us, one.arrived
    if one.lag_out_us is not None and one.lag_out_us != one.lag_in_us:
        yield "out", one.lag_out_us, one.departed


def _describe_lag(side: str, lag: Quantiles, of: int) -> str:
    told = f"{side} p95 lag {texts.format_lag(lag.p95)}".strip()
    return told if lag.count == of else f"{told}, told of {lag.count:,}"


def describe_servers(one: NodeCounts) -> list[str]:
    """Return lines on what each probe of a counting node counted, the first few by name; nothing of a single one.

    Where the nodes beside it have probes of the same names, those whose ids are others have a line each.
    """
    sides = _Sides(one)
    if not sides.names:
        # Of a single one all is said already.
        return [_list_servers(one.servers)] if len(one.servers) > 1 else []
    apart = [line for server in one.servers if (line := sides.describe(server))]
    lines = apart[:MAX_APART]
    if len(apart) > MAX_APART:
        lines.append(f"and {texts.format_count(len(apart) - MAX_APART)} more servers that differ, which --json shows")
    if alike := len(one.servers) - len(apart):
        lines.append(f"{texts.format_count(alike)} {'servers' if alike > 1 else 'server'} as at {sides.names}")
    return lines


def _list_servers(servers: tuple[ServerCount, ...]) -> str:
    named = [f"{escape_line(server.probe)} {texts.format_count(server.count)}" for server in servers[:MAX_SERVERS]]
    more = len(servers) - len(named)
    return ", ".join([*named, *([f"and {texts.format_count(more)} more"] if more else [])])


class _Sides:
    """The nodes beside a counting one that have probes of the names of its own."""

    def __init__(self, one: NodeCounts) -> None:
        self._before = one.before if any(server.left_before is not None for server in one.servers) else None
        self._behind = one.behind if any(server.seen_behind is not None for server in one.servers) else None
        self.names = " and ".join(name for name in (self._before, self._behind) if name is not None)

    def describe(self, server: ServerCount) -> str:
        """Return the line of a server whose counts differ from the ids beside them, empty where they do not."""
        told = [line for line in self._compare(server) if line]
        if server.missing_behind:
            ids = ", ".join(map(escape_line, server.missing_ids[:MAX_IDS]))
            more = ", …" if server.missing_behind > MAX_IDS else ""
            told.append(f"{server.missing_behind:,} missing at {self._behind or 'the next node'}: {ids}{more}")
        if not told:
            return ""
        counted = "no packet" if server.count is None else f"{server.count:,} by count"
        return "; ".join([f"{escape_line(server.probe)}: {counted}", *told])

    def _compare(self, server: ServerCount) -> Iterator[str]:
        if self._before is not None:
            yield _compare_server(server.count, server.left_before, f"left {self._before}", is_same=server.same_before)
        if self._behind is not None:
            seen = server.seen_behind
            yield _compare_server(server.departed, seen, f"at {self._behind}", is_same=server.same_behind)


def _compare_server(counted: int | None, by_ids: int | None, where: str, *, is_same: bool | None) -> str:
    """Return what ids of a server say otherwise than its count."""
    if by_ids is None:
        return "" if counted == 0 else f"none {where}"
    if counted is None:
        return f"{by_ids:,} {where}"
    if counted != by_ids:
        return f"{by_ids:,} {where}, {abs(counted - by_ids):,} {'more' if by_ids > counted else 'fewer'}"
    return f"{by_ids:,} {where}, other messages by fingerprint" if is_same is False else ""


def _compare(counted: int, by_ids: int, where: str, *, is_same: bool | None) -> str:
    """Return how many the ids beside a count are, and whether they are the same messages."""
    if is_same:
        return f"the same {by_ids:,} {where}, by fingerprint"
    apart = f", {abs(counted - by_ids):,} {'more' if by_ids > counted else 'fewer'}" if counted != by_ids else ""
    return f"{by_ids:,} {where}{apart}" + (", other messages by fingerprint" if is_same is False else "")
