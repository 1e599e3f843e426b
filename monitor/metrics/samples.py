"""Samples of the page of metrics, as a pure function of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeVar

from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.metrics.counters import NODE_COLUMNS, STREAM_COLUMNS
from hopwatch.monitor.metrics.snapshot import MetricsSnapshot
from hopwatch.monitor.results import (
    OTHER,
    UNINFORMATIVE,
    NodeResult,
    Quantiles,
    RecentFigures,
    RecentLag,
    RecentNode,
    Verdict,
    WindowResult,
)
from hopwatch.monitor.selftest.summary import SelftestSummary
from hopwatch.probes.metrics.metric import MAX_OPEN_SERIES, Metric, Sample

RECENT_US: Final = 600_000_000
"""For how long after it was due to be judged the newest final window is shown, by the watermark."""
_US: Final = 1e6
_Labels = TypeVar("_Labels", bound=tuple[str, ...])
_FIGURES: Final = ("p50", "p95", "p99")


def build_samples(known: MetricsSnapshot) -> Iterator[Sample]:
    """Yield all samples, at most as many as the plan has room for."""
    recent = {stream: result for stream, result in known.newest.items() if _is_recent(known, result)}
    yield from _stream_samples(known, recent)
    yield from _all_node_samples(known, recent)
    yield from _batch_samples(known)
    yield from _store_samples(known)
    verdicts = [result.verdict for result in recent.values()]
    for verdict in Verdict:
        yield Sample(catalog.STREAMS, (verdict.value,), verdicts.count(verdict))
    yield Sample(catalog.STREAMS, ("none",), len(known.rules) - len(verdicts))
    yield Sample(catalog.FOLDED, (), known.plan.folded_series)


def _is_recent(known: MetricsSnapshot, result: WindowResult) -> bool:
    """Return whether a window still says how things are: a stream that falls silent has no windows any more."""
    if result.stream not in known.rules:
        return False
    terms = known.rules[result.stream].at(result.window_start_us).terms
    due_us = terms.final_at_us(result.window_start_us)
    return known.watermark_us <= due_us + RECENT_US


def _stream_samples(known: MetricsSnapshot, recent: Mapping[str, WindowResult]) -> Iterator[Sample]:
    shown = [stream for stream in known.rules if stream in known.plan.streams]
    folded = [stream for stream in known.rules if stream not in known.plan.streams]
    for stream in shown:
        for place, column in enumerate(STREAM_COLUMNS):
            yield Sample(column.metric, (stream, *column.labels), int(known.totals[stream].stream[place]))
        if stream in known.newest:
            yield Sample(catalog.NEWEST, (stream,), known.newest[stream].window_start_us / _US)
        if stream in recent:
            yield from _window_samples(stream, recent[stream])
        if stream in known.recent:
            yield Sample(catalog.RECENT_THROUGH, (stream,), known.recent[stream].through_us / _US)
        yield from _overdue_samples(known, stream, [stream])
    if folded:
        for place, column in enumerate(STREAM_COLUMNS):
            total = sum(int(known.totals[stream].stream[place]) for stream in folded)
            yield Sample(column.metric, (OTHER, *column.labels), total)
        yield from _overdue_samples(known, OTHER, folded)
        windows = [recent[stream] for stream in folded if stream in recent]
        yield from _bound_samples(catalog.LOSS, (OTHER,), [*map(_loss_bounds, windows)])
        if windows:
            yield Sample(catalog.IN_FLIGHT, (OTHER,), sum(result.in_flight for result in windows))
            yield Sample(catalog.DEFERRED, (OTHER,), sum(result.deferred for result in windows))
            yield Sample(catalog.PARTIAL, (OTHER,), sum(result.partial for result in windows))


def _window_samples(stream: str, result: WindowResult) -> Iterator[Sample]:
    yield from _lag_samples(catalog.END_TO_END_LAG, (stream,), result.lag_us)
    yield from _bound_samples(catalog.LOSS, (stream,), [_loss_bounds(result)])
    for verdict in Verdict:
        yield Sample(catalog.VERDICTS, (stream, verdict.value), int(result.verdict is verdict))
    yield Sample(catalog.IN_FLIGHT, (stream,), result.in_flight)
    yield Sample(catalog.DEFERRED, (stream,), result.deferred)
    yield Sample(catalog.PARTIAL, (stream,), result.partial)


def _overdue_samples(known: MetricsSnapshot, name: str, streams: Sequence[str]) -> Iterator[Sample]:
    """Yield what is overdue in some streams, unless none of them has a deadline."""
    if any(known.rules[stream].deadlines for stream in streams):
        yield Sample(catalog.OVERDUE, (name,), sum(known.overdue.get(stream, 0) for stream in streams))


def _loss_bounds(result: WindowResult) -> tuple[int, int | None, int]:
    """Return the bounds of a stream's loss and what it is out of; UNKNOWN bounds nothing, whatever some probes say."""
    upper = None if result.verdict in UNINFORMATIVE else result.lost_upper
    return result.lost_lower, upper, result.known


