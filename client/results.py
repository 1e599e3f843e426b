"""Results as the query API has them: typed records of what its JSON says.

docs/SEMANTICS.md defines each figure. A ratio is null where there is nothing to divide by, an upper bound where there
is none; moments are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class LagFigures:
    """A lag in figures, µs, or a displacement in messages."""

    count: int
    min: int
    p50: int
    p95: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class SlowMessage:
    """One of the slowest messages of a node."""

    id: str
    lag_out_us: int


@dataclass(frozen=True, slots=True)
class LabelFigures:
    """Messages of a node in a window that have a value of a label."""

    label: str
    said_at: str
    kind: str
    value: str
    expected_or_seen: int
    filtered: int
    rejected: int
    loss: int
    in_flight: int
    loss_lower: int
    loss_upper: int | None
    is_new: bool
    departures: int | None
    slow: int | None
    slow_dispersion: float | None


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """Likely cause of what is missing at a node: a value of a label, and the messages with it and without it."""

    rank: int
    label: str
    said_at: str
    kind: str
    value: str
    lost: int
    messages: int
    other_lost: int
    other_messages: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class LagCauseFigures:
    """Likely cause of the greatest lags of a node: a value of a label, and the departures with it and without it."""

    rank: int
    label: str
    kind: str
    value: str
    slow: int
    departures: int
    other_slow: int
    other_departures: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class SecondFigures:
    """Messages by the second of their event time, one number for each of 60, and those of them that are missing."""

    messages: tuple[int, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BurstFigures:
    """Seconds of a window, from ``start_s`` up to ``end_s``, in which more messages are missing than in the others."""

    start_s: int
    end_s: int
    lost: int
    messages: int
    other_lost: int
    other_messages: int


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """Time of messages on the way to a node or inside it, µs; the source says from where on.

    It is the node before, the node itself for the time inside it, and empty for the time from event times to an origin.
    ``samples`` of the window's ``messages`` were looked at. ``total_us`` is the part of it in the lags at the end of
    the ``path_messages`` whose whole paths are known, an estimate where not all were looked at.
    """

    source: str
    time_us: LagFigures
    samples: int
    messages: int
    path_messages: int
    total_us: int


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A node in a window; ``lost_ids`` are the first 100 that are missing there."""

    node: str
    expected: int
    seen: int
    arrived: int
    departed: int
    filtered: int
    rejected: int
    lost_in_transit: int
    lost_inside: int
    lost_after: int
    loss: int
    loss_lower: int
    loss_upper: int | None
    loss_ratio: float | None
    in_flight: int
    unobserved: int
    orphans: int
    duplicates_in: int
    duplicates_out: int
    lag_negative: int
    dropped: int
    coverage: float | None
    lag_in_us: LagFigures | None
    lag_out_us: LagFigures | None
    inside_us: LagFigures | None
    process_duration_p95_us: int | None
    deferred: int
    inversions: int
    displacement: LagFigures | None
    overdue: int
    overdue_ids: tuple[str, ...]
    lost_ids: tuple[str, ...]
    slowest: tuple[SlowMessage, ...] | None
    labels: tuple[LabelFigures, ...]
    causes: tuple[CauseFigures, ...]
    lag_causes: tuple[LagCauseFigures, ...]
    seconds: SecondFigures | None
    bursts: tuple[BurstFigures, ...]
    times: tuple[TimeFigures, ...]


@dataclass(frozen=True, slots=True)
class CountOfServer:
    """Messages that the probes of one name counted, beside the ids that probes of the same name stamped.

    What no probe of the name counted, or stamped, is null; the first ids of ``missing_behind`` are in ``missing_ids``.
    """

    probe: str
    count: int | None
    departed: int | None
    left_before: int | None
    same_before: bool | None
    seen_behind: int | None
    same_behind: bool | None
    missing_behind: int | None
    missing_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CountingNodeFigures:
    """A node that only counts, in a window; lags are of the messages whose lag was told."""

    node: str
    arrived: int
    departed: int
    bytes: int
    dropped: int
    coverage: float | None
    before: str | None
    left_before: int | None
    same_before: bool | None
    lost_before_lower: int
    behind: str | None
    seen_behind: int | None
    same_behind: bool | None
    servers: tuple[CountOfServer, ...]
    lag_in_us: LagFigures | None = None
    lag_out_us: LagFigures | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A minute of a stream; ``verdict`` is null until it is final, ``revisions`` are there where asked for."""

    window_start: str
    status: str
    revision: int
    verdict: str | None
    reasons: tuple[str, ...]
    known: int
    delivered: int
    filtered: int
    rejected: int
    lost: int
    partial: int
    lost_lower: int
    lost_upper: int | None
    loss_ratio: float | None
    in_flight: int
    recovered: int
    lag_us: LagFigures | None
    nodes: tuple[NodeFigures, ...]
    deferred: int
    counts: tuple[CountingNodeFigures, ...]
    overdue: int
    revisions: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a stream by time; ``next`` is the cursor of what follows."""

    stream: str
    windows: tuple[Window, ...]
    next: str | None
    read_through: str | None


