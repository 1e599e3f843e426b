"""Windows made to measure, as the monitor concludes them, and what the store would know of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hopwatch.alerts.decision.inputs import DeferredMessages, LagPoint, ObjectiveCounts, SeriesOutlier, WindowInput
from hopwatch.monitor.results import NodeResult, Quantiles, Status, Verdict, WindowResult
from hopwatch.probes.contract.limits import WINDOW_US

START_US: Final = 1_767_225_600_000_000
"""Minute 0 of all tests: 2026-01-01T00:00:00Z."""

NODES: Final = ("a", "b")
Fields = Mapping[str, Any]


def at(minute: float) -> int:
    """Return the moment so many minutes after the first window's start."""
    return START_US + round(minute * WINDOW_US)


def lag(p95: int, count: int = 1_000, low: int = 1_000) -> Quantiles:
    """Return the figures of a lag with this 95th percentile."""
    return Quantiles(count, low, min(low, p95), p95, p95, p95)


def node(name: str, **fields: Any) -> NodeResult:  # noqa: ANN401 - the fields of a node
    """Return a node with complete books that has lost nothing."""
    seen = fields.get("seen", 1_000)
    counts: dict[str, Any] = dict.fromkeys(NodeResult.__dataclass_fields__, 0) | {
        "expected": seen,
        "seen": seen,
        "arrived": seen,
    }
    odd = {"departed": seen, "loss_ratio": None, "coverage": 1.0, "lag_in_us": None, "lag_out_us": None}
    more = {"inside_us": None, "process_duration_p95_us": None, "displacement": None, "node": name}
    return NodeResult(**counts | odd | more | {"overdue_ids": ()} | fields)


def window(
    minute: int,
    *,
    stream: str = "orders",
    known: int = 1_000,
    lost: Mapping[str, int] | None = None,
    verdict: Verdict | None = None,
    status: Status = Status.FINAL,
    nodes: Mapping[str, Fields] | None = None,
    names: tuple[str, ...] = NODES,
    **fields: Any,  # noqa: ANN401 - the fields of a window
) -> WindowResult:
    """Return a window in which so many messages were known, and so many surely lost on their way to each node."""
    lost, nodes = lost or {}, nodes or {}
    gone = sum(lost.values())
    judged = verdict or (Verdict.LOSSY if gone else Verdict.CLEAN if known else Verdict.IDLE)
    is_blind = judged in {Verdict.UNKNOWN, Verdict.SILENT}
    made = []
    for name in names:
        of_node = lost.get(name, 0)
        losses = {"lost_in_transit": of_node, "loss": of_node, "loss_lower": of_node, "loss_upper": of_node}
        blind = {"coverage": 0.0, "loss_upper": None} if is_blind else {}
        made.append(node(name, **{"seen": known - of_node} | losses | blind | dict(nodes.get(name, {}))))
    counts: dict[str, Any] = dict.fromkeys(WindowResult.__dataclass_fields__, 0)
    what = {"stream": stream, "window_start_us": at(minute), "status": status, "verdict": judged, "reasons": ()}
    figures = {"known": known, "delivered": known - gone, "lost": gone, "lost_lower": gone, "lost_upper": gone}
    odd = {"loss_ratio": gone / known if known else None, "lag_us": None, "nodes": tuple(made), "counts": ()}
    blind = {"lost_upper": None} if is_blind else {}
    return WindowResult(**counts | what | figures | odd | blind | fields)


Odd = Mapping[str, tuple[SeriesOutlier, ...]]


def window_input(minute: int, *, outliers: Odd | None = None, **fields: Any) -> WindowInput:  # noqa: ANN401 - fields of a window
    """Return a window with five lost ids at each node that lost some."""
    made = window(minute, **fields)
    ids = {one.node: tuple(f"{n:032x}" for n in range(5)) for one in made.nodes if one.loss_lower}
    return WindowInput(made, (), ids, outliers or {})


@dataclass
class Memory:
    """Memory of a store in a few dictionaries; a window without figures counts nowhere."""

    minutes: dict[tuple[str, str, int], ObjectiveCounts] = field(default_factory=dict)
    arrivals_us: list[int] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    last_us: dict[str, int] = field(default_factory=dict)
    bad_us: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    """Of each stream and objective, the starts of the windows that were counted with a bad message."""
    deferred: dict[tuple[str, int], int] = field(default_factory=dict)
    lags: Mapping[str, Sequence[LagPoint]] = field(default_factory=dict)
    """Of each node, in order of time."""
    lag_queries: int = 0

    def count(self, minute: WindowInput) -> None:
        """Count a window into the objective of loss, anew if it was counted before."""
        result = minute.result
        self.deferred[result.stream, result.window_start_us] = result.deferred
        says_nothing = result.verdict in {Verdict.UNKNOWN, Verdict.SILENT}
        counts = None if says_nothing else ObjectiveCounts(result.known, result.lost_lower)
        self.put(result.stream, "loss", result.window_start_us, counts)
        self.last_us[result.stream] = max(self.last_us.get(result.stream, 0), result.window_start_us)

    def put(self, stream: str, objective: str, start_us: int, counts: ObjectiveCounts | None) -> None:
        """Let a window count so for an objective, or nowhere."""
        bad_us = self.bad_us.setdefault((stream, objective), set())
        if counts is None:
            self.minutes.pop((stream, objective, start_us), None)
        else:
            self.minutes[stream, objective, start_us] = counts
        (bad_us.add if counts is not None and counts.bad else bad_us.discard)(start_us)

    def sum_counts(self, stream: str, objective: str, from_us: int, to_us: int) -> ObjectiveCounts:
        """Return the sums over the windows that start in a range."""
        kept = (self.minutes.get((stream, objective, us)) for us in range(from_us, to_us, WINDOW_US))
        found = [counts for counts in kept if counts]
        return ObjectiveCounts(sum(one.total for one in found), sum(one.bad for one in found))

    def find_last_bad_us(self, stream: str, objective: str) -> int | None:
        """Return the start of the newest window in which a message was bad."""
        return max(self.bad_us.get((stream, objective), ()), default=None)

    def sum_deferred(self, stream: str, from_us: int, to_us: int) -> DeferredMessages:
        """Return the messages that wait in a range, and its oldest window that has some."""
        waiting = {us: count for (name, us), count in self.deferred.items() if name == stream and count}
        found = {us: count for us, count in waiting.items() if from_us <= us < to_us}
        return DeferredMessages(sum(found.values()), min(found, default=None))

    def read_lags(self, stream: str, from_us: int, to_us: int) -> Mapping[str, Sequence[LagPoint]]:
        """Return the lags in a range."""
        del stream
        self.lag_queries += 1
        return {node: [one for one in of if from_us <= one.start_us < to_us] for node, of in self.lags.items()}

    def count_set_aside(self, from_us: int, to_us: int) -> int:
        """Return how many records arrived in a range that could not be read."""
        return sum(from_us <= arrival_us < to_us for arrival_us in self.arrivals_us)

    def find_selftest_failures(self, from_us: int, to_us: int) -> Sequence[str]:
        """Return a problem of each minute of the self-test that failed in a range."""
        return [text for at_us, text in reversed(self.failures) if from_us <= at_us < to_us]

    def find_last_window_us(self, stream: str) -> int | None:
        """Return the start of the newest window."""
        return self.last_us.get(stream)