def _all_node_samples(known: MetricsSnapshot, recent: Mapping[str, WindowResult]) -> Iterator[Sample]:
    others: list[NodeResult] = []
    other_totals = [0] * len(NODE_COLUMNS)
    for stream, of_stream in known.rules.items():
        named = known.plan.nodes.get(stream, frozenset())
        rows = known.totals[stream].nodes.tolist()
        for node, row in zip(of_stream.known_nodes, rows, strict=True):
            if node in named:
                for column, total in zip(NODE_COLUMNS, row, strict=True):
                    yield Sample(column.metric, (stream, node, *column.labels), total)
            else:
                other_totals = [*map(sum, zip(other_totals, row, strict=True))]
        for result in recent[stream].nodes if stream in recent else ():
            if result.node in named:
                yield from _node_samples((stream, result.node), result)
            else:
                others.append(result)
        if stream in known.recent:
            yield from _all_recent_samples(known.recent[stream], named)
    if known.plan.folded_series:
        yield from _folded_node_samples(others, other_totals)


def _node_samples(place: tuple[str, str], result: NodeResult) -> Iterator[Sample]:
    for stamp, lag in (("in", result.lag_in_us), ("out", result.lag_out_us), ("inside", result.inside_us)):
        yield from _lag_samples(catalog.NODE_LAG, (*place, stamp), lag)
    yield from _bound_samples(
        catalog.NODE_LOSS, place, [(result.loss_lower, result.loss_upper, result.expected_or_seen)]
    )
    if result.coverage is not None:
        yield Sample(catalog.NODE_COVERAGE, place, result.coverage)
    yield Sample(catalog.NODE_DEFERRED, place, result.deferred)


def _quantile_samples(metric: Metric, place: tuple[str, ...], lag: RecentLag) -> Iterator[Sample]:
    for quantile, lag_us in zip(catalog.QUANTILE.values, lag, strict=True):
        yield Sample(metric, (*place, quantile), lag_us / _US)


def _all_recent_samples(recent: RecentFigures, named: Collection[str]) -> Iterator[Sample]:
    for node in recent.nodes:
        if node.node in named:
            yield from _recent_samples((recent.stream, node.node), node)
    for edge in recent.edges:
        if edge.node in named:
            yield from _quantile_samples(catalog.EDGE_TIME, (recent.stream, edge.source, edge.node), edge.time_us)


def _recent_samples(place: tuple[str, str], node: RecentNode) -> Iterator[Sample]:
    for stamp, rate, lag in (
        ("in", node.arrived_per_s, node.lag_in_us),
        ("out", node.departed_per_s, node.lag_out_us),
    ):
        yield Sample(catalog.RECENT_RATE, (*place, stamp), rate)
        if lag is not None:
            yield from _quantile_samples(catalog.RECENT_LAG, (*place, stamp), lag)
    if node.backlog is not None:
        yield Sample(catalog.BACKLOG, place, node.backlog)
    if node.backlog_s is not None:
        yield Sample(catalog.BACKLOG_TIME, place, node.backlog_s)


def _folded_node_samples(nodes: Sequence[NodeResult], totals: Sequence[int]) -> Iterator[Sample]:
    """Yield what can be said of many nodes at once: sums, and ratios of sums. Of quantiles, nothing."""
    for column, total in zip(NODE_COLUMNS, totals, strict=True):
        yield Sample(column.metric, (OTHER, OTHER, *column.labels), total)
    bounds = [(node.loss_lower, node.loss_upper, node.expected_or_seen) for node in nodes]
    yield from _bound_samples(catalog.NODE_LOSS, (OTHER, OTHER), bounds)
    if nodes:
        yield Sample(catalog.NODE_DEFERRED, (OTHER, OTHER), sum(node.deferred for node in nodes))


def _lag_samples(metric: Metric, place: tuple[str, ...], lag: Quantiles | None) -> Iterator[Sample]:
    if lag is None or not lag.count:
        return
    for quantile, name in zip(catalog.QUANTILE.values, _FIGURES, strict=True):
        yield Sample(metric, (*place, quantile), getattr(lag, name) / _US)