@dataclass(frozen=True, slots=True)
class NodeOfWindow(NodeFigures):
    """A node in a window, with what the window is."""

    window_start: str
    status: str
    verdict: str | None


@dataclass(frozen=True, slots=True)
class NodeWindows:
    """A node in the windows of its stream, by time."""

    stream: str
    node: str
    windows: tuple[NodeOfWindow, ...]
    next: str | None
    read_through: str | None


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A node over an hour or a day."""

    node: str
    expected: int
    seen: int
    arrived: int
    departed: int
    filtered: int
    rejected: int
    lost_in_transit: int
    lost_inside: int
    lost_after: int
    loss: int
    loss_lower: int
    loss_upper: int | None
    loss_ratio: float | None
    in_flight: int
    unobserved: int
    orphans: int
    duplicates_in: int
    duplicates_out: int
    lag_negative: int
    dropped: int
    lag_in_us: LagFigures | None
    lag_out_us: LagFigures | None
    inside_us: LagFigures | None
    process_duration_p95_us: int | None
    deferred: int
    inversions: int
    displacement: LagFigures | None


@dataclass(frozen=True, slots=True)
class CountingNodeSpan:
    """A node that only counts, over an hour or a day."""

    node: str
    arrived: int
    departed: int
    bytes: int
    dropped: int
    before: str | None
    left_before: int | None
    same_before: bool | None
    lost_before_lower: int
    lost_before_upper: int | None
    behind: str | None
    seen_behind: int | None
    same_behind: bool | None
    lag_in_us: LagFigures | None = None
    lag_out_us: LagFigures | None = None


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """An hour or a day of a stream; ``verdicts`` is how many of its windows have each."""

    start: str
    windows: int
    verdicts: dict[str, int]
    known: int
    delivered: int
    filtered: int
    rejected: int
    lost: int
    partial: int
    lost_lower: int
    lost_upper: int | None
    loss_ratio: float | None
    in_flight: int
    recovered: int
    lag_us: LagFigures | None
    nodes: tuple[NodeSpan, ...]
    deferred: int
    counts: tuple[CountingNodeSpan, ...]


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of a stream by time."""

    stream: str
    hours: tuple[SpanFigures, ...]
    next: str | None
    read_through: str | None


@dataclass(frozen=True, slots=True)
class Days:
    """Days of a stream by time, UTC."""

    stream: str
    days: tuple[SpanFigures, ...]
    next: str | None
    read_through: str | None


@dataclass(frozen=True, slots=True)
class ListedStream:
    """A stream, its nodes, its first and last window, and its labels."""

    stream: str
    nodes: tuple[str, ...]
    first_window: str | None
    last_window: str | None
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Streams:
    """All streams that may be read."""

    streams: tuple[ListedStream, ...]
    read_through: str | None


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Some of the ids that are missing at a node in a window, of ``total`` that the store keeps."""

    stream: str
    window_start: str
    node: str
    total: int
    ids: tuple[str, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class MessageJourney:
    """Places where a message is missing, and its stamps that are kept; as ``hopwatch find --json`` has it."""

    id: str
    stamps: tuple[dict[str, Any], ...]
    lost: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Incidents:
    """Open incidents, pending alerts, heartbeats and silences; as ``hopwatch alerts list --json`` has them."""

    incidents: tuple[dict[str, Any], ...]
    pending: tuple[dict[str, Any], ...]
    heartbeats: tuple[dict[str, Any], ...]
    silences: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Outliers:
    """The newest outliers, of ``total``; each as ``hopwatch outliers list --json`` has it."""

    total: int
    outliers: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class SetMarker:
    """Moment that somebody marked, such as a deploy; a null stream is all streams."""

    number: int
    at: str
    stream: str | None
    text: str
    labels: dict[str, str]
    by: str


@dataclass(frozen=True, slots=True)
class Markers:
    """Markers of a range, by time."""

    markers: tuple[SetMarker, ...]


@dataclass(frozen=True, slots=True)
class ClockBounds:
    """Bounds of how far the clock of a probe is ahead of the brokers' clock, µs; below 0 it is behind."""

    low_us: int
    high_us: int


@dataclass(frozen=True, slots=True)
class ProbeState:
    """A probe instance: its state, its moments, and its counts since its start.

    ``clock_offset`` is None where its clock was not held against the brokers', as of a probe that writes into a spool.
    """

    stream: str
    node: str
    probe: str
    state: str
    epoch: str
    first_arrival: str
    last_arrival: str
    reported_through: str
    said_bye: bool
    skew_us: int
    clock_offset: ClockBounds | None
    dropped: int
    missing_batches: int
    batches: int
    duplicate_batches: int
    observations: int
    duplicate_observations: int
    too_late: int
    implausible: int


