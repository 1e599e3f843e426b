"""Alert rules as values, with spans counted in windows and a threshold for every stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.stream_config import StreamConfig

OWN_STREAM: Final = ""
"""Stream name of the monitor's own rules: records set aside, self-test, heartbeat."""

MIN_MEMORY_US: Final = 300_000_000
"""Shortest time that an ended alert still covers others: two alerts of one cause do not end together."""

KIND_ORDER: Final = (
    *(
        AlertKind.LOSS,
        AlertKind.LAG,
        AlertKind.END_TO_END_LAG,
        AlertKind.SILENT,
        AlertKind.PROBE_DROPS,
        AlertKind.UNKNOWN,
        AlertKind.BURN_RATE,
    ),
    *(AlertKind.CLOCK_SKEW, AlertKind.REJECTED, AlertKind.DEFERRED, AlertKind.DEFERRED_AGE),
    *(AlertKind.FORECAST, AlertKind.OUTLIER, AlertKind.SET_ASIDE, AlertKind.SELFTEST, AlertKind.HEARTBEAT),
)
"""Of two rules about the same problem, the first names the place more exactly; that one notifies."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Service level objective of a stream: the part of its messages that must arrive, with a target within that lag.

    ``budget`` is the part that may be bad. Objectives that count the same messages as bad have the same ``name``.
    """

    budget: float
    target_us: int | None = None

    @property
    def name(self) -> str:
        """Name of what is counted as bad."""
        return "loss" if self.target_us is None else f"lag over {self.target_us} us"


@dataclass(frozen=True, slots=True)
class BurnSpans:
    """Long and short span of a burn rate rule; it is bad if both burn faster than ``rate``."""

    rate: float
    long_us: int
    short_us: int


@dataclass(frozen=True)
class AlertRule:
    """One rule of one severity.

    It fires at the ``for_windows``-th bad window with no good one between, and ends at the ``keep_windows``-th good one
    with no bad one between. ``thresholds`` has a number for each stream that the rule is for. A rule that
    ``reads_open`` reads windows that are not final, too: one of loss by what is overdue, one of lag by what is late.
    """

    name: str
    kind: AlertKind
    severity: Severity
    thresholds: Mapping[str, float]
    for_windows: int = 1
    keep_windows: int = 1
    least: int = 1
    nodes: frozenset[str] = frozenset()
    sides: tuple[str, ...] = ("in", "out")
    over_us: int = 0
    within_us: int = 0
    objective: Objective | None = None
    pairs: tuple[BurnSpans, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    runbook: str = ""
    reads_open: bool = False

    @property
    def subject(self) -> str:
        """Subject of the rule: of alerts with the same subject in one stream one notifies. An outlier has none."""
        match self.kind:
            case AlertKind.LOSS:
                return "loss"
            case AlertKind.LAG | AlertKind.END_TO_END_LAG | AlertKind.FORECAST:
                return "lag"
            case AlertKind.BURN_RATE:
                return "loss" if self.objective is None or self.objective.target_us is None else "lag"
            case AlertKind.SILENT | AlertKind.PROBE_DROPS | AlertKind.UNKNOWN:
                return "sight"
            case AlertKind.DEFERRED | AlertKind.DEFERRED_AGE:
                return "deferred"
            case _:
                return str(self.kind)

    @property
    def memory_us(self) -> int:
        """Time that an ended alert still covers others: the longest of its short spans, and at least a minimum."""
        return max([MIN_MEMORY_US, *(pair.short_us for pair in self.pairs)])

    def is_for(self, stream: str, node: str) -> bool:
        """Return whether the rule applies to this node, or without one to the stream as a whole."""
        return stream in self.thresholds and (not self.nodes or not node or node in self.nodes)


@dataclass(frozen=True)
class AlertRules:
    """All rules, their streams and the labels of these; ``dashboard`` is the base URL of links, or empty."""

    rules: tuple[AlertRule, ...]
    streams: Mapping[str, StreamConfig]
    dashboard: str = ""
    stream_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def merge_labels(self, rule: AlertRule, stream: str) -> dict[str, str]:
        """Return the labels of alerts of a rule about a stream: those of the rule count before the stream's."""
        return {**self.stream_labels.get(stream, {}), **rule.labels}

    def find_config(self, result: WindowResult) -> StreamConfig:
        """Return the version of its stream by which a window was judged."""
        return self.streams[result.stream].at(result.window_start_us)

    def has_node(self, stream: str, node: str, now_us: int) -> bool:
        """Return whether a node is of a version of the path of which some window may still be judged.

        Without a node it is about the stream, or the monitor, as a whole.
        """
        return not node or any(node in one.pathway.declared for one in self.streams[stream].find_in_force(now_us))

    @cached_property
    def by_priority(self) -> tuple[AlertRule, ...]:
        """The rules, pages first, and those that name the place more exactly before the others."""
        return tuple(sorted(self.rules, key=lambda rule: (rule.severity, KIND_ORDER.index(rule.kind), rule.name)))

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], AlertRule]:
        """The rules by name and severity."""
        return {(rule.name, rule.severity): rule for rule in self.rules}

    @cached_property
    def by_stream(self) -> Mapping[str, tuple[AlertRule, ...]]:
        """The rules of each stream, and the monitor's own."""
        return {
            name: tuple(rule for rule in self.rules if name in rule.thresholds) for name in (OWN_STREAM, *self.streams)
        }

    def reads_early(self, result: WindowResult, *, is_overdue: bool) -> bool:
        """Return whether a rule reads a window that is not final: something is or was overdue in it, or is late."""
        highest_us = max(
            (lag.p95 for node in result.nodes for lag in (node.lag_in_us, node.lag_out_us) if lag), default=0
        )
        return any(
            is_overdue if rule.kind is AlertKind.LOSS else highest_us > rule.thresholds[result.stream]
            for rule in self.by_stream.get(result.stream, ())
            if rule.reads_open
        )

    @cached_property
    def objectives(self) -> Mapping[str, tuple[Objective, ...]]:
        """The objectives of each stream, each name once."""
        return {
            name: tuple({o.name: o for r in of if (o := r.objective)}.values()) for name, of in self.by_stream.items()
        }
