"""Results of a window: the contract of the monitor, field for field the output of ``hopwatch report --json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple


class Status(StrEnum):
    """Stage in the life of a window, by the arrival watermark."""

    OPEN = "OPEN"
    PROVISIONAL = "PROVISIONAL"
    FINAL = "FINAL"
    AMENDED = "AMENDED"

    @property
    def is_final(self) -> bool:
        """Return whether the window was judged."""
        return self in (Status.FINAL, Status.AMENDED)


class Verdict(StrEnum):
    """Verdict on a final window; UNKNOWN is never shown as good or as loss."""

    SILENT = "SILENT"
    IDLE = "IDLE"
    LOSSY = "LOSSY"
    CLEAN = "CLEAN"
    UNKNOWN = "UNKNOWN"


OTHER: Final = "__other__"
"""Name in place of the streams and nodes whose series are folded into one; no stream and no node may have it."""

SECONDS: Final = 60
"""Seconds of a window."""
RECENT_SPAN_S: Final = 10
"""Length of the span of recent figures."""
MAX_RECENT_AGE_US: Final = 60_000_000
"""Age, by the wall clock, up to which recent figures are shown."""
MAX_LOST_IDS: Final = 10_000
"""Maximum number of ids that are kept of a node's loss in a window, unless the stream has another."""
MAX_OVERDUE_IDS: Final = 20
"""Maximum number of ids that are named of what is overdue at a node in a window."""

UNINFORMATIVE: Final = frozenset({None, Verdict.UNKNOWN, Verdict.SILENT})
"""Verdicts that say nothing about messages, neither delivery nor loss."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A lag in figures, µs, or a displacement in messages; the count is the number of stamps, or of messages."""

    count: int
    min: int
    p50: int
    p95: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class NodeResult:
    """One node in one window; a ratio is over what was expected or seen, null when that is empty."""

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
    lag_in_us: Quantiles | None
    lag_out_us: Quantiles | None
    inside_us: Quantiles | None
    process_duration_p95_us: int | None
    deferred: int = 0
    """Messages that the node keeps for a later try: in flight while they wait, then lost inside it."""
    inversions: int = 0
    """Pairs of messages of which one overtook the other on the way to the node; 0 where order is not counted."""
    displacement: Quantiles | None = None
    """By how many messages each was overtaken on the way to the node; none where nothing was compared."""
    overdue: int = 0
    """Messages that are missing at the node for longer than its deadline, for sure; 0 once the window is final."""
    overdue_ids: tuple[str, ...] = ()
    """Where any is overdue, the first ids of those that are missing for so long, as many as MAX_OVERDUE_IDS."""

    @property
    def expected_or_seen(self) -> int:
        """Number of messages expected or seen; an expected message that was not seen was lost or not observed."""
        return self.seen + self.lost_in_transit + self.unobserved