@dataclass(frozen=True, slots=True)
class Probes:
    """Some of the probe instances, of ``total``; ``counts`` are of all by state."""

    probes: tuple[ProbeState, ...]
    counts: dict[str, int]
    total: int
    next: str | None


@dataclass(frozen=True, slots=True)
class MonitorAccounts:
    """The monitor's own accounts; ``undeclared`` and ``aged_out`` are empty where there are none."""

    records: int
    batches: int
    duplicate_batches: int
    observations: int
    too_late: int
    implausible: int
    set_aside: dict[str, int]
    undeclared: tuple[dict[str, Any], ...] = ()
    aged_out: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class BlockedWindows:
    """Adjacent windows that one obstacle keeps from being complete; ``text`` says it in a line."""

    obstacle: str
    since: str
    to: str
    windows: int
    earliest: str | None
    amendable_until: str
    is_lasting: bool
    messages: int
    reasons: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class OpenAccount:
    """A probe instance that has not told all of the windows that block."""

    node: str
    probe: str
    epoch: str
    reported_through: str
    missing_batches: int
    dropped: int
    windows: int
    text: str


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """Records of a partition that had aged out before they were read."""

    partition: str
    from_offset: int
    to_offset: int
    after: str
    before: str
    text: str


@dataclass(frozen=True, slots=True)
class SpanCompleteness:
    """Answer to a contract: ``state`` is complete, pending, or failed, which only an amendment can change.

    JSON has the start of the span, too, as ``from``, which is a word of Python.
    """

    contract: str
    stream: str
    nodes: tuple[str, ...]
    state: str
    until: str
    known: int
    lost_lower: int
    lost_upper: int | None
    in_flight: int
    revisions: int
    earliest: str | None
    amendable_until: str
    read_through: str | None
    blocked: tuple[BlockedWindows, ...]
    probes: tuple[OpenAccount, ...]
    holes: tuple[UnreadRecords, ...]


@dataclass(frozen=True, slots=True)
class DifferenceFigures:
    """Difference between the bad shares of a candidate and of its baseline, with an interval of 95 %.

    ``bad`` of ``messages`` of the candidate and ``other_bad`` of ``other_messages`` of the baseline are those of the
    windows in which both have messages.
    """

    windows: int
    bad: int
    messages: int
    other_bad: int
    other_messages: int
    share: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ComparedShare:
    """Comparison of what is lost, or slow: ``verdict`` is WORSE, NOT_WORSE or UNKNOWN.

    ``unknown`` are messages of the candidate in windows that do not tell what is lost.
    """

    verdict: str
    max_increase: float
    unknown: int
    difference: DifferenceFigures | None


@dataclass(frozen=True, slots=True)
class ComparisonFigures:
    """Comparison of a new version at a node with another one, or with all others if ``baseline`` is None.

    JSON has the start of its first window, too, as ``from``, which is a word of Python. ``slow`` is None where no
    departure of the candidate is stamped.
    """

    stream: str
    node: str
    label: str
    candidate: str
    baseline: str | None
    to: str | None
    windows: int
    verdict: str
    loss: ComparedShare
    slow: ComparedShare | None


@dataclass(frozen=True, slots=True)
class RecentPercentiles:
    """Percentiles of recent lags, µs."""

    p50: int
    p95: int
    p99: int


@dataclass(frozen=True, slots=True)
class RecentNodeFigures:
    """Recent figures of a node: throughput, lag, and the messages that it has yet to pass on.

    A lag is None where nothing was stamped, ``backlog`` of a node that only counts, ``backlog_s`` where nothing leaves
    the node.
    """

    node: str
    arrived_per_s: float
    departed_per_s: float
    stopped_per_s: float
    lag_in_us: RecentPercentiles | None
    lag_out_us: RecentPercentiles | None
    backlog: int | None
    backlog_s: float | None


@dataclass(frozen=True, slots=True)
class RecentEdgeTime:
    """Recent time on the edge from ``source`` to ``node``, of so many sampled messages that arrived in the span."""

    source: str
    node: str
    messages: int
    time_us: RecentPercentiles


@dataclass(frozen=True, slots=True)
class RecentStream:
    """Recent figures of a stream: those of the last ``span_s`` seconds of arrival before ``through``; provisional.

    ``edges`` are those on which a sampled message was seen.
    """

    stream: str
    through: str
    span_s: int
    nodes: tuple[RecentNodeFigures, ...]
    edges: tuple[RecentEdgeTime, ...] = ()
