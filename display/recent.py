"""Recent figures in words: a line of a table for each node, and how old they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.results import RECENT_SPAN_S, RecentEdge, RecentFigures, RecentLag, RecentNode

RECENT_COLUMNS: Final = (
    "node",
    "in/s",
    "out/s",
    "lag in p50",
    "lag in p95",
    "lag out p50",
    "lag out p95",
    "backlog",
    "backlog time",
)
"""Heads of the columns; the first one is words."""
EDGE_COLUMNS: Final = ("from", "to", "time p50", "time p95", "sampled")
"""Heads of the columns of edges; the first two are words."""
_SECOND_US: Final = 1_000_000


def build_recent_rows(recent: RecentFigures) -> list[tuple[str, ...]]:
    """Return a row for each node, in the order of RECENT_COLUMNS."""
    return [
        (
            node.node,
            format_rate(node.arrived_per_s),
            format_rate(node.departed_per_s),
            *_format_lags(node.lag_in_us),
            *_format_lags(node.lag_out_us),
            texts.format_count(node.backlog),
            format_backlog_time(node),
        )
        for node in recent.nodes
    ]


def build_edge_row(edge: RecentEdge) -> tuple[str, ...]:
    """Return the row of an edge, in the order of EDGE_COLUMNS."""
    return edge.source, edge.node, *_format_lags(edge.time_us), texts.format_count(edge.messages)


def describe_edge(edge: RecentEdge) -> str:
    """Return how long messages take on an edge now, in short."""
    return f"now p95 {texts.format_lag(edge.time_us.p95)}"


def describe_traffic(node: RecentNode) -> str:
    """Return what passes a node now, and how late that is, in short."""
    lag = node.lag_out_us or node.lag_in_us
    late = f", p95 {texts.format_lag(lag.p95)}" if lag else ""
    return f"{format_rate(max(node.arrived_per_s, node.departed_per_s))}/s{late}"


def describe_recent(recent: RecentFigures, now_us: int, moment: str) -> str:
    """Return of which span the figures are, and how old they are; ``moment`` is the end of the span as it is shown."""
    told = f"{RECENT_SPAN_S} s of arrival up to {moment}, {texts.format_age(max(0, now_us - recent.through_us))} ago"
    return f"{told}: the monitor has read nothing since" if recent.is_old(now_us) else told


def format_rate(per_s: float) -> str:
    """Return messages a second, small numbers to a tenth."""
    return f"{per_s:,.0f}" if per_s >= RECENT_SPAN_S or per_s == int(per_s) else f"{per_s:.1f}"


def _format_lags(lag: RecentLag | None) -> Sequence[str]:
    return [texts.format_lag(lag_us) for lag_us in (lag.p50, lag.p95)] if lag else [texts.NONE] * 2


def format_backlog_time(node: RecentNode) -> str:
    """Return how long the backlog of a node takes to pass it at its rate of now."""
    if node.backlog_s is None:
        return "no end" if node.backlog else texts.NONE
    return texts.format_lag(node.backlog_s * _SECOND_US) if node.backlog else "0"