class LabelValueKind(StrEnum):
    """Kind of a row by label: one value, all values beyond the bound, or messages without a value."""

    VALUE = "VALUE"
    OTHER = "OTHER"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Messages of one node in one window that have a value of a label, by what the node ``said_at`` says.

    ``value`` is empty but of one value. The bounds of the loss are those of the node, as far as they hold for a part.
    ``is_new`` says that the window is the first in which the node said the value, where it said another one before.
    ``slow`` of the ``departures`` from the node have at least its p95 of lag out, and ``slow_dispersion`` is how much
    more the number of slow ones varies in time than by chance: None where it is not known. All three are None where
    another node says the value.
    """

    label: str
    said_at: str
    kind: LabelValueKind
    value: str
    expected_or_seen: int
    filtered: int
    rejected: int
    loss: int
    in_flight: int
    loss_lower: int = 0
    loss_upper: int | None = 0
    is_new: bool = False
    departures: int | None = None
    slow: int | None = None
    slow_dispersion: float | None = None


@dataclass(frozen=True, slots=True)
class LossCause:
    """Likely cause of what is missing at a node: a value of a label that the node ``said_at`` says.

    ``lost`` of ``messages`` with the value are missing, and ``other_lost`` of ``other_messages`` without it; what is in
    flight is not among them. Causes of the same ``rank`` have nearly the same missing messages; 1 is the likeliest.
    """

    rank: int
    label: str
    said_at: str
    kind: LabelValueKind
    value: str
    lost: int
    messages: int
    other_lost: int
    other_messages: int
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class LagCause:
    """Likely cause of the greatest lags of a node: a value of a label that it says itself.

    ``slow`` of the ``departures`` with the value have at least the node's p95 of lag out, and ``other_slow`` of the
    ``other_departures`` without it. Causes of the same ``rank`` have nearly the same slow departures; 1 is the
    likeliest.
    """

    rank: int
    label: str
    kind: LabelValueKind
    value: str
    slow: int
    departures: int
    other_slow: int
    other_departures: int
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class SecondCounts:
    """Messages of a node in a final window by the second of their event time, and those of them that are missing.

    Both have a number for each of the window's 60 seconds; what is in flight is in neither.
    """

    messages: tuple[int, ...]
    lost: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LossBurst:
    """Seconds of a window, from ``start_s`` up to ``end_s``, in which more messages of a node are missing than else.

    Both are 0 to 60, from the start of the window. ``lost`` of the ``messages`` with event times in them are missing,
    and ``other_lost`` of the ``other_messages`` of the window; what is in flight is not among them.
    """

    start_s: int
    end_s: int
    lost: int
    messages: int
    other_lost: int
    other_messages: int


@dataclass(frozen=True, slots=True)
class PathTime:
    """Time of messages on the way to a node or inside it, in a final window.

    ``source`` is the node that they left before, the node itself for the time inside it, and empty for the time from
    their event times to an origin. ``time_us`` has figures of the messages that were stamped on both sides. ``samples``
    of the window's ``messages`` were looked at. ``total_us`` is the part of this time in the lags at the end of the
    ``path_messages`` whose whole paths are known: over all times of the window these parts add up to those lags. Where
    not all were looked at, both are estimates.
    """

    source: str
    time_us: Quantiles
    samples: int
    messages: int
    path_messages: int
    total_us: int


@dataclass(frozen=True, slots=True)
class SpanTime:
    """Time of messages on the way to a node or inside it, over final windows; the source as in :class:`PathTime`.

    Each percentile is the greatest of any window: that of all messages together is no greater.
    """

    node: str
    source: str
    timed: int
    p50_us: int
    p95_us: int
    p99_us: int
    total_us: int


@dataclass(frozen=True, slots=True)
class SpanTimes:
    """Times of messages on a path over ``windows`` final windows, which start at ``from_us`` or later.

    ``samples``, ``messages`` and ``path_messages`` are as in :class:`PathTime`, of all windows.
    """

    from_us: int
    windows: int
    samples: int
    messages: int
    path_messages: int
    times: tuple[SpanTime, ...]


class NewValue(NamedTuple):
    """A value of a label that a node said in a window for the first time, having said another one before."""

    node: str
    value: str
    window_start_us: int


@dataclass(frozen=True, slots=True)
class ServerCount:
    """Messages that the probes of one name counted, beside the ids that probes of the same name stamped.

    What no probe of the name counted, or stamped, is null. ``missing_behind`` are messages that left the node before by
    such a probe and are missing at the one behind; the first of them are in ``missing_ids``.
    """

    probe: str
    count: int | None
    departed: int | None = None
    left_before: int | None = None
    same_before: bool | None = None
    seen_behind: int | None = None
    same_behind: bool | None = None
    missing_behind: int | None = None
    missing_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """One node that only counts in one window, beside its nearest neighbours with ids: all of it is by count.

    ``left_before`` and ``seen_behind`` are the messages by ids there, null without a neighbour. ``same_before`` and
    ``same_behind`` say whether fingerprints show the same messages, null where none can. ``lost_before_lower`` is how
    many were surely lost between the neighbour before and this node. The lags are of those messages of which packets
    told it, null where of none.
    """

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
    servers: tuple[ServerCount, ...] = ()
    lag_in_us: Quantiles | None = None
    lag_out_us: Quantiles | None = None


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One minute of one stream; ``verdict`` is null until the window is final."""

    stream: str
    window_start_us: int
    status: Status
    revision: int
    verdict: Verdict | None
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
    lag_us: Quantiles | None
    nodes: tuple[NodeResult, ...]
    deferred: int = 0
    counts: tuple[NodeCounts, ...] = ()
    overdue: int = 0


@dataclass(frozen=True, slots=True)
class Revision:
    """Changes of a window that was final by its next judgement: field, before and after; a node's begin with its name.

    ``watermark_us`` is up to which arrival the transport was read then.
    """

    stream: str
    window_start_us: int
    revision: int
    watermark_us: int
    changed: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class NodeRollUp:
    """One node over an hour or a day: the counts of its windows added, its lags from their merged digests."""

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
    lag_in_us: Quantiles | None
    lag_out_us: Quantiles | None
    inside_us: Quantiles | None
    process_duration_p95_us: int | None
    deferred: int = 0
    inversions: int = 0
    displacement: Quantiles | None = None