def _bound_samples(
    metric: Metric, place: tuple[str, ...], bounds: Sequence[tuple[int, int | None, int]]
) -> Iterator[Sample]:
    """Yield what is known of a loss: of (lower, upper, out of), summed up. Where nothing is known there is no 0."""
    lower, whole = sum(one[0] for one in bounds), sum(one[2] for one in bounds)
    uppers = [one[1] for one in bounds if one[1] is not None]
    is_bounded = len(uppers) == len(bounds)
    if whole and (lower or is_bounded):
        yield Sample(metric, (*place, "lower"), lower / whole)
    if whole and is_bounded:
        # Drops of a probe count too, so that it may be more than all.
        yield Sample(metric, (*place, "upper"), min(1.0, sum(uppers) / whole))


def _batch_samples(known: MetricsSnapshot) -> Iterator[Sample]:
    batches, metric = known.batches, catalog.BATCH_DURATION
    yield Sample(catalog.BUILD, (known.version,), 1)
    yield Sample(catalog.START, (), known.started_us / _US)
    yield Sample(catalog.CONFIG_IN_FORCE, (), int(known.is_config_in_force))
    if batches.last_us:
        yield Sample(catalog.LAST_BATCH, (), batches.last_us / _US)
    if known.watermark_us:
        yield Sample(catalog.WATERMARK, (), known.watermark_us / _US)
    for limit, count in zip(metric.labels[0].values, accumulate(batches.counts), strict=True):
        yield Sample(metric, (limit,), count, "_bucket")
    yield Sample(metric, (), sum(batches.counts), "_count")
    yield Sample(metric, (), batches.sum_s, "_sum")


def _store_samples(known: MetricsSnapshot) -> Iterator[Sample]:
    if known.is_store_up is not None:
        yield Sample(catalog.STORE_UP, (), int(known.is_store_up))
    if known.figures is None:
        return
    store, alerts = known.figures.store, known.figures.alerts
    yield Sample(catalog.STORE_READ, (), known.figures.read_at_us / _US)
    yield Sample(catalog.RECORDS, (), store.records)
    yield Sample(catalog.OBSERVATIONS, (), store.observations)
    yield Sample(catalog.DUPLICATE_BATCHES, (), store.duplicate_batches)
    yield Sample(catalog.TOO_LATE, (), store.too_late)
    yield Sample(catalog.IMPLAUSIBLE, (), store.implausible)
    yield Sample(catalog.AGED_OUT, (), store.aged_out)
    yield Sample(catalog.MISSING, (), store.missing_batches)
    for metric, counts in ((catalog.WAITING, store.waiting), (catalog.INSTANCES, store.instances)):
        for value in metric.labels[0].values:
            yield Sample(metric, (value,), counts.get(value, 0))
    yield from _open_samples(catalog.SET_ASIDE, {(reason,): count for reason, count in store.set_aside.items()})
    yield from _open_samples(catalog.INCIDENTS, alerts.incidents)
    yield from _open_samples(catalog.OUTBOX, alerts.outbox)
    if alerts.oldest_waiting_us is not None:
        yield Sample(catalog.OLDEST_WAITING, (), alerts.oldest_waiting_us / _US)
    if known.figures.results_waiting is not None:
        yield Sample(catalog.RESULTS_WAITING, (), known.figures.results_waiting)
    if known.figures.selftest is not None:
        yield from _selftest_samples(known.figures.selftest)


def _selftest_samples(summary: SelftestSummary) -> Iterator[Sample]:
    yield Sample(catalog.SELFTEST_WINDOWS, ("as_injected",), summary.minutes - summary.failed)
    yield Sample(catalog.SELFTEST_WINDOWS, ("failed",), summary.failed)
    for counted, messages in (("injected", summary.lost), ("found", summary.found), ("false", summary.false)):
        yield Sample(catalog.SELFTEST_LOST, (counted,), messages)
    if summary.newest_us is not None:
        yield Sample(catalog.SELFTEST_WINDOW, (), summary.newest_us / _US)


def _open_samples(metric: Metric, counts: Mapping[_Labels, int]) -> Iterator[Sample]:
    """Yield counts whose labels are not known beforehand: the first ones by name, all others as one."""
    ordered = sorted(counts)
    for labels in ordered[:MAX_OPEN_SERIES]:
        yield Sample(metric, labels, counts[labels])
    if rest := ordered[MAX_OPEN_SERIES:]:
        yield Sample(metric, (OTHER,) * len(metric.labels), sum(counts[labels] for labels in rest))
