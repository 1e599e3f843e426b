"""Result types of the queries: frozen values, moments in µs since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field

from hopwatch.monitor.markers import Marker
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.results import NewValue, RollUp, SpanTimes, Status, Verdict, WindowResult
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.selftest.summary import SelftestSummary
from hopwatch.monitor.texts.read_progress import ReadProgress


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """Summary of one window of the last hour."""

    start_us: int
    status: Status
    verdict: Verdict | None
    known: int
    lost_lower: int


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """State of a stream: its newest final window, and the hour up to the newest of all windows.

    ``first_us`` and ``last_us`` are the starts of the first and the last window, None where nothing came.
    """

    stream: str
    newest: WindowResult | None
    recent_windows: tuple[WindowSummary, ...] = ()
    first_us: int | None = None
    last_us: int | None = None


@dataclass(frozen=True, slots=True)
class StreamsOverview:
    """State of all streams, up to when they were read, and how many incidents are open.

    ``selftest`` is the outcome of the self-test in the last hour, None where there never was one.
    """

    streams: tuple[StreamSummary, ...]
    reached: ReadProgress
    open_incidents: int = 0
    selftest: SelftestSummary | None = None

    @property
    def watermark_us(self) -> int | None:
        """Up to when the monitor has read; None where the store was filled once and nothing moves it."""
        return None if self.reached.is_once else self.reached.through_us

    @property
    def listed_streams(self) -> tuple[StreamSummary, ...]:
        """All streams but that of the self-test: what is lost there was lost on purpose."""
        return tuple(one for one in self.streams if one.stream != SELFTEST_STREAM)

    def find_stream(self, stream: str) -> StreamSummary | None:
        """Return how one stream stands; None of a stream that the store does not know."""
        return next((one for one in self.streams if one.stream == stream), None)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow of the pathway, by the places of its nodes; of a one-of group each message takes one."""

    source: int
    target: int
    is_required: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """The pathway that the store's windows were judged by, nodes in its order."""

    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]


def list_nodes(graph: Graph, total: RollUp | None) -> tuple[str, ...]:
    """Return the nodes of a pathway, and behind them the others that a range has."""
    return tuple(dict.fromkeys((*graph.nodes, *(node.node for node in (total.nodes if total else ())))))


@dataclass(frozen=True, slots=True)
class VersionSeam:
    """The latest minute of a range from which on a new version of the stream is valid, and the final windows beside it.

    ``before`` and ``after`` reach to the versions next to it, or to the ends of the range; None without a final window.
    """

    at_us: int
    before: RollUp | None
    after: RollUp | None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """A range of a stream: its windows, or its hours or days, in order of time, and the whole of it.

    ``whole`` is of final windows alone, its percentiles from merged digests; None without any. Steps have those of the
    nodes that were asked for, ``whole`` and ``window``, the one that is looked at, have all. ``running_us`` is the
    start of the first hour or day that is not over for the monitor; None of windows, whose status says it, and where
    all are. ``new_schemas`` are the newest schemas of the range that a node saw for the first time.
    """

    stream: str
    graph: Graph
    steps: tuple[WindowResult, ...] | tuple[RollUp, ...]
    step_us: int
    total: RollUp | None
    findings: tuple[OutlierFinding, ...] = field(default=())
    window: WindowResult | None = None
    running_from_us: int | None = None
    new_schemas: tuple[NewValue, ...] = ()
    markers: tuple[Marker, ...] = ()
    seam: VersionSeam | None = None
    times: SpanTimes | None = None
    """Times on the path of the window that is looked at, else of the range; None where nothing was timed."""
    has_digests: bool = True
    """Whether lags of the total are known: digests of a part of an hour in the range may be gone."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of the pathway in its order, and behind them those that only earlier versions in the range have."""
        return list_nodes(self.graph, self.total)
