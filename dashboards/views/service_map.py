"""Service map: the nodes of all streams, each name once, and what flows between them.

A *service* is what the pathways of one or more streams call by one name. Its figures are those of its nodes in the
newest final window of each stream, and recent ones where there are any; numbers of messages add up, percentiles never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hopwatch.dashboards.queries.models import Graph, StreamsOverview, StreamSummary
from hopwatch.dashboards.queries.service_map import StreamGraphs
from hopwatch.dashboards.views import overview
from hopwatch.dashboards.views.overview import StreamRow
from hopwatch.display import loss, texts
from hopwatch.display.colours import NO_DATA, VERDICT_ORDER, Mark, select_mark
from hopwatch.display.recent import format_rate
from hopwatch.display.step_marks import mark_node
from hopwatch.monitor.results import NodeResult, RecentEdge, RecentFigures, RecentNode

MAX_SERVICES: Final = 300
"""Services that are drawn at most, those of the streams that need a person first."""
_SEVERITY: Final = {select_mark(verdict): place for place, verdict in enumerate(VERDICT_ORDER)}


@dataclass(frozen=True, slots=True)
class ServiceNode:
    """A service in one stream: its node in the newest final window, and what passes it now; None of what is not known.

    ``age`` says how long ago the window ended, ``is_old`` that this is too long ago. ``edges`` are those to it and from
    it on which messages were timed in the last seconds.
    """

    stream: str
    mark: Mark
    window_us: int | None
    age: str
    is_old: bool
    messages: int | None
    result: NodeResult | None
    recent: RecentNode | None
    edges: tuple[RecentEdge, ...] = ()

    @property
    def lag_p95_us(self) -> float | None:
        """Return the p95 of lag now, or of the window: of what left the service, or of what came where nothing left."""
        lag = None
        for one in (self.recent, self.result):
            lag = lag or (one and (one.lag_out_us or one.lag_in_us))
        return lag.p95 if lag else None


@dataclass(frozen=True, slots=True)
class Service:
    """A service, and its nodes by stream; ``rate``, ``lag`` and ``lost`` are their figures in short, or empty."""

    name: str
    mark: Mark
    nodes: tuple[ServiceNode, ...]
    rate: str
    lag: str
    lost: str
    is_lossy: bool

    @property
    def old(self) -> str:
        """Return the age of the newest final window of one of its streams that is too old; empty without one."""
        return next((f"⚠ {node.age} ago" for node in self.nodes if node.is_old), "")

    @property
    def worst_first(self) -> tuple[ServiceNode, ...]:
        """Return the nodes, the worst first."""
        return tuple(sorted(self.nodes, key=lambda node: _rank(node.mark)))

    @property
    def description(self) -> str:
        """Return the service in words."""
        streams = f"{len(self.nodes):,} {'stream' if len(self.nodes) == 1 else 'streams'}"
        figures = (f"{self.name}: {self.mark.word}", streams, self.rate, self.lag, self.lost, self.old)
        return ", ".join(filter(None, figures))


@dataclass(frozen=True, slots=True)
class ServiceConnection:
    """Flow from one service to another, by their places, with the number of messages missing on the way.

    ``is_required`` says whether some stream has messages that must all take it.
    """

    source: int
    target: int
    is_required: bool
    missing: int
    is_lossy: bool


@dataclass(frozen=True, slots=True)
class ServiceMap:
    """The services of some streams, and their connections; so many streams had no room."""

    services: tuple[Service, ...]
    connections: tuple[ServiceConnection, ...]
    streams_left_out: int

    def find_service(self, name: str) -> Service | None:
        """Return a service by its name, None of one that is not on the map."""
        return next((one for one in self.services if one.name == name), None)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Number of missing messages, and the bounds of the number of lost ones."""

    missing: int
    lower: int
    upper: int | None

    @classmethod
    def add_up(cls, parts: Iterable[tuple[int, int, int | None]]) -> _Bounds:
        """Return the sum over streams, whose messages are apart; without an upper bound of each there is none."""
        each = list(parts)
        uppers = [upper for _, _, upper in each if upper is not None]
        upper = sum(uppers) if len(uppers) == len(each) else None
        return cls(sum(missing for missing, _, _ in each), sum(lower for _, lower, _ in each), upper)

    @property
    def label(self) -> str:
        """Return the number of lost messages in short; empty where nothing is missing."""
        return loss.format_missing(self.missing, self.lower, self.upper) if self.missing or self.lower else ""