@dataclass(frozen=True, slots=True)
class CountsRollUp:
    """One node that only counts over an hour or a day: the counts of its windows added, all of it by count.

    ``same_before`` and ``same_behind`` are true where they are in all windows, false where they are in any, else null.
    ``lost_before_upper`` is 0 where all windows are CLEAN or IDLE, else null: counts alone give none. The lags are of
    merged digests.
    """

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
    lag_in_us: Quantiles | None = None
    lag_out_us: Quantiles | None = None


@dataclass(frozen=True, slots=True)
class RollUp:
    """An hour or a day of one stream: how many final windows are in it, how many of each verdict, and their sums.

    ``counts`` are of hours and days that are reported; pages that sum up a range show none.
    """

    stream: str
    start_us: int
    windows: int
    silent: int
    idle: int
    lossy: int
    clean: int
    unknown: int
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
    lag_us: Quantiles | None
    nodes: tuple[NodeRollUp, ...]
    deferred: int = 0
    counts: tuple[CountsRollUp, ...] = ()


def roll_up_to_json(rolled: RollUp) -> dict[str, Any]:
    """Return an hour or a day as ``report --by --json`` shows it."""
    told = asdict(rolled)
    del told["stream"]
    verdicts = {verdict.value: told.pop(verdict.value.lower()) for verdict in Verdict}
    start, windows = format_iso(told.pop("start_us")), told.pop("windows")
    lists = {name: list(told[name]) for name in ("nodes", "counts")}
    return {"start": start, "windows": windows, "verdicts": verdicts} | told | lists


def window_to_json(result: WindowResult, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a window as ``report --json`` shows it, with its nodes as they are shown there."""
    told = asdict(replace(result, nodes=()))
    del told["stream"]
    told |= {"reasons": list(result.reasons), "nodes": list(nodes)}
    return {"window_start": format_iso(told.pop("window_start_us"))} | told


def node_from_json(told: Mapping[str, Any]) -> NodeResult:
    """Return the node of a window from the form in which ``report --json`` shows it."""
    names = ("lag_in_us", "lag_out_us", "inside_us", "displacement")
    lags = {name: Quantiles(**told[name]) if told[name] else None for name in names}
    ids = {"overdue_ids": tuple(told["overdue_ids"])}
    return NodeResult(**{field.name: told[field.name] for field in fields(NodeResult)} | lags | ids)


def label_counts_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[LabelCounts, ...]:
    """Return the counts by label of a node from the form in which ``report --json`` shows them."""
    names = [field.name for field in fields(LabelCounts)]
    rows = ({name: row[name] for name in names if name in row} | {"kind": LabelValueKind(row["kind"])} for row in told)
    return tuple(LabelCounts(**row) for row in rows)


def label_counts_to_json(rows: Iterable[LabelCounts]) -> list[dict[str, Any]]:
    """Return the counts by label of a node in the form in which ``report --json`` shows them."""
    # Each value is a plain one: to copy them deeply, as asdict does, takes ten times as long.
    names = [field.name for field in fields(LabelCounts)]
    return [{name: getattr(row, name) for name in names} for row in rows]


def causes_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[LossCause, ...]:
    """Return the likely causes at a node from the form in which ``report --json`` shows them."""
    return tuple(LossCause(**dict(one) | {"kind": LabelValueKind(one["kind"])}) for one in told)


def lag_causes_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[LagCause, ...]:
    """Return the likely causes of lag at a node from the form in which ``report --json`` shows them."""
    return tuple(LagCause(**dict(one) | {"kind": LabelValueKind(one["kind"])}) for one in told)


def seconds_from_json(told: Mapping[str, Sequence[int]]) -> SecondCounts:
    """Return the counts by second of a node from the form in which ``report --json`` shows them."""
    return SecondCounts(*(tuple(told[field.name]) for field in fields(SecondCounts)))


def times_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[PathTime, ...]:
    """Return the times of a node from the form in which ``report --json`` shows them."""
    return tuple(PathTime(**dict(one) | {"time_us": Quantiles(**one["time_us"])}) for one in told)


def bursts_from_json(told: Sequence[Mapping[str, int]]) -> tuple[LossBurst, ...]:
    """Return the bursts of a node from the form in which ``report --json`` shows them."""
    return tuple(LossBurst(**one) for one in told)


def counts_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[NodeCounts, ...]:
    """Return the counting nodes of a window from the form in which ``report --json`` shows them."""
    return tuple(
        NodeCounts(
            **dict(of_node) | {"servers": _servers_from_json(of_node["servers"])} | _count_lags_from_json(of_node)
        )
        for of_node in told
    )


def counts_roll_up_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[CountsRollUp, ...]:
    """Return the counting nodes of an hour or a day from the form in which ``report --by --json`` shows them."""
    return tuple(CountsRollUp(**dict(of_node) | _count_lags_from_json(of_node)) for of_node in told)


def _count_lags_from_json(told: Mapping[str, Any]) -> dict[str, Quantiles | None]:
    """Return the lags of a counting node; none of one that was stored before they were read."""
    lags = {name: told.get(name) for name in ("lag_in_us", "lag_out_us")}
    return {name: Quantiles(**lag) if lag else None for name, lag in lags.items()}


def _servers_from_json(told: Sequence[Mapping[str, Any]]) -> tuple[ServerCount, ...]:
    return tuple(ServerCount(**dict(server) | {"missing_ids": tuple(server.get("missing_ids", ()))}) for server in told)


def format_iso(moment_us: int) -> str:
    """Return a moment in µs since 1970 as ISO 8601 UTC with Z; whole seconds without a fraction.

    A moment that is not in the years 1 to 9999, which only a broken clock tells, stays the number that it is.
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment_us)
    except OverflowError:
        return f"{moment_us} µs since 1970"
    return moment.isoformat().replace("+00:00", "Z")


