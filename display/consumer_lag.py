"""Lag of consumer groups in words: a line for each group, and a line of a table for each partition."""

from __future__ import annotations

from typing import Final

from hopwatch.display import texts
from hopwatch.display.recent import format_backlog_time
from hopwatch.monitor.kernel.group_lag import GroupLag
from hopwatch.monitor.results import RecentNode

LAG_COLUMNS: Final = ("partition", "committed", "end", "lag", "deleted unread")


def describe_lag(group: GroupLag, node: RecentNode | None) -> str:
    """Return the lag of a group in all partitions, beside the backlog of its node, and what retention has deleted."""
    told = f"{group.node} is {group.lag:,} behind in {group.topic}, as the group {group.group}"
    if node is not None and node.backlog is not None:
        late = f", {format_backlog_time(node)}" if node.backlog else ""
        told += f"; by stamps {node.backlog:,} messages{late}"
    if group.deleted:
        told += f"; retention has deleted {group.deleted:,} that it has not read"
    return told


def build_lag_rows(group: GroupLag, max_rows: int | None = None) -> list[tuple[str, ...]]:
    """Return a row for each partition, in the order of LAG_COLUMNS; of more than ``max_rows`` those with most lag."""
    worst = sorted(group.partitions, key=lambda one: (-one.lag, -one.deleted, one.partition))[:max_rows]
    return [
        (
            str(one.partition),
            texts.NONE if one.committed is None else f"{one.committed:,}",
            f"{one.end:,}",
            f"{one.lag:,}",
            f"{one.deleted:,}",
        )
        for one in sorted(worst)
    ]
