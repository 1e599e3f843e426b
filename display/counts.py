"""Counts of nodes without ids in words: each says that it is by count, and what the ids beside it say."""

from __future__ import annotations

from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.results import NodeCounts

MAX_SERVERS: Final = 5
"""Probes of a node that are named with their counts."""


def describe_counts(one: NodeCounts) -> str:
    """Return one line on a counting node in a window, beside the nearest nodes with ids."""
    said = [f"{one.node}, by count: {one.arrived:,} came"]
    if one.departed != one.arrived:
        said.append(f"{one.departed:,} left")
    if one.bytes:
        said.append(f"{one.bytes:,} bytes")
    if one.dropped:
        said.append(f"its probes dropped {one.dropped:,}")
    if one.before is not None and one.left_before is not None:
        told = _compare(one.arrived, one.left_before, f"left {one.before} by ids", is_same=one.same_before)
        said.append(told + (f", at least {one.lost_before_lower:,} lost on the way" if one.lost_before_lower else ""))
    if one.behind is not None and one.seen_behind is not None:
        said.append(_compare(one.departed, one.seen_behind, f"seen at {one.behind} by ids", is_same=one.same_behind))
    return "; ".join(said)


def describe_servers(one: NodeCounts) -> str:
    """Return what each probe of a counting node counted, the first few by name; nothing of a single one."""
    if len(one.servers) < 2:  # noqa: PLR2004 - of one all is said already
        return ""
    named = [f"{server.probe} {server.count:,}" for server in one.servers[:MAX_SERVERS]]
    more = len(one.servers) - len(named)
    return ", ".join([*named, *([f"and {texts.format_count(more)} more"] if more else [])])


def _compare(counted: int, by_ids: int, where: str, *, is_same: bool | None) -> str:
    """Return how many the ids beside a count are, and whether they are the same messages."""
    if is_same:
        return f"the same {by_ids:,} {where}, by fingerprint"
    apart = f", {abs(counted - by_ids):,} {'more' if by_ids > counted else 'fewer'}" if counted != by_ids else ""
    return f"{by_ids:,}{apart}, {where}" + (", other messages by fingerprint" if is_same is False else "")