def build_map(standing: StreamsOverview, known: StreamGraphs, now_us: int, stream: str = "") -> ServiceMap:
    """Return the map of all streams, or of one.

    The stream of the self-test is on none, unless it is the one.
    """
    rows = {row.stream: row for row in overview.build_rows(standing, now_us)}
    named = {one.stream: one for one in standing.streams}
    wanted = [named[name] for name in ([stream] if stream else rows) if name in named]
    streams, left_out = _select_streams(wanted, known)
    fresh = [known.recent[one.stream] for one in streams if one.stream in known.recent]
    recent = {one.stream: one for one in fresh if not one.is_old(now_us)}
    nodes: dict[str, list[ServiceNode]] = {}
    for one in streams:
        row = rows.get(one.stream)
        for name in known.graphs[one.stream].nodes:
            nodes.setdefault(name, []).append(_build_node(one, name, row, recent.get(one.stream)))
    services = tuple(_build_service(name, of_service) for name, of_service in nodes.items())
    places = {name: place for place, name in enumerate(nodes)}
    return ServiceMap(services, _build_connections(streams, known, places), left_out)


def _select_streams(wanted: Iterable[StreamSummary], known: StreamGraphs) -> tuple[list[StreamSummary], int]:
    """Return the streams that have room, in order, and the number of those without."""
    names: set[str] = set()
    chosen: list[StreamSummary] = []
    left_out = 0
    for one in wanted:
        nodes = known.graphs.get(one.stream, Graph((), ())).nodes
        if not nodes:
            continue
        if chosen and len(names.union(nodes)) > MAX_SERVICES:
            left_out += 1
            continue
        names.update(nodes)
        chosen.append(one)
    return chosen, left_out


def _build_node(one: StreamSummary, name: str, row: StreamRow | None, recent: RecentFigures | None) -> ServiceNode:
    """Return a node of a stream; ``row`` is the stream's in the overview, if it is there."""
    now = next((node for node in recent.nodes if node.node == name), None) if recent else None
    edges = tuple(edge for edge in recent.edges if name in (edge.source, edge.node)) if recent else ()
    if one.newest is None:
        return ServiceNode(
            one.stream, NO_DATA, None, "", is_old=False, messages=None, result=None, recent=now, edges=edges
        )
    at_us = one.newest.window_start_us
    result = next((each for each in one.newest.nodes if each.node == name), None)
    mark = mark_node(result, is_final=True).mark if result else NO_DATA
    age, is_old = (row.age, row.is_old) if row else ("", False)
    return ServiceNode(one.stream, mark, at_us, age, is_old, result.seen if result else None, result, now, edges)


def _build_service(name: str, nodes: Sequence[ServiceNode]) -> Service:
    """Return a service as the worst of its nodes, with what adds up of their figures."""
    mark = min((node.mark for node in nodes), key=_rank)
    results = [node.result for node in nodes if node.result]
    lost = _Bounds.add_up((one.loss, one.loss_lower, one.loss_upper) for one in results)
    # What is of now is of all streams, or nothing is.
    told = nodes if all(node.recent for node in nodes) else [replace(node, recent=None) for node in nodes]
    return Service(name, mark, tuple(nodes), _format_rate(told), _format_lags(told), lost.label, lost.lower > 0)


def _format_rate(nodes: Sequence[ServiceNode]) -> str:
    """Return the messages a second now, or a minute where nothing says how it is now."""
    recent = [max(node.recent.arrived_per_s, node.recent.departed_per_s) for node in nodes if node.recent]
    if recent:
        return f"{format_rate(sum(recent))}/s"
    counted = [node.messages for node in nodes if node.messages is not None]
    return f"{texts.format_count(sum(counted))}/min" if counted else ""


def _format_lags(nodes: Sequence[ServiceNode]) -> str:
    """Return the p95 of lag: of several streams that of none is greater, as percentiles do not add up."""
    lags_us = [node.lag_p95_us for node in nodes if node.lag_p95_us is not None]
    if not lags_us:
        return ""
    return f"p95 {'≤ ' if len(lags_us) > 1 else ''}{texts.format_lag(max(lags_us))}"


def _build_connections(
    streams: Iterable[StreamSummary], known: StreamGraphs, places: dict[str, int]
) -> tuple[ServiceConnection, ...]:
    """Return the edges of all pathways, each once; on edges that everything must take, with what is missing there."""
    required: dict[tuple[int, int], list[tuple[int, int, int | None]]] = {}
    for one in streams:
        graph = known.graphs[one.stream]
        results = {node.node: node for node in one.newest.nodes} if one.newest else {}
        for edge in graph.edges:
            source, target = graph.nodes[edge.source], graph.nodes[edge.target]
            parts = required.setdefault((places[source], places[target]), [])
            if edge.is_required:
                node = results.get(target)
                missing = node.lost_in_transit if node and source in results else 0
                parts.append((missing, *(loss.bound_part(node, "lost_in_transit") if node and missing else (0, 0))))
    return tuple(
        ServiceConnection(*pair, bool(parts), lost.missing, lost.lower > 0)
        for pair, parts in required.items()
        for lost in (_Bounds.add_up(parts),)
    )


def _rank(mark: Mark) -> int:
    """Return how soon a mark is to be looked at; those that are no verdict come last."""
    return _SEVERITY.get(mark, len(_SEVERITY))