InFlight = tuple[tuple[str, int], ...]
"""Messages in flight at each node of a window that has any, in the order of its nodes."""


class RecentLag(NamedTuple):
    """Percentiles of the lags of recent stamps, µs."""

    p50: int
    p95: int
    p99: int


class RecentNode(NamedTuple):
    """Recent figures of a node: stamps of the span, their lags, and the backlog: the messages in flight at the node.

    ``departed`` have passed, ``stopped`` were filtered or rejected. A node that only counts has no known backlog.
    """

    node: str
    arrived: int
    departed: int
    stopped: int
    lag_in_us: RecentLag | None
    lag_out_us: RecentLag | None
    backlog: int | None

    @property
    def arrived_per_s(self) -> float:
        """The messages stamped in, a second."""
        return self.arrived / RECENT_SPAN_S

    @property
    def departed_per_s(self) -> float:
        """The messages that passed, a second."""
        return self.departed / RECENT_SPAN_S

    @property
    def stopped_per_s(self) -> float:
        """The messages filtered or rejected, a second."""
        return self.stopped / RECENT_SPAN_S

    @property
    def backlog_s(self) -> float | None:
        """The time that the backlog takes at the pace of the span, s; None where nothing left the node."""
        if not self.backlog:
            return self.backlog
        done = self.departed + self.stopped
        return self.backlog * RECENT_SPAN_S / done if done else None


class RecentEdge(NamedTuple):
    """Recent time on the edge from ``source`` to ``node``, of so many sampled messages that arrived in the span."""

    source: str
    node: str
    messages: int
    time_us: RecentLag


class RecentFigures(NamedTuple):
    """Recent figures of a stream: those of the span of RECENT_SPAN_S up to ``through_us``, by arrival; provisional.

    ``edges`` are those of the pathway on which a sampled message was seen.
    """

    stream: str
    through_us: int
    nodes: tuple[RecentNode, ...]
    edges: tuple[RecentEdge, ...] = ()

    def is_old(self, now_us: int) -> bool:
        """Return whether the figures no longer say how things are, by the wall clock."""
        return now_us - self.through_us > MAX_RECENT_AGE_US


def recent_to_json(recent: RecentFigures) -> dict[str, Any]:
    """Return recent figures as programs read them."""
    return {
        "stream": recent.stream,
        "through": format_iso(recent.through_us),
        "span_s": RECENT_SPAN_S,
        "nodes": [_recent_node_to_json(one) for one in recent.nodes],
        "edges": [one._asdict() | {"time_us": one.time_us._asdict()} for one in recent.edges],
    }


def _recent_node_to_json(one: RecentNode) -> dict[str, Any]:
    return {
        "node": one.node,
        "arrived_per_s": one.arrived_per_s,
        "departed_per_s": one.departed_per_s,
        "stopped_per_s": one.stopped_per_s,
        "lag_in_us": one.lag_in_us and one.lag_in_us._asdict(),
        "lag_out_us": one.lag_out_us and one.lag_out_us._asdict(),
        "backlog": one.backlog,
        "backlog_s": one.backlog_s,
    }


class CommittedBatch(NamedTuple):
    """Written micro-batch: the windows that were judged, the watermark, the duration, and the records it was to read.

    These are 0 of a transport that does not plan what a batch reads. ``recent`` are the recent figures that are new.
    """

    results: tuple[WindowResult, ...]
    watermark_us: int
    took_s: float
    records: int = 0
    recent: tuple[RecentFigures, ...] = ()
