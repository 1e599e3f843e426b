"""Counters of windows: each window adds the highest value of its revisions, once.

Counters only ever grow: a message that was called lost stays counted when it turns up, and counts as recovered too.
They begin at 0 with the process, which ``rate()`` and ``increase()`` know how to read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.results import UNINFORMATIVE, NodeResult, Verdict, WindowResult
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.metrics.metric import Metric

Int64s = NDArray[np.int64]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CounterColumn(Generic[_Result]):
    """One counter of a stream or a node: the metric, its last labels, and what a window adds to it."""

    metric: Metric
    labels: tuple[str, ...]
    of: Callable[[_Result], int]


def _count_verdict(verdict: Verdict) -> Callable[[WindowResult], int]:
    return lambda result: int(result.verdict is verdict)


STREAM_COLUMNS: Final[tuple[CounterColumn[WindowResult], ...]] = (
    CounterColumn(catalog.MESSAGES, (), lambda result: result.known),
    CounterColumn(catalog.JUDGED, (), lambda result: 0 if result.verdict in UNINFORMATIVE else result.known),
    CounterColumn(catalog.LOST, (), lambda result: result.lost_lower),
    CounterColumn(catalog.STOPPED, ("filtered",), lambda result: result.filtered),
    CounterColumn(catalog.STOPPED, ("rejected",), lambda result: result.rejected),
    CounterColumn(catalog.RECOVERED, (), lambda result: result.recovered),
    *(CounterColumn(catalog.WINDOWS, (verdict.value,), _count_verdict(verdict)) for verdict in Verdict),
)
NODE_COLUMNS: Final[tuple[CounterColumn[NodeResult], ...]] = (
    CounterColumn(catalog.NODE_MESSAGES, (), lambda node: node.expected_or_seen),
    CounterColumn(catalog.NODE_LOST, (), lambda node: node.loss_lower),
    CounterColumn(catalog.NODE_DUPLICATES, ("in",), lambda node: node.duplicates_in),
    CounterColumn(catalog.NODE_DUPLICATES, ("out",), lambda node: node.duplicates_out),
    CounterColumn(catalog.NODE_NEGATIVE_LAGS, (), lambda node: node.lag_negative),
    CounterColumn(catalog.NODE_DROPPED, (), lambda node: node.dropped),
    CounterColumn(catalog.NODE_UNOBSERVED, (), lambda node: node.unobserved),
)


class CounterTotals(NamedTuple):
    """The counters of one stream, (columns of a stream), and of its nodes, (nodes, columns of a node)."""

    stream: Int64s
    nodes: Int64s


@dataclass(slots=True)
class WindowCounters:
    """The counters of all streams, and what each window that can still be judged has added to them.

    ``judged_before`` are windows, by stream and start in µs, that were counted before this process began: only what is
    added to them from here on counts.
    """

    rules: Mapping[str, StreamConfig]
    judged_before: Collection[tuple[str, int]] = ()
    totals: dict[str, CounterTotals] = field(init=False)
    _said: dict[tuple[str, int], CounterTotals] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin at 0, so that a counter is there before its first window."""
        self.totals = {stream: _zero_totals(len(of.known_nodes)) for stream, of in self.rules.items()}
        self.judged_before = set(self.judged_before)

    def count(self, results: Iterable[WindowResult], watermark_us: int) -> None:
        """Count windows as they were judged, those that are final; forget those that cannot be judged again."""
        for result in results:
            if result.status.is_final and result.stream in self.totals:
                self._count(result)
        for stream, start_us in [key for key in self._said if self._until_us(*key) < watermark_us]:
            del self._said[stream, start_us]

    def change_rules(self, rules: Mapping[str, StreamConfig]) -> None:
        """Go on with other versions of the streams: counts stay with their nodes, by their names."""
        kept = {
            (stream, start_us): _move_nodes(counts, self.rules[stream].known_nodes, rules[stream].known_nodes)
            for (stream, start_us), counts in self._said.items()
            if stream in rules
        }
        totals = {stream: _zero_totals(len(of.known_nodes)) for stream, of in rules.items()}
        for stream in totals.keys() & self.totals.keys():
            nodes = self.rules[stream].known_nodes, rules[stream].known_nodes
            totals[stream] = _move_nodes(self.totals[stream], *nodes)
        self.rules, self.totals, self._said = rules, totals, kept

    def _count(self, result: WindowResult) -> None:
        key = result.stream, result.window_start_us
        says = _count_window(result, self.rules[result.stream].known_nodes)
        total = self.totals[result.stream]
        before = self._said.get(key) or (says if key in self.judged_before else _zero_totals(len(says.nodes)))
        # Counts that are kept as unsigned would make floats of signed ones.
        before = CounterTotals(*(part.astype(np.int64) for part in before))
        most = CounterTotals(*(np.maximum(*pair) for pair in zip(before, says, strict=True)))
        for sums, now, then in zip(total, most, before, strict=True):
            np.add(sums, now - then, out=sums)
        self._said[key] = CounterTotals(*map(_narrow, most))

    def _until_us(self, stream: str, start_us: int) -> int:
        return self.rules[stream].at(start_us).terms.judged_until_us(start_us)


def _zero_totals(nodes: int) -> CounterTotals:
    return CounterTotals(np.zeros(len(STREAM_COLUMNS), np.int64), np.zeros((nodes, len(NODE_COLUMNS)), np.int64))


def _move_nodes(counts: CounterTotals, before: Sequence[str], now: Sequence[str]) -> CounterTotals:
    """Return counts of some nodes in the order of others; one that was not there has counted nothing."""
    moved = np.zeros((len(now), counts.nodes.shape[1]), counts.nodes.dtype)
    for place, node in enumerate(now):
        if node in before:
            moved[place] = counts.nodes[before.index(node)]
    return CounterTotals(counts.stream, moved)


def _count_window(result: WindowResult, nodes: Sequence[str]) -> CounterTotals:
    """Return the counts of a window; a node that it does not have counts nothing."""
    counts = _zero_totals(len(nodes))
    counts.stream[:] = [column.of(result) for column in STREAM_COLUMNS]
    for node in result.nodes:
        counts.nodes[nodes.index(node.node)] = [column.of(node) for column in NODE_COLUMNS]
    return counts


def _narrow(counts: Int64s) -> Int64s:
    """Return the counts in as few bytes as they fit: an hour of windows is kept, of each node."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
